/*
 * Code that is inserted runs as often as its place is passed, whatever lies around it: programs
 * count in an array of their own and tell it.
 */
#include "edit/edit_rig.h"

#include "base/err.h"
#include "edit/edit.h"
#include "edit/snippet.h"
#include "image/image.h"

#define FUNCTION(name, body)                                                          \
	".globl " name "\n.type " name ", @function\n" name ": .cfi_startproc\n" body \
	".cfi_endproc\n.size " name ", . - " name "\n"

static const char assembly[] = ".text\n"
	/* The first block is also where the loop goes back to. */
	FUNCTION("again", "again.head: dec %rdi\n jnz again\nagain.end: ret\n")
	/* Two jumps through one table, two entries to one block. */
	FUNCTION("twice", "lea table(%rip), %rdx\n and $3, %edi\n movslq (%rdx,%rdi,4), %rax\n"
			  " add %rdx, %rax\ntwice.first: jmp *%rax\n"
			  "twice.one: and $3, %esi\n movslq (%rdx,%rsi,4), %rax\n add %rdx, %rax\n"
			  " mov $1, %esi\ntwice.second: jmp *%rax\n"
			  "twice.two: mov $7, %eax\n ret\ntwice.three: mov $8, %eax\n ret\n")
	/* A branch that leaves the function. */
	FUNCTION("maybe", "test %edi, %edi\nmaybe.branch: jz leaf\n mov $3, %eax\n ret\n")
		FUNCTION("leaf", "mov $4, %eax\n ret\n nop\n nop\n nop\n")
	/* As many registers and flags in use as there are; a red zone. */
	FUNCTION("full",
		"mov %rdi, -8(%rsp)\n mov $1, %eax\n mov $2, %ecx\n mov $3, %edx\n mov $4, %esi\n"
		" mov $5, %r8d\n mov $6, %r9d\n mov $7, %r10d\n mov $8, %r11d\n"
		"1: sub $1, %rdi\n full.flags: jnz 1b\n adc %rcx, %rax\n add %rdx, %rax\n"
		" add %rsi, %rax\n add %r8, %rax\n add %r9, %rax\n add %r10, %rax\n"
		" add %r11, %rax\n add -8(%rsp), %rax\n ret\n") ".section .rodata\n.balign 4\n"
								"table: .long twice.one - table, "
								"twice.two - table, twice.three - "
								"table, twice.two - table\n"
								".section .note.GNU-stack\n";

static const char program[] = "#include <stdio.h>\n"
			      "long counters[64];\n"
			      "long again(long), twice(long, long), maybe(long), full(long);\n"
			      "int main(void) {\n"
			      "	long sum = again(5) * 0 + again(3) * 0;\n"
			      "	for (long i = 0; i < 8; i++) sum += twice(i, i / 2 + 1);\n"
			      "	for (long i = 0; i < 5; i++) sum += maybe(i & 1);\n"
			      "	for (long i = 1; i < 4; i++) sum += full(i);\n"
			      "	printf(\"%ld\\n\", sum);\n"
			      "	for (int i = 0; i < 64; i++) printf(\"%ld\\n\", counters[i]);\n"
			      "	return 0; }\n";

static struct edit *editing;
static struct snippet *count;

static void begin(const char *flags, bool strict)
{
	const struct edit_options options = {.strict = strict};
	struct err err = {0};

	write_text("code.s", assembly);
	write_text("main.c", program);
	shell("gcc -O1 %s -w -o code main.c code.s", flags);
	if (edit_open(in_workshop("code"), &options, &editing, &err))
		fail_msg("%s", err.text);
	assert_int_equal(snippet_create("[a0] += 1", &count, &err), 0);
}

/* Where counter i of the program is. */
static const uint64_t *counter(unsigned i)
{
	static uint64_t address;

	address = address_in("code", "counters") + 8 * i;
	return &address;
}

/* Counts edges of a kind out of (or into) the block that ends (or begins) at a label. */
static void count_edges(const char *name, const char *label, bool out, uint8_t kind, unsigned i)
{
	struct edit_function *f = find_function(editing, name);
	const struct flow *flow = f->flow;
	uint32_t block = flow_block_at(flow, address_in("code", label)), n = 0;

	for (uint32_t e = 0; e < flow->graph.edges; e++) {
		const struct graph_edge *ends = &flow->graph.edge[e];
		if ((out ? ends->from : ends->to) != block || flow->edge_kind[e] != kind)
			continue;
		n++;
		if (edit_edge_group(f, e) == e)
			edit_on_edge(editing, f, e, count, counter(i));
	}
	assert_true(n > 0);
}

static void count_insn(const char *name, const char *label, unsigned i)
{
	struct edit_function *f = find_function(editing, name);
	uint64_t address = address_in("code", label);

	for (uint32_t k = 0; k < f->flow->ninsns; k++)
		if (f->flow->insns[k].address == address)
			edit_before(editing, f, k, count, counter(i));
}

