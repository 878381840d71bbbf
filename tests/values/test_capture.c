/* Which values of which instructions are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "values/capture.h"

#define CODE 0x401000ull
#define DATA 0x20000000ull /* word i holds 1000 + i; beyond 64 of them nothing can be read */

enum { ITEMS = 256 };

struct item {
	uint64_t pc, site, value;
	enum value_kind kind;
};

static struct {
	uint8_t code[64];
	struct interp m;
	struct capture capture;
	struct item item[ITEMS];
	unsigned n;
} rig;

static int read_word(void *arg, u64 address, u64 *word)
{
	uint64_t i = (address - DATA) / 8;

	(void)arg;
	*word = 0;
	if (address - CODE < sizeof rig.code)
		memcpy(word, rig.code + (address - CODE), sizeof *word);
	else if (i < 64)
		*word = 1000 + i;
	else
		return -EFAULT;
	return 0;
}

static void keep(void *arg, uint64_t pc, enum value_kind kind, uint64_t site, uint64_t value)
{
	assert_ptr_equal(arg, &rig);
	assert_true(rig.n < ITEMS);
	rig.item[rig.n++] = (struct item){pc, site, value, kind};
}

static void begin(const void *code, size_t size)
{
	struct interp *m = &rig.m;

	memset(rig.code, 0x90, sizeof rig.code);
	memcpy(rig.code, code, size);
	rig.n = 0;
	interp_begin(m, read_word, NULL);
	memset(m->r, 0, sizeof m->r);
	m->r[INTERP_RDI] = DATA;
	m->r[INTERP_RSI] = DATA + 128;
	m->r[INTERP_RSP] = DATA + 256;
	m->ip = CODE;
	interp_set_flags(m, 0x202);
}

static void run(unsigned steps)
{
	capture_begin(&rig.capture, rig.m.r[INTERP_RCX]);
	for (unsigned i = 0; i < steps; i++) {
		assert_int_equal(interp_step(&rig.m), INTERP_GOES_ON);
		capture_step(&rig.capture, &rig.m, keep, &rig);
	}
}

#define BEGIN(...)                                     \
	do {                                           \
		const uint8_t bytes[] = {__VA_ARGS__}; \
		begin(bytes, sizeof bytes);            \
	} while (0)

static unsigned number(enum value_kind kind)
{
	unsigned n = 0;

	for (unsigned i = 0; i < rig.n; i++)
		n += rig.item[i].kind == kind;
	return n;
}

/* The i-th of a kind. */
static const struct item *nth(enum value_kind kind, unsigned n)
{
	for (unsigned i = 0; i < rig.n; i++) {
		if (rig.item[i].kind == kind && n-- == 0)
			return &rig.item[i];
	}
	fail_msg("%s is missing", value_kind_name(kind));
	return NULL;
}

static void expect(enum value_kind kind, unsigned n, uint64_t pc, uint64_t value)
{
	const struct item *i = nth(kind, n);

	assert_int_equal(i->pc, pc);
	assert_int_equal(i->value, value);
	assert_int_equal(i->site, 0);
}

static void test_load(void **state)
{
	(void)state;
	BEGIN(0x48, 0x8b, 0x47, 0x10); /* mov 16(%rdi),%rax */
	run(1);
	expect(VALUE_RESULT, 0, CODE, 1002);
	expect(VALUE_ADDRESS, 0, CODE, DATA + 16);
	assert_int_equal(rig.n, 2);
}

static void test_store(void **state)
{
	(void)state;
	BEGIN(0x48, 0x89, 0x07); /* mov %rax,(%rdi) */
	rig.m.r[INTERP_RAX] = 7;
	run(1);
	expect(VALUE_RESULT, 0, CODE, 7);
	expect(VALUE_ADDRESS, 0, CODE, DATA);
	assert_int_equal(rig.n, 2);
}

