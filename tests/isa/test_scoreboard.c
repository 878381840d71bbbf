#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isa/scoreboard.h"

#define INSNS 64

struct run {
	const struct model *model;
	struct model_insn insn[INSNS];
	struct scoreboard_insn out[INSNS];
	struct scoreboard_sum sum;
	size_t n;
};

static void decode(struct run *r, const char *name, const uint8_t *code, size_t size)
{
	r->model = model_by_name(name);
	assert_non_null(r->model);
	r->n = 0;
	for (size_t at = 0; at < size; at += r->insn[r->n++].length) {
		assert_true(r->n < INSNS);
		assert_int_equal(model_insn(r->model, code + at, size - at, &r->insn[r->n]), 0);
	}
}

static struct run run(const char *name, const char *code, size_t size, bool loop)
{
	struct scoreboard *s;
	struct run r;

	decode(&r, name, (const uint8_t *)code, size);
	s = scoreboard_create(r.model);
	assert_int_equal(loop ? scoreboard_loop(s, r.insn, r.n, r.out, &r.sum)
			      : scoreboard_block(s, r.insn, r.n, r.out, &r.sum),
		0);
	scoreboard_destroy(s);
	return r;
}
#define LOOP(name, code)  run(name, code, sizeof(code) - 1, true)
#define BLOCK(name, code) run(name, code, sizeof(code) - 1, false)

static void assert_cycles(const struct run *r, double cycles)
{
	if (fabs(r->sum.cycles - cycles) > 0.01)
		fail_msg("%.3f cycles, not %.3f", r->sum.cycles, cycles);
}

/* ---- loops ---- */

/* imul %rbx,%rax; add $1,%rcx: three cycles for the chain through rax. */
static void test_chain(void **state)
{
	struct run r = LOOP("icelake", "\x48\x0f\xaf\xc3\x48\x83\xc1\x01");

	(void)state;
	assert_cycles(&r, 3);
	assert_int_equal(r.sum.bound, SCOREBOARD_BOUND_CHAIN);
	assert_true(r.sum.chain == 3);
	assert_true(r.out[0].in_chain && !r.out[1].in_chain);
	assert_int_equal(r.out[0].wait, SCOREBOARD_OPERAND);
	assert_int_equal(r.out[0].on, 0);
	assert_true(r.out[0].carried);
}

/* Eight moves of constants, five a cycle; four arithmetic ports bind first. */
static void test_units(void **state)
{
	struct run r = LOOP("icelake", "\xb8\1\0\0\0\xb9\1\0\0\0\xba\1\0\0\0\xbb\1\0\0\0"
				       "\xbe\1\0\0\0\xbf\1\0\0\0\xbd\1\0\0\0\xb8\2\0\0\0");

	(void)state;
	assert_cycles(&r, 2);
	assert_int_equal(r.sum.bound, SCOREBOARD_BOUND_UNITS);
	assert_int_equal(__builtin_popcount(r.sum.unit_mask), 4);
}

/* Ten nops: only the front end is busy. */
static void test_front(void **state)
{
	struct run r = LOOP("icelake", "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90");

	(void)state;
	assert_cycles(&r, 2);
	assert_int_equal(r.sum.bound, SCOREBOARD_BOUND_FRONT);
	assert_true(r.sum.front == 2 && r.sum.units == 0 && r.sum.chain == 0);
}

/* mov (%rax),%rax: the next address is what was loaded. */
static void test_pointer_chase(void **state)
{
	struct run r = LOOP("icelake", "\x48\x8b\x00");

	(void)state;
	assert_cycles(&r, 5);
	assert_int_equal(r.sum.bound, SCOREBOARD_BOUND_CHAIN);
}

/* add (%rbx),%rax: only the addition is in the chain. */
static void test_late_operand(void **state)
{
	struct run r = LOOP("icelake", "\x48\x03\x03");

	(void)state;
	assert_cycles(&r, 1);
}

