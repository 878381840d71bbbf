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

/* A CPI that cannot be told from the best case is no stall. */
static void test_best(void **state)
{
	struct rig r;
	const struct why *w;

	(void)state;
	rig_open(&r, loop);
	run_loop(&r, 1e6);
	took(&r, 2, 1, 1e6);
	w = explain(&r);
	assert_near(w->summary.dynamic, 0, 0.06);
	assert_near(sum(&w->summary), 1, 1e-9);
	assert_near(w->blocks[1].actual, w->blocks[1].best, 0.06);
	rig_close(&r);
}

/* Twice as fast as it can be: that is said. */
static void test_gain(void **state)
{
	struct rig r;
	const struct why *w;

	(void)state;
	rig_open(&r, loop);
	run_loop(&r, 1e6);
	took(&r, 2, 0.5, 1e6);
	w = explain(&r);
	assert_near(w->summary.unexplained_gain, -0.95, 0.1);
	assert_near(w->summary.dynamic, 0, 1e-9);
	assert_near(sum(&w->summary), 1, 1e-9);
	rig_close(&r);
}

/* Two samples where none is expected could be chance nowhere; one could. */
static void test_chance(void **state)
{
	struct rig r;
	const struct why *w;

	(void)state;
	rig_open(&r, loop);
	entered(&r, 10);
	went(&r, 0, 1, 10);
	went(&r, 1, 1, 1990);
	went(&r, 1, 2, 10);
	left(&r, 2, 10);
	r.evidence.samples[2] = 1;
	w = explain(&r);
	assert_near(w->summary.dynamic, 0, 1e-9);
	assert_true(w->summary.sampling_error < 0); /* two cycles in 1000 were expected elsewhere */
	r.evidence.samples[2] = 20;
	w = explain(&r);
	assert_near(w->summary.dynamic, 0.9, 0.1);
	assert_near(sum(&w->summary), 1, 1e-9);
	rig_close(&r);
}

/* A hundred blocks that end in a call. */
static const char thin[] =
	FUNCTION("f", ".rept 100\n add %rax, %rcx\n add %rax, %rdx\n call g\n .endr\n ret\n")
		FUNCTION("g", "ret\n");

/* Samples so thin that chance could make those of each block, but not of all together. */
static void test_thin(void **state)
{
	struct rig r;
	const struct why *w;

	(void)state;
	rig_open(&r, thin);
	entered(&r, 100);
	for (uint32_t b = 0; b < 100; b++)
		went(&r, b, b + 1, 100);
	left(&r, 100, 100);
	r.evidence.samples[1] = 1;
	w = explain(&r);
	assert_near(w->summary.dynamic + w->summary.unexplained, 0, 1e-9);
	for (uint32_t b = 0; b < 100; b += 2)
		r.evidence.samples[3 * b + 1] = 1;
	w = explain(&r);
	assert_true(w->summary.dynamic + w->summary.unexplained > 0.5);
	assert_true(w->insns[0].stall > 0);
	assert_near(sum(&w->summary), 1, 1e-9);
	/* As many as the best case has are none. */
	r.frequency.scale_low = r.frequency.scale_high = 1;
	for (uint32_t b = 0; b <= 100; b++)
		r.frequency.block[b] = about(1000);
	w = explain(&r);
	assert_near(w->summary.dynamic + w->summary.unexplained, 0, 1e-9);
	rig_close(&r);
}

/* The chain of multiplications is what the best case waits for. */
static void test_static(void **state)
{
	struct rig r;
	const struct why *w;

	(void)state;
	rig_open(&r, FUNCTION("f", "xor %eax, %eax\n1: imul %rcx, %rdx\n inc %rax\n"
				   "cmp %rsi, %rax\n jne 1b\n ret\n"));
	run_loop(&r, 1e6);
	took(&r, 1, 3, 1e6);
	w = explain(&r);
	assert_near(w->blocks[1].best, 3, 0.1);
	assert_true(w->insns[1].stopped > 2);
	assert_int_equal(w->insns[1].cause, WHY_OPERAND);
	assert_int_equal(w->insns[1].on, 1);
	assert_near(w->summary.cause[WHY_OPERAND], 0.8, 0.02);
	assert_near(w->summary.execution, 0.2, 0.02);
	assert_near(w->summary.dynamic + w->summary.unexplained, 0, 0.02);
	rig_close(&r);
}

/* ---- the scale ---- */

