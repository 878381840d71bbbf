/*
 * What is encoded is decoded again, for every register and every form of address.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "isa/encode.h"
#include "isa/quick.h"

static struct buf b;

static struct form decoded(void)
{
	struct form f;

	assert_int_equal(form_by_zydis(b.p, b.n, 0, &f), 0);
	assert_int_equal(f.length, b.n);
	b.n = 0;
	return f;
}

static void load_again(const struct encode_memory *m)
{
	encode_memory(&b, ENCODE_LOAD, 9, m);
	struct form f = decoded();
	assert_int_equal(f.op, FORM_MOVE);
	assert_int_equal(f.to.reg, 9);
	assert_int_equal(f.to.size, 8);
	assert_int_equal(f.base, m->base);
	assert_int_equal(f.index, m->index);
	if (m->index != REG_NONE)
		assert_int_equal(f.scale, m->scale);
	assert_int_equal(f.displacement, (uint64_t)(int64_t)m->displacement);
	assert_int_equal(f.other_space, m->thread);
	assert_true(f.loads && !f.stores);
}

static void test_addresses(void **state)
{
	static const int32_t displacements[] = {0, 1, 127, 128, -128, -129, INT32_MAX, INT32_MIN};

	(void)state;
	for (unsigned base = 0; base <= 16; base++)
		for (unsigned index = 0; index <= 16; index++)
			for (unsigned i = 0; i < 8; i++) {
				struct encode_memory m = {
					.base = (uint8_t)(base == 16 ? REG_NONE : base),
					.index = (uint8_t)(index == 16 ? REG_NONE : index),
					.scale = (uint8_t)(1 << (i & 3)),
					.thread = base == 16,
					.displacement = displacements[i]};
				if (index != REG_RSP)
					load_again(&m);
			}
}

/* The displacement is where it is said to be, also before an immediate. */
static void test_relative(void **state)
{
	const struct encode_memory m = {.base = ENCODE_RIP, .index = REG_NONE, .scale = 1};
	size_t at = encode_immediate(&b, ENCODE_ADD_TO, &m, 1000);
	int32_t by = 0x1234;

	(void)state;
	memcpy(b.p + at, &by, sizeof by);
	uint64_t end = b.n;
	struct form f = decoded();
	assert_int_equal(f.op, FORM_ADD);
	assert_int_equal(f.displacement, end + 0x1234);
	assert_int_equal(f.immediate, 1000);
	at = encode_branch(&b, 8);
	assert_int_equal(at, 2);
	f = decoded();
	assert_int_equal(f.condition, 8);
	at = encode_jump(&b);
	assert_int_equal(at, 1);
	assert_int_equal(decoded().kind, INSN_JUMP);
}

static void test_registers(void **state)
{
	static const struct {
		enum encode_op op;
		uint8_t form;
	} ops[] = {{ENCODE_LOAD, FORM_MOVE}, {ENCODE_ADD, FORM_ADD}, {ENCODE_SUB, FORM_SUBTRACT},
		{ENCODE_COMPARE, FORM_COMPARE}};
	static const uint64_t constants[] = {0, 77, UINT32_MAX, -1ull, 0x123456789abcdef0};
	struct form f;

	(void)state;
	for (unsigned reg = 0; reg < 16; reg++) {
		for (unsigned i = 0; i < 4; i++) {
			encode_registers(&b, ops[i].op, reg, 15 - reg);
			f = decoded();
			assert_int_equal(f.op, ops[i].form);
			assert_int_equal(f.to.reg, reg);
			assert_int_equal(f.from.reg, 15 - reg);
			if (!i)
				continue;
			encode_register_immediate(&b, ops[i].op, reg, i == 1 ? -5 : 50000);
			f = decoded();
			assert_int_equal(f.op, ops[i].form);
			assert_int_equal(f.to.reg, reg);
			assert_int_equal(f.immediate, i == 1 ? -5 : 50000);
		}
		for (unsigned i = 0; i < 5; i++) {
			encode_constant(&b, reg, constants[i]);
			f = decoded();
			assert_int_equal(f.op, FORM_MOVE);
			assert_int_equal(f.to.reg, reg);
			uint64_t value = (uint64_t)f.immediate;
			assert_int_equal(f.to.size == 4 ? (uint32_t)value : value, constants[i]);
		}
		encode_test(&b, reg);
		f = decoded();
		assert_int_equal(f.op, FORM_TEST);
		assert_true(f.to.reg == reg && f.from.reg == reg);
	}
}

/* inc and dec leave the carry flag, lahf and sahf all but the overflow flag. */
static void test_flags(void **state)
{
	const struct encode_memory m = {.base = REG_RSP, .index = REG_NONE, .scale = 1};
	struct form f;

	(void)state;
	encode_lock(&b);
	encode_step(&b, &m, true);
	f = decoded();
	assert_int_equal(f.immediate, -1);
	assert_int_equal(f.flags_written, FORM_FLAGS & ~FORM_CF);
	encode_save_flags(&b, false);
	f = decoded();
	assert_int_equal(f.flags_read, FORM_FLAGS & ~FORM_OF);
	encode_restore_flags(&b, false);
	f = decoded();
	assert_int_equal(f.flags_written, FORM_FLAGS & ~FORM_OF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_relative),
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_flags),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);
	buf_deinit(&b);
	return r;
}
