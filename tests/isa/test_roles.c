#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "isa/roles.h"

/* Flags of a case: l loads, s stores, r repeats, k on the stack, f fixed address, R constant
 * result, S constant source, p writes rsp. */
static const struct {
	const char *bytes;
	enum operation operation;
	uint8_t size, float_size;
	const char *flags, *result, *source, *memory;
} cases[] = {
	{"48 f7 f9", OPERATION_DIVIDE, 8, 0, "", "%rax", "%rcx", ""}, /* idiv %rcx */
	{"f7 77 08", OPERATION_DIVIDE, 4, 0, "l", "%eax", "0x8(%rdi)", "0x8(%rdi)"},
	{"48 f7 e6", OPERATION_MULTIPLY, 8, 0, "", "%rax", "%rsi", ""}, /* mul %rsi */
	{"48 0f af c6", OPERATION_MULTIPLY, 8, 0, "", "%rax", "%rsi", ""},
	{"48 6b c6 0c", OPERATION_MULTIPLY, 8, 0, "S", "%rax", "$0xc", ""},
	{"48 8b 04 f7", OPERATION_MOVE, 8, 0, "l", "%rax", "(%rdi,%rsi,8)", "(%rdi,%rsi,8)"},
	{"8b 44 24 10", OPERATION_MOVE, 4, 0, "lk", "%eax", "0x10(%rsp)", "0x10(%rsp)"},
	{"8b 05 00 01 00 00", OPERATION_MOVE, 4, 0, "lf", "%eax", "0x100(%rip)", "0x100(%rip)"},
	{"89 07", OPERATION_MOVE, 4, 0, "s", "(%rdi)", "%eax", "(%rdi)"},
	{"b8 05 00 00 00", OPERATION_MOVE, 4, 0, "RS", "%eax", "$0x5", ""},
	{"31 c0", OPERATION_OTHER, 4, 0, "R", "%eax", "%eax", ""},
	{"31 c8", OPERATION_OTHER, 4, 0, "", "%eax", "%ecx", ""},
	{"48 8d 05 00 01 00 00", OPERATION_ADDRESS, 8, 0, "fR", "%rax", "0x100(%rip)",
		"0x100(%rip)"},
	{"48 8d 47 08", OPERATION_ADDRESS, 8, 0, "", "%rax", "0x8(%rdi)", "0x8(%rdi)"},
	{"48 83 ec 18", OPERATION_OTHER, 8, 0, "Sp", "%rsp", "$0x18", ""},
	{"48 d3 e0", OPERATION_SHIFT, 8, 0, "", "%rax", "%cl", ""},
	{"48 39 f8", OPERATION_COMPARE, 8, 0, "", "%rax", "%rdi", ""},
	{"f3 48 a5", OPERATION_COPY, 8, 0, "lsr", "", "", NULL},
	{"a4", OPERATION_COPY, 1, 0, "ls", "", "", NULL},
	{"f3 aa", OPERATION_FILL, 1, 0, "sr", "", "", NULL},
	{"f2 ae", OPERATION_STRING, 1, 0, "lr", "", "", NULL},
	{"f2 0f 10 07", OPERATION_MOVE, 16, 8, "l", "%xmm0", "(%rdi)",
		"(%rdi)"},                                                /* movsd, not movs */
	{"f3 0f 58 c1", OPERATION_OTHER, 4, 4, "", "%xmm0", "%xmm1", ""}, /* addss */
	{"64 48 8b 04 25 28 00 00 00", OPERATION_MOVE, 8, 0, "l", "%rax", "%fs:0x28", "%fs:0x28"},
	{"6a 07", OPERATION_MOVE, 8, 0, "R", "$0x7", "", ""},
	{"50", OPERATION_MOVE, 8, 0, "", "%rax", "", ""}, /* push: its stack is no operand */
	{"e8 00 00 00 00", OPERATION_OTHER, 0, 0, "R", "", "", ""},
	{"ff d0", OPERATION_OTHER, 0, 0, "", "", "", ""},
};

static size_t from_hex(const char *hex, uint8_t *bytes)
{
	size_t n = 0;

	for (char *end; *hex; hex = end)
		bytes[n++] = (uint8_t)strtoul(hex, &end, 16);
	return n;
}

static struct roles roles_of(const char *hex)
{
	struct roles r;
	uint8_t bytes[16];
	size_t n = from_hex(hex, bytes);

	assert_int_equal(isa_roles(bytes, n, 0x1000, &r), 0);
	assert_int_equal(r.length, n);
	return r;
}

static struct role_texts texts_of(const char *hex)
{
	struct role_texts t;
	uint8_t bytes[16];

	assert_int_equal(isa_role_texts(bytes, from_hex(hex, bytes), &t), 0);
	return t;
}

