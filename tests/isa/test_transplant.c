#include "isa/transplant.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "isa/dice.h"
#include "isa/forms.h"

enum { AT = 0x401000, NONE = 0xff };
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

static size_t from_hex(const char *hex, uint8_t *bytes)
{
	size_t n = 0;

	for (char *end; *hex; hex = end)
		bytes[n++] = (uint8_t)strtoul(hex, &end, 16);
	return n;
}

/* It is all of these bytes, and not there when one is missing. */
static struct transplant transplant(const char *hex)
{
	uint8_t bytes[32];
	size_t n = from_hex(hex, bytes);
	struct transplant t;

	isa_transplant(bytes, n - 1, AT, &t);
	assert_int_equal(t.kind, TRANSPLANT_STOP);
	assert_int_equal(t.length, 0);
	isa_transplant(bytes, n, AT, &t);
	if (t.length != n)
		fail_msg("%s: length %u", hex, t.length);
	return t;
}

static void expect_kind(const char *hex, uint8_t kind)
{
	struct transplant t = transplant(hex);

	if (t.kind != kind)
		fail_msg("%s: kind %u, not %u", hex, t.kind, kind);
}

/* ---- what is left to the program itself ---- */

static void test_stops(void **state)
{
	static const char *const list[] = {
		"0f 05", "0f 34", "cd 80", "cc", "f1", "f4", /* system calls and traps */
		"cf", "48 cf", "0f 07", "cb", "ca 08 00",    /* iret, sysret, far ret */
		"ff 28", "ff 18", "48 ff 2d 00 00 00 00",    /* far */
		"0f 31", "0f 01 f9",                         /* rdtsc, rdtscp */
		"0f 20 c0", "0f 22 d8", "0f 01 10", "0f 30", "0f 32", "0f 08", "e4 10", "ec", "6e",
		"f3 6c",                                        /* in, outs, ins */
		"8e d8", "8e e0", "0f a1", "0f a9", "0f b4 00", /* segments */
		"0f a0", "0f a8",                               /* push fs, gs */
		"f3 48 0f ae c0", "f3 48 0f ae d8",             /* rdfsbase, wrgsbase */
		"0f 01 ef", "0f 01 d0",                         /* wrpkru, xgetbv */
		"0f ae 20", "0f ae 28", "0f c7 20", "0f ae 30", /* xsave and such */
		"0f ae 00", "0f ae 08",                         /* fxsave, fxrstor: large */
		"c7 f8 00 00 00 00", "c6 f8 00", "0f 01 d5", "0f 01 d6", /* transactions */
		"9c", "9d", "66 9c",                      /* pushf: flags that are not there */
		"66 50", "66 58", "66 c9",                /* 16 bits */
		"c8 10 00 00", "d7",                      /* enter, xlat */
		"0f f7 c1", "66 0f f7 c1", "c5 f9 f7 c1", /* maskmov: where rdi points */
		"0f 01 fc",                               /* clzero: where rax points */
		"0f a3 08", "0f ab 08", "0f b3 08", "48 0f bb 08", /* bt mem, reg: anywhere */
		"a0 00 00 00 00 00 00 00 00", "48 a3 00 00 00 00 00 00 00 00",       /* moffs */
		"c4 e2 71 90 04 10", "62 f2 7d 49 92 04 08", "62 f2 7d 49 a2 04 00", /* gather */
		"67 e2 00", "67 e3 00",                         /* ecx counts */
		"67 a4", "67 f3 aa", "64 a4", "65 ac",          /* esi, edi; other segments */
		"66 0f 38 f8 08", "f2 0f 38 f8 08",             /* movdir64b, enqcmd */
		"66 66 66 66 66 66 66 66 66 66 66 66 66 01 00", /* a copy would be too long */
	};

	(void)state;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		expect_kind(list[i], TRANSPLANT_STOP);
}

static void test_no_instruction(void **state)
{
	static const char *const list[] = {"06", "0f ff", "c5 f8", "d6", "62 00 00 00 00 00",
		"66 66 66 66 66 66 66 66 66 66 66 66 66 66 90"};
	struct transplant t;
	uint8_t bytes[32];

	(void)state;
	for (size_t i = 0; i < sizeof list / sizeof *list - 1; i++) {
		isa_transplant(bytes, from_hex(list[i], bytes), AT, &t);
		assert_int_equal(t.kind, TRANSPLANT_STOP);
		assert_int_equal(t.length, 0);
	}
	isa_transplant(NULL, 0, AT, &t);
	assert_int_equal(t.length, 0);
}

