/*
 * Branches in all their forms lead where they are told to, at any distance.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "edit/edit_internal.h"
#include "isa/decode.h"

enum { OLD = 0x1000, NEW = 0x200000 };

static struct flow_insn decoded(const uint8_t *code, size_t n)
{
	struct insn insn;

	assert_int_equal(isa_decode(code, n, OLD, &insn), 0);
	return (struct flow_insn){.address = OLD,
		.relative = (int32_t)(insn.target - OLD - insn.length),
		.length = insn.length,
		.kind = (uint8_t)insn.kind};
}

/* Follows direct jumps from an address of the written code until it is left. */
static uint64_t follow(const uint8_t *out, size_t n, uint64_t at, bool taken)
{
	struct insn insn;

	while (at - NEW < n) {
		assert_int_equal(isa_decode(out + (at - NEW), n - (at - NEW), at, &insn), 0);
		bool goes = insn.kind == INSN_JUMP || (insn.kind == INSN_BRANCH && taken);
		at = goes ? insn.target : at + insn.length;
	}
	return at;
}

static uint8_t condition(const uint8_t *code, size_t n)
{
	return (n >= 6 && code[n - 6] == 0x0f ? code[n - 5] : code[n - 2]) & 0x0f;
}

/* Goes past 100 bytes, or far, where the old one is not taken; else on. */
static void check_turned(const uint8_t *code, const struct flow_insn *i)
{
	bool turns = i->kind == INSN_BRANCH && code[0] != 0xc7 &&
		     branch_shape(code, i) != BRANCH_COUNT; /* not xbegin */
	uint8_t out[32];

	assert_int_equal(branch_turns(code, i), turns);
	for (int grown = 0; turns && grown < 2; grown++) {
		uint32_t size = branch_turned_size(grown);
		uint64_t target = NEW + (grown ? 1 << 20 : 100);
		struct insn old, insn;
		branch_write_turned(code, i, grown, NEW, target, out);
		assert_int_equal(isa_decode(out, size, NEW, &insn), 0);
		assert_int_equal(isa_decode(code, i->length, OLD, &old), 0);
		assert_int_equal(insn.length, size);
		assert_int_equal(insn.target, target);
		assert_int_equal(out[grown] & 0x0f, (condition(code, i->length) ^ 1));
	}
}

static void check(const char *bytes, size_t n, enum branch_shape shape)
{
	const uint8_t *code = (const uint8_t *)bytes;
	struct flow_insn i = decoded(code, n);
	bool jump = i.kind == INSN_JUMP;
	static const int64_t far[] = {0x7ffffff0 - NEW, -0x100000, 1 << 20};

	assert_int_equal(branch_shape(code, &i), shape);
	for (size_t k = 0; k < 3; k++) {
		uint8_t out[32];
		uint32_t size = branch_size(code, &i, true);
		uint64_t target = (uint64_t)(NEW + far[k]);
		branch_write(code, &i, true, NEW, target, out);
		assert_int_equal(follow(out, size, NEW, true), target);
		if (!jump)
			assert_int_equal(follow(out, size, NEW, false), NEW + size);
	}
	check_turned(code, &i);
	uint8_t out[32];
	branch_write(code, &i, false, NEW, NEW + 100, out);
	assert_int_equal(branch_size(code, &i, false), n);
	assert_int_equal(follow(out, n, NEW, true), NEW + 100);
}

#define CHECK(bytes, shape) check(bytes, sizeof bytes - 1, shape)

static void test_forms(void **state)
{
	(void)state;
	CHECK("\xeb\x10", BRANCH_SHORT);
	CHECK("\x74\xf0", BRANCH_SHORT);
	CHECK("\x2e\x75\x05", BRANCH_SHORT); /* with a hint */
	CHECK("\xf2\xeb\x10", BRANCH_SHORT); /* bnd */
	CHECK("\xe9\x10\x20\x30\x00", BRANCH_LONG);
	CHECK("\x0f\x8f\x10\x20\x30\xff", BRANCH_LONG);
	CHECK("\xf2\xe9\x10\x20\x30\x00", BRANCH_LONG);
	CHECK("\xc7\xf8\x10\x00\x00\x00", BRANCH_LONG); /* xbegin */
	CHECK("\xe3\x10", BRANCH_COUNT);                /* jrcxz */
	CHECK("\x67\xe3\x10", BRANCH_COUNT);            /* jecxz */
	CHECK("\xe2\xf0", BRANCH_COUNT);                /* loop */
	CHECK("\xe0\xf0", BRANCH_COUNT);
}

/* What is not written as it was decoded is not touched. */
static void test_strange(void **state)
{
	(void)state;
	const uint8_t jump[] = {0xeb, 0x10}, other[] = {0x0f, 0x05};
	struct flow_insn i = decoded(jump, sizeof jump);

	i.relative++;
	assert_int_equal(branch_shape(jump, &i), BRANCH_STRANGE);
	i.relative = 5;
	assert_int_equal(branch_shape(other, &i), BRANCH_STRANGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_strange),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
