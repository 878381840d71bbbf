/*
 * Blocks, edges and marks of small functions written in assembly.
 */
#include <errno.h>

#include "flow/assembled.h"

#define FUNCTION(name, body)                                                                     \
	".globl " name "\n.type " name ", @function\n" name ":\n" body ".size " name ", .-" name \
	"\n"

static void test_blocks(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("f", "test %edi, %edi\n je 1f\n mov $1, %eax\n ret\n"
					 "1: call g\n nop\n jmp g\n") FUNCTION("g",
		"xor %eax, %eax\n1: inc %eax\n cmp %edi, %eax\n jl 1b\n ret\n"));
	struct flow *f = flow_of("f");
	assert_int_equal(f->nblocks, 4);
	assert_int_equal(f->blocks[0].end, FLOW_BRANCHES);
	assert_int_equal(f->blocks[0].count, 2);
	assert_int_equal(f->blocks[1].end, FLOW_RETURNS);
	assert_int_equal(f->blocks[2].end, FLOW_CALLS);
	assert_int_equal(f->blocks[3].end, FLOW_TAIL);
	assert_int_equal(edge_between(f, f->entry_node, 0), FLOW_EDGE_ENTRY);
	assert_int_equal(edge_between(f, 0, 1), FLOW_EDGE_FALL);
	assert_int_equal(edge_between(f, 0, 2), FLOW_EDGE_JUMP);
	assert_int_equal(edge_between(f, 1, f->exit_node), FLOW_EDGE_RETURN);
	assert_int_equal(edge_between(f, 2, 3), FLOW_EDGE_FALL);
	assert_int_equal(edge_between(f, 3, f->exit_node), FLOW_EDGE_TAIL);
	assert_int_equal(f->flags, 0);
	assert_int_equal(flow_block_at(f, f->entry + 1), 0);
	assert_int_equal(flow_block_at(f, f->entry - 1), GRAPH_NONE);
	flow_destroy(f);

	f = flow_of("g");
	assert_int_equal(f->nblocks, 3);
	assert_int_equal(f->blocks[0].end, FLOW_FALLS);
	assert_int_equal(edge_between(f, 1, 1), FLOW_EDGE_JUMP);
	assert_int_equal(f->flags, 0);
	flow_destroy(f);
}

/* Fillers behind a return are padding, and what nothing leads to is marked. */
static void test_unreached(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("f", "ret\n nop\n nopw 0(%rax)\n int3\n mov $1, %eax\n ret\n"));
	struct flow *f = flow_of("f");
	assert_int_equal(f->nblocks, 3);
	assert_int_equal(f->blocks[1].marks, FLOW_PADDING);
	assert_int_equal(f->blocks[1].count, 3);
	assert_int_equal(graph_out_degree(&f->graph, 1), 0);
	assert_int_equal(graph_in_degree(&f->graph, 1), 0);
	assert_int_equal(f->blocks[2].marks, FLOW_ENTERED_UNREACHED);
	assert_int_equal(edge_between(f, f->entry_node, 2), FLOW_EDGE_UNSEEN);
	assert_int_equal(f->flags, FLOW_HAS_UNSEEN);
	flow_destroy(f);
}

static void test_falls_out(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("f", "mov %edi, %eax\n") FUNCTION("g", "ret\n"));
	struct flow *f = flow_of("f");
	assert_int_equal(f->nblocks, 1);
	assert_int_equal(f->blocks[0].marks, FLOW_LEAVES);
	assert_int_equal(edge_between(f, 0, f->exit_node), FLOW_EDGE_UNSEEN);
	flow_destroy(f);
}