static void test_skips(void **state)
{
	static const char *const list[] = {"90", "66 90", "0f 1f 00", "0f 1f 84 00 00 00 00 00",
		"66 2e 0f 1f 84 00 00 00 00 00", "0f 18 08", "0f 0d 08", "0f 18 05 00 00 00 00",
		"0f ae 38", "66 0f ae 38"};

	(void)state;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		expect_kind(list[i], TRANSPLANT_SKIP);
}

/* ---- ways ---- */

static void test_branches(void **state)
{
	uint8_t code[] = {0x70, 0x10}, far[] = {0x0f, 0x80, 0xfa, 0xff, 0xff, 0xff};
	struct transplant t;

	(void)state;
	for (uint8_t i = 0; i < 16; i++) {
		code[0] = 0x70 + i;
		far[1] = 0x80 + i;
		isa_transplant(code, sizeof code, AT, &t);
		assert_int_equal(t.kind, TRANSPLANT_BRANCH);
		assert_int_equal(t.condition, i);
		assert_int_equal(t.target, AT + 0x12);
		isa_transplant(far, sizeof far, AT, &t);
		assert_int_equal(t.kind, TRANSPLANT_BRANCH);
		assert_int_equal(t.condition, i);
		assert_int_equal(t.target, AT);
	}
	for (uint8_t i = 0; i < 4; i++) {
		code[0] = 0xe0 + i;
		code[1] = 0x80;
		isa_transplant(code, sizeof code, AT, &t);
		assert_int_equal(t.kind, TRANSPLANT_BRANCH);
		assert_int_equal(t.condition, TRANSPLANT_LOOPNE + i);
		assert_int_equal(t.target, AT + 2 - 128);
	}
	expect_kind("2e 75 00", TRANSPLANT_BRANCH); /* hints */
	expect_kind("f2 75 00", TRANSPLANT_BRANCH); /* bnd */
}

static void test_direct(void **state)
{
	static const struct {
		const char *hex;
		uint8_t kind;
		uint64_t target;
	} list[] = {
		{"eb fe", TRANSPLANT_JUMP, AT},
		{"e9 00 01 00 00", TRANSPLANT_JUMP, AT + 0x105},
		{"e8 fb ff ff ff", TRANSPLANT_CALL, AT},
		{"f2 e8 fa ff ff ff", TRANSPLANT_CALL, AT},
		{"e8 00 00 00 80", TRANSPLANT_CALL, AT + 5 - 0x80000000ull},
		{"c3", TRANSPLANT_RETURN, 0},
		{"f3 c3", TRANSPLANT_RETURN, 0},
		{"c2 08 00", TRANSPLANT_RETURN, 8},
		{"c2 ff ff", TRANSPLANT_RETURN, 0xffff},
		{"6a ff", TRANSPLANT_PUSH, UINT64_MAX},
		{"68 00 00 00 80", TRANSPLANT_PUSH, 0xffffffff80000000},
		{"68 ff ff ff 7f", TRANSPLANT_PUSH, 0x7fffffff},
		{"c9", TRANSPLANT_LEAVE, 0},
		{"fc", TRANSPLANT_DIRECTION, 0},
		{"fd", TRANSPLANT_DIRECTION, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		struct transplant t = transplant(list[i].hex);

		if (t.kind != list[i].kind || t.target != list[i].target)
			fail_msg("%s: kind %u, target %lx", list[i].hex, t.kind, t.target);
		assert_int_equal(t.reg, NONE);
		assert_int_equal(t.size, 0);
	}
}

static void test_through_registers(void **state)
{
	static const struct {
		const char *hex;
		uint8_t kind, reg;
	} list[] = {
		{"ff e0", TRANSPLANT_JUMP_INDIRECT, RAX},
		{"3e ff e0", TRANSPLANT_JUMP_INDIRECT, RAX}, /* notrack */
		{"41 ff e3", TRANSPLANT_JUMP_INDIRECT, 11},
		{"ff d2", TRANSPLANT_CALL_INDIRECT, RDX},
		{"41 ff d7", TRANSPLANT_CALL_INDIRECT, 15},
		{"55", TRANSPLANT_PUSH, RBP},
		{"41 57", TRANSPLANT_PUSH, 15},
		{"54", TRANSPLANT_PUSH, RSP},
		{"ff f3", TRANSPLANT_PUSH, RBX},
		{"5d", TRANSPLANT_POP, RBP},
		{"5c", TRANSPLANT_POP, RSP},
		{"41 5c", TRANSPLANT_POP, 12},
		{"8f c6", TRANSPLANT_POP, RSI},
	};

	(void)state;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		struct transplant t = transplant(list[i].hex);

		if (t.kind != list[i].kind || t.reg != list[i].reg || t.size)
			fail_msg("%s: kind %u, reg %u", list[i].hex, t.kind, t.reg);
	}
}