static void test_relative(void **state)
{
	struct rig r;
	const struct why *w;

	(void)state;
	rig_open(&r, loop);
	run_loop(&r, 1e6);
	took(&r, 1, 30, 1e6);
	took(&r, 2, 1, 1e6);
	r.frequency.scale = FREQUENCY_RELATIVE;
	r.frequency.scale_low = 0;
	r.frequency.scale_high = INFINITY;
	w = explain(&r);
	assert_true(isnan(w->insns[1].cpi) && isnan(w->cpi.actual) && isnan(w->blocks[1].actual));
	assert_true(isinf(w->insns[1].cpi_high) && isinf(w->cpi.high));
	/* 31 times as often would be the best case; a little more is allowed. */
	assert_near(w->assumed, 32.5, 2);
	assert_near(w->insns[1].cpi_low, 0.92, 0.1);
	assert_near(sum(&w->summary), 1, 1e-9);
	rig_close(&r);
}

/* Told roughly: the likeliest scale, which is still not known. */
static void test_told(void **state)
{
	struct rig r;
	const struct why *w;

	(void)state;
	rig_open(&r, loop);
	run_loop(&r, 1e6);
	took(&r, 1, 30, 1e6);
	took(&r, 2, 3, 1e6);
	r.frequency.scale = FREQUENCY_RELATIVE;
	r.frequency.scale_low = 0;
	r.frequency.scale_high = INFINITY;
	r.frequency.told = 0.3;
	w = explain(&r);
	assert_true(w->likeliest);
	assert_near(w->assumed, 1, 0);
	assert_true(isnan(w->insns[1].cpi) && isinf(w->insns[1].cpi_high));
	assert_near(w->insns[1].cpi_low, 30 * exp(-1.64 * 0.3), 1);
	assert_near(w->insns[1].stall, 29, 1);
	assert_first(&r, 1, CULPRIT_DCACHE);
	rig_close(&r);
}

/* An argument may come late: a latency that waits for it is no miss. */
static void test_late(void **state)
{
	static const char line[] = FUNCTION("f", "mov (%rdi), %rax\n add %rax, %rcx\n ret\n");
	struct rig r;
	const struct why *w;

	(void)state;
	rig_open(&r, line);
	entered(&r, 1e6);
	left(&r, 0, 1e6);
	took(&r, 0, 4, 1e6);
	w = explain(&r);
	assert_near(w->insns[0].stall, 0, 1e-9);
	assert_near(w->insns[0].min_cpi, 4, 0.1);
	assert_int_equal(w->insns[0].cause, WHY_OPERAND);
	assert_int_equal(w->insns[0].on, GRAPH_NONE);
	assert_near(sum(&w->summary), 1, 1e-9);
	rig_close(&r);

	/* More than its latency is something else. */
	rig_open(&r, line);
	entered(&r, 1e6);
	left(&r, 0, 1e6);
	took(&r, 0, 30, 1e6);
	w = explain(&r);
	assert_near(w->insns[0].stall, 25, 1);
	assert_first(&r, 0, CULPRIT_DCACHE);
	assert_near(sum(&w->summary), 1, 1e-9);
	rig_close(&r);
}

/* What a callee returns may come late as well; what was there before it was called, not. */
static void test_returned(void **state)
{
	static const char text[] = FUNCTION("f", "call g\n mov (%rax), %rdx\n mov (%rbx), %rsi\n"
						 "ret\n") FUNCTION("g", "ret\n");
	struct rig r;
	const struct why *w;

	(void)state;
	rig_open(&r, text);
	entered(&r, 1e6);
	went(&r, 0, 1, 1e6);
	left(&r, 1, 1e6);
	took(&r, 1, 4, 1e6);
	took(&r, 2, 4, 1e6);
	w = explain(&r);
	assert_near(w->insns[1].stall, 0, 1e-9);
	assert_true(w->insns[2].stall > 3);
	rig_close(&r);
}