/* A jump over a lock prefix: the famous way of old libraries. */
static void test_overlap(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("f", "test %edi, %edi\n je 1f\n .byte 0xf0\n"
					 "1: incl (%rsi)\n ret\n"));
	struct flow *f = flow_of("f");
	assert_int_equal(f->nblocks, 4);
	assert_int_equal(f->flags, FLOW_HAS_OVERLAPS);
	assert_int_equal(f->blocks[1].start + 1, f->blocks[2].start);
	assert_true(f->blocks[1].marks & FLOW_OVERLAPS);
	assert_true(f->blocks[2].marks & FLOW_OVERLAPS);
	assert_false(f->blocks[3].marks & FLOW_OVERLAPS);
	assert_int_equal(edge_between(f, 0, 1), FLOW_EDGE_FALL);
	assert_int_equal(edge_between(f, 0, 2), FLOW_EDGE_JUMP);
	assert_int_equal(edge_between(f, 1, 3), FLOW_EDGE_FALL);
	assert_int_equal(edge_between(f, 2, 3), FLOW_EDGE_FALL);
	flow_destroy(f);
}

static void test_bad_bytes(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("f", "test %edi, %edi\n je 1f\n .byte 6, 6\n1: ret\n"));
	struct flow *f = flow_of("f");
	assert_int_equal(f->nblocks, 3);
	assert_int_equal(f->blocks[1].end, FLOW_BAD);
	assert_int_equal(f->blocks[1].size, 2);
	assert_int_equal(f->blocks[1].marks, FLOW_LEAVES);
	assert_int_equal(f->flags, FLOW_HAS_UNSEEN | FLOW_HAS_BAD);
	flow_destroy(f);
}

static void test_address_taken(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("f", "lea 1f(%rip), %rax\n mov %rax, (%rdi)\n ret\n"
					 "1: xor %eax, %eax\n ret\n") FUNCTION("g",
		"test %edi, %edi\n je 2f\n ret\n2: nop\n ret\n") ".section .data.rel.ro, \"aw\"\n "
								 ".hidden g\n .quad g + 5\n");
	struct flow *f = flow_of("f");
	assert_int_equal(f->nblocks, 2);
	assert_int_equal(f->blocks[1].marks, FLOW_ENTERED_POINTER);
	flow_destroy(f);
	f = flow_of("g");
	assert_int_equal(f->blocks[2].start, f->entry + 5);
	assert_int_equal(f->blocks[2].marks, FLOW_ENTERED_POINTER);
	assert_int_equal(edge_between(f, f->entry_node, 2), FLOW_EDGE_UNSEEN);
	flow_destroy(f);
}

static void test_ends(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("f", "call 1f\n jmp *%rax\n1: ud2\n") FUNCTION(
		"g", "push %rbx\n jmp *(%rdi)\n") FUNCTION("h",
		"push %rbx\n mov %rdi, %rbx\n pop %rbx\n jmp *(%rsi)\n") FUNCTION("i",
		"push %rbx\n mov %rdi, %rbx\n add $8, %rsp\n jmp *(%rsi)\n") FUNCTION("j",
		"mov %rdi, %rax\n jmp *slot(%rip)\n") ".data\nslot: .quad 0\n");
	struct flow *f = flow_of("f");
	assert_int_equal(f->blocks[0].end, FLOW_CALLS);
	assert_int_equal(f->blocks[1].end, FLOW_TAIL_INDIRECT);
	assert_int_equal(f->blocks[2].end, FLOW_STOPS);
	assert_int_equal(f->blocks[2].marks, FLOW_ENTERED_CALLED);
	assert_int_equal(edge_between(f, 2, f->exit_node), FLOW_EDGE_STOP);
	flow_destroy(f);

	f = flow_of("g");
	assert_int_equal(f->blocks[0].end, FLOW_UNRESOLVED);
	assert_int_equal(f->blocks[0].marks, FLOW_LEAVES | FLOW_ENTERED_JUMP);
	assert_int_equal(f->jumps[0].state, FLOW_JUMP_UNRESOLVED);
	flow_destroy(f);

	f = flow_of("h");
	assert_int_equal(f->jumps[0].state, FLOW_JUMP_TAIL);
	assert_int_equal(f->flags, 0);
	flow_destroy(f);

	f = flow_of("i"); /* the stack is right, rbx is not */
	assert_int_equal(f->jumps[0].state, FLOW_JUMP_UNRESOLVED);
	flow_destroy(f);

	f = flow_of("j");
	assert_int_equal(f->jumps[0].state, FLOW_JUMP_TAIL);
	flow_destroy(f);
}