/* incq (%rbx): the next one loads what it stored, which llvm-mca does not see. */
static void test_memory(void **state)
{
	struct run r = LOOP("icelake", "\x48\xff\x03"),
		   plain = LOOP("icelake:llvm", "\x48\xff\x03");
	/* incq (%rbx); add $8,%rbx: another place each time */
	struct run moved = LOOP("icelake", "\x48\xff\x03\x48\x83\xc3\x08");
	/* mov %rax,8(%rbx); add $8,%rbx; mov (%rbx),%rax: the same place, written in two ways */
	struct run same = LOOP("icelake", "\x48\x89\x43\x08\x48\x83\xc3\x08\x48\x8b\x03");

	(void)state;
	assert_true(r.sum.cycles >= 5 && plain.sum.cycles <= 2);
	assert_int_equal(r.out[0].wait, SCOREBOARD_STORE);
	assert_int_equal(r.sum.bound, SCOREBOARD_BOUND_CHAIN);
	assert_true(moved.sum.cycles <= 2);
	assert_true(same.sum.cycles >= 5);
	assert_int_equal(same.out[2].wait, SCOREBOARD_STORE);
	assert_int_equal(same.out[2].on, 0);
	assert_false(same.out[2].carried);
}

/*
 * mov %rax,(%rbx); mov (%rbx),%rax; add $1,%rax: what is stored need not reach the cache first, and
 * loads of all of it take no time. mov %eax,(%rbx) in its place is too narrow for that.
 */
static void test_forwarding(void **state)
{
	struct run whole = LOOP("sapphirerapids", "\x48\x89\x03\x48\x8b\x03\x48\x83\xc0\x01"),
		   narrow = LOOP("sapphirerapids", "\x89\x03\x48\x8b\x03\x48\x83\xc0\x01"),
		   before = LOOP("icelake", "\x48\x89\x03\x48\x8b\x03\x48\x83\xc0\x01");
	struct run count = LOOP("sapphirerapids", "\x48\xff\x03");

	(void)state;
	assert_true(whole.sum.cycles <= 2);
	assert_true(narrow.sum.cycles >= 6 && narrow.sum.cycles <= 8);
	assert_int_equal(narrow.out[1].wait, SCOREBOARD_STORE);
	assert_true(before.sum.cycles >= 6 && before.sum.cycles <= 8);
	assert_true(count.sum.cycles >= 5 && count.sum.cycles <= 8);
}

/* push %rax; pop %rbx: no wait for rsp, but pop loads what push stored. */
static void test_stack(void **state)
{
	struct run r = LOOP("icelake", "\x50\x5b");
	struct run pushes = LOOP("skylake", "\x50\x53\x51\x52");

	(void)state;
	assert_int_equal(r.out[1].wait, SCOREBOARD_STORE);
	assert_true(r.sum.cycles <= 1);
	assert_cycles(&pushes, 4); /* one store a cycle */
}

/* cmp %rbx,%rax; jne: one micro-op. */
static void test_fusion(void **state)
{
	struct run r = LOOP("skylake", "\x48\x39\xd8\x75\x00");

	(void)state;
	assert_true(r.sum.front == 0.25 && r.sum.retire == 0.25);
}

/* div %rcx over and over: its own result is its operand. */
static void test_divide(void **state)
{
	struct run r = LOOP("icelake", "\x48\xf7\xf1");
	/* xor %edx,%edx; mov %rsi,%rax; div %rcx: not a chain, the divider is busy */
	struct run free = LOOP("icelake", "\x31\xd2\x48\x89\xf0\x48\xf7\xf1");

	(void)state;
	assert_cycles(&r, 18);
	assert_cycles(&free, 10);
	assert_int_equal(free.sum.bound, SCOREBOARD_BOUND_UNITS);
}

static void test_serialising(void **state)
{
	/* mov (%rbx),%rax; lfence; add $1,%rcx */
	struct run r = BLOCK("icelake", "\x48\x8b\x03\x0f\xae\xe8\x48\x83\xc1\x01");

	(void)state;
	assert_true(r.out[1].issue >= r.out[0].complete);
	assert_true(r.out[2].enter >= r.out[1].complete);
	assert_int_equal(r.out[2].wait, SCOREBOARD_ORDER);
}

