#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "isa/form.h"
#include "isa/reference.h"

#define N REG_NONE

static const struct {
	const char *text;
	char bytes[12];
	unsigned n, untold;
	struct reference want[REFERENCES_MAX];
} cases[] = {
	{"mov (%rax,%rcx,4),%rdx", "\x48\x8b\x14\x88", 1, 0,
		{{REG_RAX, REG_RCX, 4, false, false, true, false, 8, 0}}},
	{"mov %cl,-8(%rsp)", "\x88\x4c\x24\xf8", 1, 0,
		{{REG_RSP, N, 1, false, false, false, true, 1, -8ull}}},
	{"add %eax,16(%r13)", "\x41\x01\x45\x10", 1, 0,
		{{13, N, 1, false, false, true, true, 4, 16}}},
	{"mov 0x100(%rip),%eax", "\x8b\x05\x00\x01\x00\x00", 1, 0,
		{{N, N, 1, true, false, true, false, 4, 0x1106}}},
	{"mov %fs:0x28,%rax", "\x64\x48\x8b\x04\x25\x28\x00\x00\x00", 1, 0,
		{{N, N, 1, false, true, true, false, 8, 0x28}}},
	{"call *8(%rbx)", "\xff\x53\x08", 1, 0, {{REG_RBX, N, 1, false, false, true, false, 8, 8}}},
	{"push (%rdi)", "\xff\x37", 1, 0, {{REG_RDI, N, 1, false, false, true, false, 8, 0}}},
	{"movups %xmm0,(%rsi)", "\x0f\x11\x06", 1, 0,
		{{REG_RSI, N, 1, false, false, false, true, 16, 0}}},
	{"movsb", "\xa4", 2, 0,
		{{REG_RDI, N, 1, false, false, false, true, 1, 0},
			{REG_RSI, N, 1, false, false, true, false, 1, 0}}},
	{"rep stosq", "\xf3\x48\xab", 1, 0, {{REG_RDI, N, 1, false, false, false, true, 8, 0}}},
	{"lea 8(%rdi),%rax", "\x48\x8d\x47\x08", 0, 0, {{0}}},
	{"push %rax", "\x50", 0, 0, {{0}}},
	{"pop %rax", "\x58", 0, 0, {{0}}},
	{"call .", "\xe8\x00\x00\x00\x00", 0, 0, {{0}}},
	{"ret", "\xc3", 0, 0, {{0}}},
	{"nopw (%rax,%rax)", "\x66\x0f\x1f\x44\x00\x00", 0, 0, {{0}}},
	{"prefetcht0 (%rax)", "\x0f\x18\x08", 0, 0, {{0}}},
	{"mov %gs:0,%rax", "\x65\x48\x8b\x04\x25\x00\x00\x00\x00", 0, 1, {{0}}},
	{"mov (%eax),%ecx", "\x67\x8b\x08", 0, 1, {{0}}},
	{"pop 8(%rsp)", "\x8f\x44\x24\x08", 0, 1, {{0}}},
	{"xlat", "\xd7", 0, 1, {{0}}},
	{"vpgatherdd %ymm2,(%rax,%ymm1),%ymm0", "\xc4\xe2\x6d\x90\x04\x08", 0, 1, {{0}}},
};

static void names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint8_t code[16] = {0};
		struct reference got[REFERENCES_MAX];
		unsigned untold;

		memcpy(code, cases[i].bytes, sizeof cases[i].bytes);
		print_message("%s\n", cases[i].text);
		assert_int_equal(
			isa_references(code, sizeof code, 0x1000, got, &untold), cases[i].n);
		assert_int_equal(untold, cases[i].untold);
		for (unsigned k = 0; k < cases[i].n; k++) {
			const struct reference *a = &got[k], *b = &cases[i].want[k];

			assert_int_equal(a->base, b->base);
			assert_int_equal(a->index, b->index);
			assert_int_equal(a->scale, b->scale);
			assert_int_equal(a->relative, b->relative);
			assert_int_equal(a->thread, b->thread);
			assert_int_equal(a->loads, b->loads);
			assert_int_equal(a->stores, b->stores);
			assert_int_equal(a->size, b->size);
			assert_int_equal(a->displacement, b->displacement);
		}
	}
}

static void of_no_instruction(void **state)
{
	struct reference got[REFERENCES_MAX];

	(void)state;
	assert_int_equal(isa_references("\x06", 1, 0, got, NULL), 0);
	assert_int_equal(isa_references("\x8b", 1, 0, got, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(of_no_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