/* Landing pads are entered by unwinding, also where code before them seems to fall into them. */
static void test_landing_pads(void **state)
{
	(void)state;
	static const char text[] = "extern void may_throw(int); extern void note(int);\n"
				   "struct guard { int n; ~guard() { note(n); } };\n"
				   "extern \"C\" int caught(int x) { guard g{x}; try { "
				   "may_throw(x); } catch (int e) {\n"
				   " note(e); return 5; } return 1; }\n";
	struct flow *f;
	uint32_t pads = 0, unreached = 0;
	write_text("code.cc", text);
	shell("g++ -O2 -shared -fPIC -o code.so code.cc");
	open_built("code.so");
	f = flow_of("caught");
	for (uint32_t k = 0; k < f->nblocks; k++) {
		pads += !!(f->blocks[k].marks & FLOW_ENTERED_POINTER);
		unreached += !!(f->blocks[k].marks & FLOW_ENTERED_UNREACHED);
	}
	assert_true(pads >= 2);
	assert_int_equal(unreached, 0);
	flow_destroy(f);
}

/* In the kernel a ud2 may be a warning. */
static void test_kernel_trap(void **state)
{
	(void)state;
	static const uint8_t code[] = {0x0f, 0x0b, 0xc3};
	struct range range = {0x1000, sizeof code};
	struct flow_source source = {
		.ranges = &range, .nranges = 1, .entry = 0x1000, .code = code, .kernel = true};
	struct flow *f;
	assert_int_equal(flow_create(&source, &f, NULL), 0);
	assert_int_equal(f->nblocks, 2);
	assert_int_equal(f->blocks[0].end, FLOW_TRAPS);
	assert_int_equal(edge_between(f, 0, 1), FLOW_EDGE_FALL);
	assert_int_equal(edge_between(f, 0, f->exit_node), FLOW_EDGE_STOP);
	flow_destroy(f);
}

/* Two ranges are one procedure; the entry need not be in the lower one. */
static void test_fragments(void **state)
{
	(void)state;
	static const uint8_t code[] = {0x74, 0xfe - 0x10, 0xc3, /* je -0x12; ret */
		0x90, 0xeb, 0x0f};                              /* nop; jmp to the ret */
	struct range ranges[] = {{0x1000, 3}, {0xff0, 3}};
	struct flow_source source = {.ranges = ranges, .nranges = 2, .entry = 0x1000, .code = code};
	struct flow *f;
	assert_int_equal(flow_create(&source, &f, NULL), 0);
	assert_int_equal(f->nblocks, 3);
	assert_int_equal(f->blocks[0].start, 0xff0);
	assert_int_equal(edge_between(f, 1, 0), FLOW_EDGE_JUMP);
	assert_int_equal(edge_between(f, 0, 2), FLOW_EDGE_JUMP);
	assert_int_equal(f->flags, 0);
	flow_destroy(f);
}

static void test_refused(void **state)
{
	(void)state;
	static const uint8_t code[16] = {0xc3};
	struct range ranges[] = {{0x1000, 8}, {0x1004, 8}};
	struct flow_source source = {.ranges = ranges, .nranges = 2, .entry = 0x1000, .code = code};
	struct flow *f = NULL;
	struct err e = {0};
	assert_int_equal(flow_create(&source, &f, &e), -EINVAL);
	source.nranges = 1;
	source.entry = 0x1008;
	assert_int_equal(flow_create(&source, &f, &e), -EINVAL);
	ranges[0].size = FLOW_BYTES_MAX + 1;
	assert_int_equal(flow_create(&source, &f, &e), -EFBIG);
	assert_null(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_unreached),
		cmocka_unit_test(test_falls_out),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_bad_bytes),
		cmocka_unit_test(test_address_taken),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_landing_pads),
		cmocka_unit_test(test_kernel_trap),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_refused),
	};
	int r = cmocka_run_group_tests(tests, open_workshop, close_workshop);
	forget_built();
	return r;
}