/* Writes and runs it: the output is as before, and the counters are these. */
static void expect(const long *counts, size_t n)
{
	struct err err = {0};

	if (edit_write(editing, in_workshop("edited"), &err))
		fail_msg("%s", err.text);
	edit_destroy(editing);
	snippet_destroy(count);
	shell("./code | head -1 > expected && ./edited > got && head -1 got | cmp - expected");
	FILE *f = fopen(in_workshop("got"), "r");
	long value;
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld", &value), 1);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(fscanf(f, "%ld", &value), 1);
		if (value != counts[i])
			fail_msg("counter %zu is %ld, not %ld", i, value, counts[i]);
	}
	fclose(f);
}

static void test_places(const char *flags)
{
	begin(flags, true);
	edit_at_entry(editing, find_function(editing, "again"), count, counter(0));
	count_edges("again", "again.head", true, FLOW_EDGE_JUMP, 1);
	count_edges("again", "again.head", true, FLOW_EDGE_FALL, 2);
	count_edges("again", "again.end", true, FLOW_EDGE_RETURN, 3);
	count_insn("again", "again.head", 4);
	count_edges("twice", "twice.two", false, FLOW_EDGE_TABLE, 5);
	count_edges("twice", "twice.three", false, FLOW_EDGE_TABLE, 6);
	count_edges("twice", "twice.one", false, FLOW_EDGE_TABLE, 7);
	count_insn("twice", "twice.second", 8);
	count_edges("maybe", "maybe.branch", true, FLOW_EDGE_TAIL, 9);
	count_edges("maybe", "maybe.branch", true, FLOW_EDGE_FALL, 10);
	edit_at_entry(editing, find_function(editing, "leaf"), count, counter(11));
	count_edges("full", "full.flags", true, FLOW_EDGE_JUMP, 12);
	count_edges("full", "full.flags", true, FLOW_EDGE_FALL, 13);
	count_insn("full", "full.flags", 14);
	/* twice: first 0 to 3 twice; 0 goes on with 1 and 3, both of block two */
	expect((const long[]){2, 6, 2, 2, 8, 6, 2, 2, 2, 3, 2, 3, 3, 3, 6}, 15);
}

static void test_independent(void **state)
{
	(void)state;
	test_places("");
}

static void test_fixed(void **state)
{
	(void)state;
	test_places("-no-pie -fno-pie");
}

/* So much code that every branch must grow, in order, and everything still runs. */
static void test_growth(void **state)
{
	(void)state;
	begin("", true);
	const uint64_t last = *counter(63);
	static const char *const names[] = {"again", "twice", "maybe", "leaf", "full", "main"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct edit_function *f = find_function(editing, names[i]);
		for (uint32_t k = 0; k < f->flow->ninsns; k++)
			for (int times = 0; times < 10; times++)
				edit_before(editing, f, k, count, &last);
		for (uint32_t k = 0; k < f->flow->graph.edges; k++)
			if (edit_edge_carries(f, k) && edit_edge_group(f, k) == k)
				edit_on_edge(editing, f, k, count, &last);
	}
	expect((const long[]){0}, 1);
}

/* What hardly runs lies behind all else, and runs as ever. */
static void test_seldom(void **state)
{
	(void)state;
	static const char *const names[] = {"again", "twice", "maybe", "leaf", "full", "main"};
	struct err err = {0};
	begin("", true);
	find_function(editing, "maybe")->seldom = true;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) /* too much to lie as before */
		for (int times = 0; times < 10; times++)
			edit_at_entry(editing, find_function(editing, names[i]), count,
				counter((unsigned)i));
	uint64_t seldom = address_in("code", "maybe");
	if (edit_write(editing, in_workshop("first"), &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (i != 2)
			assert_true(edit_moved(editing, address_in("code", names[i])) <
				    edit_moved(editing, seldom));
	edit_destroy(editing);
	snippet_destroy(count);
	shell("./code | head -1 > expected && ./first > got && head -1 got | cmp - expected");
	shell("sed -n 4p got | grep -q '^50$'");
}

/* What is not chosen stays, and is called from what is moved and the other way round. */
static void test_some(void **state)
{
	(void)state;
	begin("", true);
	find_function(editing, "maybe")->chosen = false;
	edit_at_entry(editing, find_function(editing, "leaf"), count, counter(0));
	edit_at_entry(editing, find_function(editing, "main"), count, counter(1));
	uint64_t leaf = address_in("code", "leaf"), maybe = address_in("code", "maybe");
	struct edit *e = editing;
	struct err err = {0};
	assert_int_equal(edit_write(e, in_workshop("first"), &err), 0);
	assert_int_not_equal(edit_moved(e, leaf), 0);
	assert_int_equal(edit_moved(e, leaf + 5), edit_moved(e, leaf) + 5);
	assert_int_equal(edit_moved(e, maybe), 0);
	edit_destroy(e);
	snippet_destroy(count);
	shell("./code | head -1 > expected && ./first > got && head -1 got | cmp - expected");
	shell("sed -n 2,3p got | tr '\\n' ' ' | grep -q '^3 1 $'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_independent),
		cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_seldom),
		cmocka_unit_test(test_some),
	};
	return cmocka_run_group_tests(tests, open_workshop, close_workshop);
}