static void test_strings(void **state)
{
	static const struct {
		const char *hex;
		uint8_t kind, size, repeat;
	} list[] = {
		{"a4", TRANSPLANT_MOVS, 1, TRANSPLANT_ONCE},
		{"66 a5", TRANSPLANT_MOVS, 2, TRANSPLANT_ONCE},
		{"f3 a5", TRANSPLANT_MOVS, 4, TRANSPLANT_REPEAT},
		{"f3 48 a5", TRANSPLANT_MOVS, 8, TRANSPLANT_REPEAT},
		{"aa", TRANSPLANT_STOS, 1, TRANSPLANT_ONCE},
		{"66 f3 ab", TRANSPLANT_STOS, 2, TRANSPLANT_REPEAT},
		{"ab", TRANSPLANT_STOS, 4, TRANSPLANT_ONCE},
		{"f3 48 ab", TRANSPLANT_STOS, 8, TRANSPLANT_REPEAT},
		{"ac", TRANSPLANT_LODS, 1, TRANSPLANT_ONCE},
		{"66 ad", TRANSPLANT_LODS, 2, TRANSPLANT_ONCE},
		{"ad", TRANSPLANT_LODS, 4, TRANSPLANT_ONCE},
		{"48 ad", TRANSPLANT_LODS, 8, TRANSPLANT_ONCE},
		{"f2 ae", TRANSPLANT_SCAS, 1, TRANSPLANT_REPEAT_NOT},
		{"f3 66 af", TRANSPLANT_SCAS, 2, TRANSPLANT_REPEAT},
		{"af", TRANSPLANT_SCAS, 4, TRANSPLANT_ONCE},
		{"f2 48 af", TRANSPLANT_SCAS, 8, TRANSPLANT_REPEAT_NOT},
		{"f3 a6", TRANSPLANT_CMPS, 1, TRANSPLANT_REPEAT},
		{"66 a7", TRANSPLANT_CMPS, 2, TRANSPLANT_ONCE},
		{"a7", TRANSPLANT_CMPS, 4, TRANSPLANT_ONCE},
		{"f2 48 a7", TRANSPLANT_CMPS, 8, TRANSPLANT_REPEAT_NOT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		struct transplant t = transplant(list[i].hex);

		if (t.kind != list[i].kind || t.size != list[i].size || t.repeat != list[i].repeat)
			fail_msg("%s: kind %u, size %u, repeat %u", list[i].hex, t.kind, t.size,
				t.repeat);
	}
}

static void test_addresses(void **state)
{
	struct transplant t = transplant("48 8d 05 00 01 00 00"); /* lea 0x100(%rip),%rax */

	(void)state;
	assert_int_equal(t.kind, TRANSPLANT_ADDRESS);
	assert_int_equal(t.reg, RAX);
	assert_int_equal(t.reg_size, 8);
	assert_int_equal(t.displacement, AT + 7 + 0x100);
	assert_int_equal(t.base, NONE);
	assert_false(t.narrow);
	t = transplant("44 8d 0d f9 ff ff ff");
	assert_int_equal(t.kind, TRANSPLANT_ADDRESS);
	assert_int_equal(t.reg, 9);
	assert_int_equal(t.reg_size, 4);
	assert_int_equal(t.displacement, AT);
	t = transplant("67 48 8d 05 00 00 00 f0"); /* of eip */
	assert_int_equal(t.kind, TRANSPLANT_ADDRESS);
	assert_true(t.narrow);
	t = transplant("64 48 8d 05 00 00 00 00"); /* its segment means nothing */
	assert_int_equal(t.segment, 0);
	expect_kind("66 8d 05 00 00 00 00", TRANSPLANT_STOP);
	expect_kind("48 8d 44 8b 10", TRANSPLANT_COPY);
	expect_kind("64 48 8d 04 25 00 00 00 00", TRANSPLANT_COPY);
	assert_int_equal(transplant("67 8d 04 08").size, 0);
}

/* ---- copies ---- */

static void test_copied_whole(void **state)
{
	static const char *const list[] = {"48 89 e5", "01 c8", "f7 f1", "0f a2", "0f 0b", "f5",
		"0f ba e0 05", "0f a3 c8", "48 8d 44 8b 10", "c5 f8 77", "0f 57 c0", "d9 e8",
		"62 f1 7c 48 58 c1", "f3 0f 1e fa", "f3 90", "66 48 0f 6e c7", "c4 e2 78 f3 c8",
		"67 01 c8", "8c d8", "f3 48 0f b8 c7", "c5 f8 92 c8"};
	struct transplant t;
	uint8_t bytes[32];

	(void)state;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		expect_kind(list[i], TRANSPLANT_COPY);
		t = transplant(list[i]);
		assert_int_equal(t.ncode, from_hex(list[i], bytes));
		assert_memory_equal(t.code, bytes, t.ncode);
		assert_int_equal(t.moved, 0);
		assert_int_equal(t.size, 0);
	}
}