static void flags_of(const struct roles *r, char text[9])
{
	const struct {
		bool set;
		char flag;
	} list[] = {{r->loads, 'l'}, {r->stores, 's'}, {r->repeats, 'r'}, {r->on_stack, 'k'},
		{r->fixed_address, 'f'}, {r->constant_result, 'R'}, {r->constant_source, 'S'},
		{r->moves_stack, 'p'}};

	for (size_t i = 0; i < 8; i++)
		if (list[i].set)
			*text++ = list[i].flag;
	*text = 0;
}

static void operands(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct roles r = roles_of(cases[i].bytes);
		struct role_texts t = texts_of(cases[i].bytes);
		char flags[9];

		flags_of(&r, flags);
		assert_int_equal(r.operation, cases[i].operation);
		assert_int_equal(r.size, cases[i].size);
		assert_int_equal(r.float_size, cases[i].float_size);
		assert_string_equal(flags, cases[i].flags);
		assert_string_equal(t.result, cases[i].result);
		assert_string_equal(t.source, cases[i].source);
		if (cases[i].memory)
			assert_string_equal(t.memory, cases[i].memory);
		assert_int_equal(r.place != 0, t.memory[0] != 0);
	}
}

static void registers(void **state)
{
	struct roles r = roles_of("48 8b 04 f7"); /* mov (%rdi,%rsi,8),%rax */

	(void)state;
	assert_int_equal(r.reads, 1 << 7 | 1 << 6);
	assert_int_equal(r.writes, 1 << 0);
	r = roles_of("48 f7 f9"); /* idiv %rcx */
	assert_int_equal(r.reads, 1 << 0 | 1 << 1 | 1 << 2);
	assert_int_equal(r.writes, 1 << 0 | 1 << 2);
	r = roles_of("31 ff"); /* xor %edi,%edi reads nothing */
	assert_int_equal(r.reads, 0);
	assert_int_equal(r.writes, 1 << 7);
	r = roles_of("40 84 f6"); /* test %sil,%sil */
	assert_int_equal(r.reads, 1 << 6);
	r = roles_of("4d 89 c8"); /* mov %r9,%r8 */
	assert_int_equal(r.reads, 1 << 9);
	assert_int_equal(r.writes, 1 << 8);
}

/* A load and a store of one place are written alike. */
static void places(void **state)
{
	struct roles load = roles_of("48 8b 47 08"), store = roles_of("48 89 47 08");
	struct roles below = roles_of("48 8b 47 10"), by = roles_of("48 8b 46 08");

	(void)state;
	assert_true(load.place && load.place == store.place);
	assert_true(load.place != below.place && load.place != by.place);
}

static void memory(void **state)
{
	(void)state;
	assert_int_equal(roles_of("48 8b 04 f7").memory_size, 8);
	assert_int_equal(roles_of("48 63 04 b7").memory_size, 4); /* movslq (%rdi,%rsi,4),%rax */
	assert_int_equal(roles_of("0f b6 07").memory_size, 1);    /* movzbl (%rdi),%eax */
	assert_int_equal(roles_of("48 89 f8").memory_size, 0);
	assert_true(roles_of("64 48 8b 04 25 28 00 00 00").guard);
	assert_true(roles_of("64 48 2b 14 25 28 00 00 00").guard);  /* sub */
	assert_false(roles_of("64 48 8b 04 25 30 00 00 00").guard); /* %fs:0x30 */
	assert_false(roles_of("64 48 8b 40 28").guard);             /* %fs:0x28(%rax) */
	assert_false(roles_of("48 8b 47 28").guard);
}

static void constants(void **state)
{
	(void)state;
	assert_int_equal(roles_of("b8 ff ff ff ff").constant, 0xffffffff);
	assert_int_equal(roles_of("48 c7 c0 ff ff ff ff").constant, UINT64_MAX);
	assert_int_equal(roles_of("48 b8 01 02 03 04 05 06 07 08").constant, 0x0807060504030201);
	assert_int_equal(roles_of("b0 80").constant, 0x80);
	assert_int_equal(roles_of("48 83 c0 05").constant, 0); /* add */
	assert_int_equal(roles_of("89 c8").constant, 0);
}

static void arguments(void **state)
{
	(void)state;
	assert_int_equal(isa_argument_register(0), 7);
	assert_int_equal(isa_argument_register(5), 9);
	assert_string_equal(isa_argument_name(2), "%rdx");
}

static void no_instruction(void **state)
{
	struct roles r = {.size = 77};
	struct role_texts t;

	(void)state;
	assert_int_equal(isa_roles("\x06", 1, 0, &r), -EBADMSG);
	assert_int_equal(isa_roles("\x48\x8b", 2, 0, &r), -EBADMSG);
	assert_int_equal(isa_roles("", 0, 0, &r), -EBADMSG);
	assert_int_equal(isa_role_texts("\x48\x8b", 2, &t), -EBADMSG);
	assert_int_equal(r.size, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operands),
		cmocka_unit_test(registers),
		cmocka_unit_test(places),
		cmocka_unit_test(memory),
		cmocka_unit_test(constants),
		cmocka_unit_test(arguments),
		cmocka_unit_test(no_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