/* What cannot be read has an address and no value. */
static void test_unknown(void **state)
{
	(void)state;
	BEGIN(0x48, 0x8b, 0x07, 0x48, 0xff, 0xc0); /* mov (%rdi),%rax; inc %rax */
	rig.m.r[INTERP_RDI] = DATA + 4096;
	run(2);
	expect(VALUE_ADDRESS, 0, CODE, DATA + 4096);
	assert_int_equal(rig.n, 1);
}

static void test_strides(void **state)
{
	(void)state;
	/* 1: mov (%rdi),%rax; mov (%rsi),%rdx; add $24,%rdi; sub $8,%rsi; jmp 1b */
	BEGIN(0x48, 0x8b, 0x07, 0x48, 0x8b, 0x16, 0x48, 0x83, 0xc7, 24, 0x48, 0x83, 0xee, 8, 0xeb,
		0xf0);
	run(15);
	assert_int_equal(number(VALUE_STRIDE), 4);
	for (unsigned i = 0; i < 4; i += 2) {
		expect(VALUE_STRIDE, i, CODE, 24);
		expect(VALUE_STRIDE, i + 1, CODE + 3, -8ull);
	}
	/* Another burst knows nothing of this one. */
	rig.n = 0;
	run(5);
	assert_int_equal(number(VALUE_STRIDE), 0);
}

/* Two instructions that share a place in the list do not get each other's strides. */
static void test_strides_meet(void **state)
{
	(void)state;
	struct capture c;

	capture_begin(&c, 0);
	rig.n = 0;
	for (unsigned i = 0; i < 6; i++) {
		rig.m.effect = (struct interp_effect){.ip = i % 2 ? CODE : CODE + 4096 + 64,
			.address = i * 100,
			.has = INTERP_HAS_ADDRESS | INTERP_LOADS};
		capture_step(&c, &rig.m, keep, &rig);
	}
	assert_int_equal(number(VALUE_ADDRESS), 6);
	for (unsigned i = 0; i < number(VALUE_STRIDE); i++)
		assert_int_equal(nth(VALUE_STRIDE, i)->value, 200);
}

static void test_compare(void **state)
{
	(void)state;
	/* cmp $5,%eax; test %edx,%eax; cmp %rax,(%rdi); bt $3,%eax */
	BEGIN(0x83, 0xf8, 5, 0x85, 0xd0, 0x48, 0x39, 0x07, 0x0f, 0xba, 0xe0, 3);
	rig.m.r[INTERP_RAX] = 77;
	rig.m.r[INTERP_RDX] = 66;
	run(4);
	/* Either side of a comparison may be what does not change. */
	assert_int_equal(number(VALUE_RESULT), 2);
	expect(VALUE_RESULT, 0, CODE, 77);
	assert_int_equal(nth(VALUE_RESULT, 1)->pc, CODE + 5);
	expect(VALUE_SOURCE, 0, CODE, 5);
	expect(VALUE_SOURCE, 1, CODE + 3, 66);
	expect(VALUE_SOURCE, 2, CODE + 5, 77);
	expect(VALUE_ADDRESS, 0, CODE + 5, DATA);
	assert_int_equal(rig.n, 6);
}

static void test_slow(void **state)
{
	(void)state;
	/* div %rbx; imul %rbx,%rax; shl %cl,%rbx */
	BEGIN(0x48, 0xf7, 0xf3, 0x48, 0x0f, 0xaf, 0xc3, 0x48, 0xd3, 0xe3);
	rig.m.r[INTERP_RAX] = 100;
	rig.m.r[INTERP_RBX] = 7;
	rig.m.r[INTERP_RCX] = 4;
	run(3);
	expect(VALUE_RESULT, 0, CODE, 14);
	expect(VALUE_SOURCE, 0, CODE, 7);
	expect(VALUE_RESULT, 1, CODE + 3, 98);
	expect(VALUE_SOURCE, 1, CODE + 3, 7);
	expect(VALUE_RESULT, 2, CODE + 7, 112);
	expect(VALUE_SOURCE, 2, CODE + 7, 4);
	assert_int_equal(rig.n, 6);
}