enum { L = 1, S = 2, FS = 4, GS = 8, NARROW = 16 };

static const struct {
	const char *hex, *copy;
	uint8_t moved, size, flags, base, index, scale;
	uint64_t displacement;
} moves[] = {
	/* mov */
	{"48 8b 07", "48 8b 05 0 0 0 0", 3, 8, L, RDI, NONE, 0, 0},
	{"48 89 07", "48 89 05 0 0 0 0", 3, 8, S, RDI, NONE, 0, 0},
	{"8b 44 24 08", "8b 05 0 0 0 0", 2, 4, L, RSP, NONE, 0, 8},
	{"8a 45 ff", "8a 05 0 0 0 0", 2, 1, L, RBP, NONE, 0, UINT64_MAX},
	{"4f 8b 54 eb 80", "4f 8b 15 0 0 0 0", 3, 8, L, 11, 13, 8, (uint64_t)-128},
	{"8b 04 cd 00 00 00 80", "8b 05 0 0 0 0", 2, 4, L, NONE, RCX, 8, 0xffffffff80000000},
	{"8b 04 25 00 01 00 00", "8b 05 0 0 0 0", 2, 4, L, NONE, NONE, 0, 0x100},
	{"48 8b 05 00 01 00 00", "48 8b 05 0 0 0 0", 3, 8, L, NONE, NONE, 0, AT + 0x107},
	{"66 c7 07 34 12", "66 c7 05 0 0 0 0 34 12", 3, 2, S, RDI, NONE, 0, 0},
	{"c7 45 f8 05 00 00 00", "c7 05 0 0 0 0 5 0 0 0", 2, 4, S, RBP, NONE, 0, (uint64_t)-8},
	{"83 3d 00 01 00 00 07", "83 3d 0 0 0 0 7", 2, 4, L, NONE, NONE, 0, AT + 0x107},
	/* read and written */
	{"ff 07", "ff 05 0 0 0 0", 2, 4, L | S, RDI, NONE, 0, 0},
	{"f0 48 0f b1 0f", "f0 48 0f b1 0d 0 0 0 0", 5, 8, L | S, RDI, NONE, 0, 0},
	{"f0 48 0f c7 0f", "f0 48 0f c7 0d 0 0 0 0", 5, 16, L | S, RDI, NONE, 0, 0},
	{"87 07", "87 05 0 0 0 0", 2, 4, L | S, RDI, NONE, 0, 0},
	{"0f ba 2f 05", "0f ba 2d 0 0 0 0 5", 3, 4, L | S, RDI, NONE, 0, 0},
	/* segments, 32-bit addresses: the copy has neither */
	{"64 48 8b 04 25 28 00 00 00", "48 8b 05 0 0 0 0", 3, 8, L | FS, NONE, NONE, 0, 0x28},
	{"65 8b 07", "8b 05 0 0 0 0", 2, 4, L | GS, RDI, NONE, 0, 0},
	{"67 8b 07", "8b 05 0 0 0 0", 2, 4, L | NARROW, RDI, NONE, 0, 0},
	{"67 66 8b 44 8f 10", "66 8b 05 0 0 0 0", 3, 2, L | NARROW, RDI, RCX, 4, 16},
	{"67 8b 05 00 00 00 f0", "8b 05 0 0 0 0", 2, 4, L | NARROW, NONE, NONE, 0,
		AT + 7 - 0x10000000ull},
	/* vectors */
	{"0f 28 0f", "0f 28 0d 0 0 0 0", 3, 16, L, RDI, NONE, 0, 0},
	{"66 0f 7f 44 24 20", "66 0f 7f 05 0 0 0 0", 4, 16, S, RSP, NONE, 0, 32},
	{"f2 0f 58 47 08", "f2 0f 58 05 0 0 0 0", 4, 8, L, RDI, NONE, 0, 8},
	{"66 0f 3a 0f 07 04", "66 0f 3a 0f 05 0 0 0 0 4", 5, 16, L, RDI, NONE, 0, 0},
	{"c5 fc 58 0d 00 01 00 00", "c5 fc 58 0d 0 0 0 0", 4, 32, L, NONE, NONE, 0, AT + 0x108},
	{"c4 a1 7c 58 04 8f", "c4 a1 7c 58 05 0 0 0 0", 5, 32, L, RDI, 9, 4, 0},
	{"c4 c3 7d 19 04 24 01", "c4 c3 7d 19 05 0 0 0 0 1", 5, 16, S, 12, NONE, 0, 0},
	{"62 f1 7c 48 10 05 00 01 00 00", "62 f1 7c 48 10 05 0 0 0 0", 6, 64, L, NONE, NONE, 0,
		AT + 0x10a},
	{"62 b1 7c 48 10 44 b7 01", "62 b1 7c 48 10 05 0 0 0 0", 6, 64, L, RDI, 14, 4, 64},
	{"62 f1 7c 58 58 47 02", "62 f1 7c 58 58 05 0 0 0 0", 6, 4, L, RDI, NONE, 0, 8},
	/* Where a mask is 0 what was there stays. */
	{"62 f1 fd 49 7f 07", "62 f1 fd 49 7f 05 0 0 0 0", 6, 64, L | S, RDI, NONE, 0, 0},
	{"62 f1 fd 48 7f 07", "62 f1 fd 48 7f 05 0 0 0 0", 6, 64, S, RDI, NONE, 0, 0},
	{"62 f2 7d 49 8a 07", "62 f2 7d 49 8a 05 0 0 0 0", 6, 64, L | S, RDI, NONE, 0, 0},
	{"c4 e2 75 2e 07", "c4 e2 75 2e 05 0 0 0 0", 5, 32, L | S, RDI, NONE, 0, 0},
	{"c4 e2 75 2c 07", "c4 e2 75 2c 05 0 0 0 0", 5, 32, L, RDI, NONE, 0, 0},
	{"62 f3 fd 48 25 07 96", "62 f3 fd 48 25 05 0 0 0 0 96", 6, 64, L, RDI, NONE, 0, 0},
	/* x87, and its state without registers */
	{"db 2f", "db 2d 0 0 0 0", 2, 10, L, RDI, NONE, 0, 0},
	{"d9 3f", "d9 3d 0 0 0 0", 2, 2, S, RDI, NONE, 0, 0},
	{"0f ae 1f", "0f ae 1d 0 0 0 0", 3, 4, S, RDI, NONE, 0, 0},
};