/* A move costs a cycle where renaming does not do it. */
static void test_moves(void **state)
{
	/* mov %rax,%rbx; add $1,%rbx; mov %rbx,%rax */
	static const char code[] = "\x48\x89\xc3\x48\x83\xc3\x01\x48\x89\xd8";
	struct run plain = LOOP("icelake:llvm", code), zen4 = LOOP("zen4", code);

	(void)state;
	assert_cycles(&plain, 3);
	assert_cycles(&zen4, 1);
	assert_true(plain.sum.chain == 3 && zen4.sum.chain == 1);
}

/* ---- blocks ---- */

static void test_block(void **state)
{
	/* mov (%rbx),%rax; add $1,%rax; mov $2,%ecx */
	struct run r = BLOCK("icelake", "\x48\x8b\x03\x48\x83\xc0\x01\xb9\2\0\0\0");
	unsigned stalls = 0;

	(void)state;
	assert_int_equal(r.out[0].complete - r.out[0].issue, 5);
	assert_int_equal(r.out[1].issue, r.out[0].complete);
	assert_int_equal(r.out[1].wait, SCOREBOARD_OPERAND);
	assert_int_equal(r.out[1].on, 0);
	assert_true(r.out[2].issue < r.out[1].issue);       /* out of order, */
	assert_int_equal(r.out[2].retire, r.out[1].retire); /* but not out */
	for (size_t i = 0; i < r.n; i++)
		stalls += r.out[i].stall;
	assert_true(r.sum.cycles == stalls);
	assert_true(r.sum.cycles == 6 && r.sum.chain == 6);
}

static void test_limits(void **state)
{
	struct scoreboard *s = scoreboard_create(model_by_name("zen2"));
	struct model_insn *many = calloc(SCOREBOARD_MAX + 1, sizeof *many);
	struct scoreboard_sum sum;

	(void)state;
	for (size_t i = 0; i <= SCOREBOARD_MAX; i++)
		assert_int_equal(model_insn(model_by_name("zen2"), "\x90", 1, &many[i]), 0);
	assert_int_equal(scoreboard_loop(s, many, SCOREBOARD_MAX + 1, NULL, &sum), -E2BIG);
	assert_int_equal(scoreboard_block(s, many, SCOREBOARD_MAX, NULL, &sum), 0);
	assert_true(sum.cycles >= SCOREBOARD_MAX / 8);
	assert_int_equal(scoreboard_block(s, many, 0, NULL, &sum), 0);
	assert_true(sum.cycles == 0);
	free(many);
	scoreboard_destroy(s);
}

/* ---- against llvm-mca ---- */

static const struct sample {
	const char *code;
	double cycles[10];
} samples[] = {
#include "isa/mca_sample.inc"
};

static size_t from_hex(const char *hex, uint8_t *code)
{
	size_t n = 0;
	unsigned byte;

	for (; sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
		code[n] = (uint8_t)byte;
	return n;
}

static bool agrees(struct scoreboard *s, const char *name, const struct sample *sample, size_t chip)
{
	uint8_t code[128];
	struct run r;

	decode(&r, name, code, from_hex(sample->code, code));
	assert_int_equal(scoreboard_loop(s, r.insn, r.n, NULL, &r.sum), 0);
	return fabs(r.sum.cycles - sample->cycles[chip]) <= 0.1 * sample->cycles[chip];
}

/* At least nine blocks in ten within a tenth, on every model. */
static void test_llvm_mca(void **state)
{
	size_t n = sizeof samples / sizeof *samples;

	(void)state;
	assert_true(n >= 100);
	for (size_t i = 0; i < model_count(); i++) {
		size_t good = 0;
		struct scoreboard *s;
		char name[64];

		snprintf(name, sizeof name, "%s:llvm", model_name(model_at(i)));
		s = scoreboard_create(model_by_name(name));
		for (size_t k = 0; k < n; k++)
			good += agrees(s, name, &samples[k], i);
		scoreboard_destroy(s);
		if (good * 10 < n * 9)
			fail_msg("%s: %zu of %zu blocks agree", name, good, n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_front),
		cmocka_unit_test(test_pointer_chase),
		cmocka_unit_test(test_late_operand),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_forwarding),
		cmocka_unit_test(test_stack),
		cmocka_unit_test(test_fusion),
		cmocka_unit_test(test_divide),
		cmocka_unit_test(test_serialising),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_block),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_llvm_mca),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