/* Addresses are computed all the time, jumps have no result, and the stack tells little. */
static void test_nothing(void **state)
{
	(void)state;
	/* lea 8(%rdi,%rsi),%rax; push %rax; pop %rdx; jne .+2; jmp .+2; nop */
	BEGIN(0x48, 0x8d, 0x44, 0x37, 8, 0x50, 0x5a, 0x75, 0, 0xeb, 0, 0x90);
	run(6);
	assert_int_equal(rig.n, 0);
}

static void test_call(void **state)
{
	(void)state;
	static const uint8_t order[] = {INTERP_RDI, INTERP_RSI, INTERP_RDX, INTERP_RCX, 8, 9};

	BEGIN(0xe8, 0x0b, 0, 0, 0); /* call CODE + 16 */
	for (unsigned i = 0; i < 6; i++)
		rig.m.r[order[i]] = 500 + i;
	run(1);
	assert_int_equal(rig.n, 6);
	for (unsigned i = 0; i < 6; i++) {
		const struct item *a = nth((enum value_kind)(VALUE_ENTRY0 + i), 0);
		assert_int_equal(a->pc, CODE + 16);
		assert_int_equal(a->site, CODE);
		assert_int_equal(a->value, 500 + i);
	}
}

static void test_call_with_unknown(void **state)
{
	(void)state;
	BEGIN(0xff, 0xd0); /* call *%rax */
	rig.m.r[INTERP_RAX] = CODE + 32;
	rig.m.unknown = 1u << INTERP_RDI;
	rig.m.unknown_low = 1u << INTERP_RDX;
	run(1);
	assert_int_equal(number(VALUE_ENTRY0), 0);
	assert_int_equal(number(VALUE_ENTRY2), 0);
	assert_int_equal(nth(VALUE_ENTRY1, 0)->pc, CODE + 32);
	assert_int_equal(rig.n, 4);
}

static void test_string_length(void **state)
{
	(void)state;
	BEGIN(0xf3, 0xa4, 0xa4, 0xb9, 3, 0, 0, 0, 0xf3,
		0xab); /* rep movsb; movsb; mov $3; rep stosl */
	rig.m.r[INTERP_RCX] = 5;
	run(4);
	assert_int_equal(number(VALUE_LENGTH), 2);
	expect(VALUE_LENGTH, 0, CODE, 5);
	expect(VALUE_LENGTH, 1, CODE + 8, 3);
}

static void test_empty_string(void **state)
{
	(void)state;
	BEGIN(0xf3, 0xa4); /* rep movsb */
	run(1);
	expect(VALUE_LENGTH, 0, CODE, 0);
}

/* The interpreter does a long one in several steps; it has one length. */
static void test_long_string(void **state)
{
	(void)state;
	unsigned steps = 0;

	BEGIN(0xf3, 0xa4, 0xb9, 40, 0, 0, 0, 0xeb, 0xf7); /* 1: rep movsb; mov $40,%ecx; jmp 1b */
	rig.m.r[INTERP_RCX] = 100;
	rig.m.r[INTERP_RSI] = DATA;
	rig.m.r[INTERP_RDI] = DATA + 256;
	capture_begin(&rig.capture, 100);
	for (unsigned jumps = 0; jumps < 2; steps++) {
		assert_int_equal(interp_step(&rig.m), INTERP_GOES_ON);
		capture_step(&rig.capture, &rig.m, keep, &rig);
		jumps += rig.m.effect.ip == CODE + 7;
	}
	assert_true(steps > 8);
	assert_int_equal(number(VALUE_LENGTH), 2);
	expect(VALUE_LENGTH, 0, CODE, 100);
	expect(VALUE_LENGTH, 1, CODE, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_store),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_strides),
		cmocka_unit_test(test_strides_meet),
		cmocka_unit_test(test_compare),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_call),
		cmocka_unit_test(test_call_with_unknown),
		cmocka_unit_test(test_string_length),
		cmocka_unit_test(test_empty_string),
		cmocka_unit_test(test_long_string),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