static void test_program(void **state)
{
	struct why_program p = {0};
	struct why_summary s;
	struct rig r;

	(void)state;
	rig_open(&r, loop);
	run_loop(&r, 1e6);
	took(&r, 1, 30, 1e6);
	took(&r, 2, 1, 1e6);
	why_program_add(&p, explain(&r));
	why_program_add(&p, r.why);
	r.frequency.scale = FREQUENCY_RELATIVE;
	why_program_add(&p, explain(&r));
	why_program_add_unseen(&p, 5e6);
	assert_near(p.known, 62e6, 1);
	assert_near(p.relative, 31e6, 1);
	assert_near(p.unseen, 5e6, 1);
	assert_near(p.instructions, 2 * 5.002e6, 1e3);
	s = why_program_summary(&p);
	assert_near(sum(&s), 1, 1e-9);
	assert_near(s.dynamic, 30 / 31.0, 0.005);
	rig_close(&r);

	p = (struct why_program){.relative = 1};
	s = why_program_summary(&p);
	assert_near(sum(&s), 0, 0);
}

/* ---- the shift ---- */

/* Behind a load and behind a compare that jumps there: the load is likelier to have taken long. */
static void test_join(void **state)
{
	struct rig r;
	const struct why *w;

	(void)state;
	rig_open(&r, FUNCTION("f", "nop\n test %edi, %edi\n je 1f\n mov (%rsi), %rcx\n"
				   "1: add %rcx, %rdx\n ret\n"));
	entered(&r, 1e6);
	went(&r, 0, 1, 5e5);
	went(&r, 0, 2, 5e5);
	went(&r, 1, 2, 5e5);
	left(&r, 2, 1e6);
	r.evidence.samples[4] = 2400;
	w = explain(&r);
	assert_near(w->insns[3].samples, 2000, 1e-6);
	/* The compare that is fused with its branch has what both took. */
	assert_near(w->insns[1].samples, 400, 1e-6);
	assert_near(w->insns[2].samples, 0, 0);
	rig_close(&r);
}

static void test_entry(void **state)
{
	struct rig r;
	const struct why *w;

	(void)state;
	rig_open(&r, loop);
	run_loop(&r, 1e6);
	r.evidence.samples[0] = 10;
	r.evidence.samples[2] = 100;
	w = explain(&r);
	assert_near(w->insns[0].samples, 10, 0);
	assert_near(w->insns[1].samples, 100, 0);
	/* Precise events stand where they belong. */
	r.machine.skid = 0;
	w = explain(&r);
	assert_near(w->insns[2].samples, 100, 0);
	r.machine.skid = 2;
	w = explain(&r);
	assert_near(w->insns[1].samples, 0, 1e-9);
	assert_near(w->insns[4].samples, 100 * (1e6 - 1000) * 4 / ((1e6 - 1000) * 4 + 1000), 1e-6);
	rig_close(&r);
}

/* No time event, no time. */
/* What its counts must be multiplied with where loads take so long, and the rest a cycle. */
static double tempo_of(double turns, double load)
{
	struct rig r;
	double tempo = NAN;
	struct why_tempo_parts parts;

	rig_open(&r, loop);
	run_loop(&r, turns);
	took(&r, 1, load, 1e6);
	took(&r, 2, 1, 1e6);
	r.frequency.scale = FREQUENCY_RELATIVE;
	assert_int_equal(
		why_tempo(&r.evidence, &r.frequency, &r.machine, &tempo, &parts, &(struct err){0}),
		0);
	assert_near((parts.all - parts.far) / parts.all, 1 / (1 + load), 0.001);
	rig_close(&r);
	return tempo;
}

/* However long loads take, it is the rest that tells how often the loop went round. */
static void test_tempo(void **state)
{
	double usual = tempo_of(1e6, 30);

	(void)state;
	assert_true(usual > 0.6 && usual < 1.6);
	assert_near(tempo_of(1e6, 300) / usual, 1, 0.05);
	assert_near(tempo_of(4e6, 30) / usual, 0.25, 0.01);
}

static void test_no_time(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, loop);
	r.evidence.period = 0;
	assert_true(why_create(&r.evidence, &r.frequency, &r.machine, &r.why, &r.e) < 0);
	assert_non_null(strstr(r.e.text, "cpu-clock"));
	assert_null(r.why);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpi),
		cmocka_unit_test(test_best),
		cmocka_unit_test(test_gain),
		cmocka_unit_test(test_chance),
		cmocka_unit_test(test_thin),
		cmocka_unit_test(test_static),
		cmocka_unit_test(test_relative),
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_returned),
		cmocka_unit_test(test_program),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_entry),
		cmocka_unit_test(test_tempo),
		cmocka_unit_test(test_no_time),
	};
	int r = cmocka_run_group_tests(tests, open_workshop, close_workshop);

	forget_built();
	return r;
}
