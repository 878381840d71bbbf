/*
 * Loads that an older one or the time between acquits: on which ways, and how long.
 */
#include "analyze/why_rig.h"

#define ROUNDS  1e6
#define ENTRIES 1e3

/* A pointer that is loaded anew in a share of the rounds, and used in all. */
static void open_pointer(struct rig *r, double anew)
{
	rig_open(r,
		FUNCTION("f", "xor %eax, %eax\n"
			      "1: test %ecx, %ecx\n je 2f\n mov 640(%rdx), %rdx\n nop\n"
			      "2: mov (%rdx), %rcx\n inc %rax\n cmp %rsi, %rax\n jne 1b\n ret\n"));
	entered(r, ENTRIES);
	went(r, 0, 1, ENTRIES);
	went(r, 3, 1, ROUNDS - ENTRIES);
	went(r, 1, 3, ROUNDS * (1 - anew));
	went(r, 1, 2, ROUNDS * anew);
	went(r, 2, 3, ROUNDS * anew);
	went(r, 3, 4, ENTRIES);
	left(r, 4, ENTRIES);
}

/* That a load is in the line of an older one must hold on all ways that come often. */
static void test_ways(void **state)
{
	struct rig r;

	(void)state;
	open_pointer(&r, 0.4);
	took(&r, 5, 30, ROUNDS);
	explain(&r);
	assert_guilty(&r, 5, CULPRIT_DCACHE);
	rig_close(&r);

	open_pointer(&r, 0.01);
	took(&r, 5, 30, ROUNDS);
	explain(&r);
	assert_acquitted(&r, 5, CULPRIT_DCACHE);
	rig_close(&r);
}

/* A dispatch by a table of two, and what all takes in cycles. */
static void open_table(struct rig *r, double cycles)
{
	rig_open(r,
		FUNCTION("f", "lea table(%rip), %rdx\n1: movzbl (%rsi), %edi\n inc %rsi\n"
			      "cmp $1, %edi\n ja 9f\n movslq (%rdx,%rdi,4), %rax\n"
			      "add %rdx, %rax\n jmp *%rax\n"
			      "2: jmp 1b\n3: inc %rcx\n jmp 1b\n9: ret\n") ".section .rodata\n"
									   "table: .long 2b - "
									   "table, 3b - table\n");
	assert_int_equal(r->evidence.flow->blocks[2].end, FLOW_TABLE);
	entered(r, ENTRIES);
	went(r, 0, 1, ENTRIES);
	went(r, 3, 1, ROUNDS / 2);
	went(r, 4, 1, ROUNDS / 2 - ENTRIES);
	went(r, 1, 2, ROUNDS - ENTRIES);
	went(r, 1, 5, ENTRIES);
	went(r, 2, 3, ROUNDS / 2);
	went(r, 2, 4, ROUNDS / 2 - ENTRIES);
	left(r, 5, ENTRIES);
	r->machine.cycles = cycles;
}

static void test_table(void **state)
{
	struct rig r;

	(void)state;
	open_table(&r, 40 * ROUNDS);
	took(&r, 5, 30, ROUNDS);
	explain(&r);
	assert_acquitted(&r, 5, CULPRIT_DCACHE);
	rig_close(&r);

	/* So much time in between that other data can have displaced it. */
	open_table(&r, 1e5 * ROUNDS);
	took(&r, 5, 30, ROUNDS);
	explain(&r);
	assert_guilty(&r, 5, CULPRIT_DCACHE);
	rig_close(&r);

	/* What the operations come from is no table. */
	open_table(&r, 40 * ROUNDS);
	took(&r, 1, 30, ROUNDS);
	explain(&r);
	assert_guilty(&r, 1, CULPRIT_DCACHE);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_table),
	};
	int r = cmocka_run_group_tests(tests, open_workshop, close_workshop);

	forget_built();
	return r;
}
