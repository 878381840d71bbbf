/*
 * Cycles per instruction, the best case and the summary, on samples whose cause is known.
 */
#include "analyze/why_rig.h"

/* A loop of a load, an addition and a branch. */
static const char loop[] = FUNCTION("f", "xor %eax, %eax\n"
					 "1: mov (%rdi,%rax,8), %rcx\n add %rcx, %rdx\n"
					 "inc %rax\n cmp %rsi, %rax\n jne 1b\n ret\n");

static void run_loop(struct rig *r, double n)
{
	entered(r, 1000);
	went(r, 0, 1, 1000);
	went(r, 1, 1, n - 1000);
	went(r, 1, 2, 1000);
	left(r, 2, 1000);
}

static double sum(const struct why_summary *s)
{
	double all = s->execution + s->dynamic + s->unexplained + s->unexplained_gain +
		     s->sampling_error;

	for (unsigned c = 0; c < WHY_CAUSES; c++)
		all += s->cause[c];
	return all;
}

static void test_cpi(void **state)
{
	struct rig r;
	const struct why *w;

	(void)state;
	rig_open(&r, loop);
	run_loop(&r, 1e6);
	took(&r, 1, 30, 1e6);
	took(&r, 2, 1, 1e6);
	w = explain(&r);
	assert_near(w->insns[1].samples, 30000, 0);
	assert_near(w->insns[1].cpi, 30, 0.01);
	assert_near(w->insns[2].cpi, 1, 0.01);
	assert_true(w->insns[1].cpi_low < 30 && w->insns[1].cpi_low > 27);
	assert_true(w->insns[1].cpi_high > 30 && w->insns[1].cpi_high < 33);
	assert_near(w->insns[3].cpi, 0, 0);
	assert_true(w->insns[3].cpi_high > 0);
	assert_near(w->blocks[1].actual, 31, 0.01);
	/* Five instructions, four micro-ops: one cycle, which the additions need too. */
	assert_near(w->blocks[1].best, 1, 0.06);
	assert_near(w->cpi.best, 0.2, 0.015);
	assert_near(w->cpi.actual, 31 / 5.0, 0.05);
	assert_near(sum(&w->summary), 1, 1e-9);
	/* One cycle in 31 is not the load's. */
	assert_near(w->summary.dynamic, 30 / 31.0, 0.005);
	assert_first(&r, 1, CULPRIT_DCACHE);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpi),
	};

	int r = cmocka_run_group_tests(tests, open_workshop, close_workshop);

	forget_built();
	return r;
}