static void test_moved(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
		struct transplant t = transplant(moves[i].hex);
		uint8_t copy[32], flags = moves[i].flags;
		size_t n = from_hex(moves[i].copy, copy);

		if (t.kind != TRANSPLANT_COPY || t.ncode != n || memcmp(t.code, copy, n) ||
			t.moved != moves[i].moved)
			fail_msg("%s: the copy", moves[i].hex);
		if (t.size != moves[i].size || t.loads != !!(flags & L) ||
			t.stores != !!(flags & S))
			fail_msg("%s: size %u, loads %d, stores %d", moves[i].hex, t.size, t.loads,
				t.stores);
		if (t.base != moves[i].base || t.index != moves[i].index ||
			(t.index != NONE && t.scale != moves[i].scale) ||
			t.displacement != moves[i].displacement || t.narrow != !!(flags & NARROW) ||
			t.segment != (flags & FS          ? 1
					     : flags & GS ? 2
							  : 0))
			fail_msg("%s: the address", moves[i].hex);
	}
}

/* Jumps, calls, pushes and pops have no copy, but an address. */
static void test_through_memory(void **state)
{
	static const struct {
		const char *hex;
		uint8_t kind, base, index;
		uint64_t displacement;
	} list[] = {
		{"ff 24 c5 00 20 40 00", TRANSPLANT_JUMP_INDIRECT, NONE, RAX, 0x402000},
		{"ff 25 e2 2f 00 00", TRANSPLANT_JUMP_INDIRECT, NONE, NONE, AT + 6 + 0x2fe2},
		{"f2 ff 25 00 00 00 00", TRANSPLANT_JUMP_INDIRECT, NONE, NONE, AT + 7},
		{"ff 15 fa ff ff ff", TRANSPLANT_CALL_INDIRECT, NONE, NONE, AT},
		{"41 ff 54 24 10", TRANSPLANT_CALL_INDIRECT, 12, NONE, 16},
		{"ff 74 24 08", TRANSPLANT_PUSH, RSP, NONE, 8},
		{"8f 04 24", TRANSPLANT_POP, RSP, NONE, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		struct transplant t = transplant(list[i].hex);

		if (t.kind != list[i].kind || t.base != list[i].base || t.index != list[i].index ||
			t.displacement != list[i].displacement)
			fail_msg("%s", list[i].hex);
		assert_int_equal(t.reg, NONE);
		assert_int_equal(t.size, 8);
		assert_int_equal(t.ncode, 0);
	}
	assert_int_equal(transplant("64 ff 14 25 10 00 00 00").segment, 1);
	assert_int_equal(transplant("65 ff 32").segment, 2);
}

/* ---- any instruction ---- */

/* What a copy does to memory is what its one operand says. */
static void expect_of(const struct form *f, const struct transplant *t)
{
	unsigned memory = 0, hidden = 0;

	for (unsigned i = 0; i < f->in.operand_count; i++)
		if (f->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
			f->ops[i].mem.type == ZYDIS_MEMOP_TYPE_MEM)
			i < f->in.operand_count_visible ? memory++ : hidden++;
	if (t->kind != TRANSPLANT_COPY) {
		assert_int_equal(t->ncode, 0);
		return;
	}
	assert_int_equal(hidden, 0);
	assert_int_equal(t->size != 0, memory);
	assert_int_equal(t->moved != 0, memory);
	if (t->size) {
		assert_in_range(t->moved, 2, t->ncode - 4);
		assert_true(t->loads || t->stores);
		assert_in_range(t->size, 1, TRANSPLANT_OPERAND);
	} else {
		assert_int_equal(t->ncode, f->in.length);
	}
}

/* The copy is the same instruction with the same operands, but for the place in memory. */
static void expect_same(const struct form *f, const struct transplant *t)
{
	struct form copy;

	assert_true(form_decode(&copy, t->code, t->ncode));
	assert_int_equal(copy.in.length, t->ncode);
	assert_int_equal(copy.in.mnemonic, f->in.mnemonic);
	assert_int_equal(copy.in.operand_count, f->in.operand_count);
	assert_int_equal(copy.in.operand_width, f->in.operand_width);
	for (unsigned i = 0; i < f->in.operand_count; i++) {
		assert_int_equal(copy.ops[i].type, f->ops[i].type);
		assert_int_equal(copy.ops[i].size, f->ops[i].size);
		if (f->ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER)
			assert_int_equal(copy.ops[i].reg.value, f->ops[i].reg.value);
		else if (f->ops[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			assert_int_equal(copy.ops[i].imm.value.u, f->ops[i].imm.value.u);
		else if (f->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY && t->size)
			assert_int_equal(copy.ops[i].mem.base, ZYDIS_REGISTER_RIP);
	}
}

static void test_any(void **state)
{
	enum { ROLLS = 400000 };
	struct dice d = {.state = 7};
	unsigned copies = 0, moved = 0;

	(void)state;
	for (int i = 0; i < ROLLS; i++) {
		struct transplant t;
		struct form f;

		if (!form_roll(&d, &f))
			continue;
		isa_transplant(f.bytes, f.in.length, AT, &t);
		assert_int_equal(t.length, f.in.length);
		assert_in_range(t.ncode, 0, TRANSPLANT_LENGTH);
		expect_of(&f, &t);
		if (t.kind != TRANSPLANT_COPY)
			continue;
		expect_same(&f, &t);
		copies++;
		moved += t.moved != 0;
	}
	assert_true(copies > ROLLS / 4);
	assert_true(moved > ROLLS / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stops),
		cmocka_unit_test(test_no_instruction),
		cmocka_unit_test(test_skips),
		cmocka_unit_test(test_branches),
		cmocka_unit_test(test_direct),
		cmocka_unit_test(test_through_registers),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_copied_whole),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_through_memory),
		cmocka_unit_test(test_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
