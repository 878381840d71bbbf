#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/advice.h"

/* A case with room for its lists; hot, with code, in a loop, until a test says otherwise. */
struct scene {
	struct advice_case c;
	struct roles roles;
	struct role_texts texts;
	struct value_share values[VALUE_KINDS + 1][4];
	struct advice out[ADVICE_MOST];
};

static struct scene scene(enum operation operation)
{
	struct scene s = {.c = {.procedure = "work",
				  .in_loop = true,
				  .hot = 0.5,
				  .near = 0.5,
				  .arguments = 0x3f},
		.roles = {.operation = operation, .size = 8}};

	return s;
}

/* A value that came so often, exactly. */
static void came(struct scene *s, unsigned kind, uint64_t value, uint64_t count)
{
	unsigned at = kind == VALUE_TARGET ? VALUE_KINDS : kind;
	struct advice_list *l = kind == VALUE_TARGET ? &s->c.targets : &s->c.lists[kind];
	struct value_share *v = &s->values[at][l->n++];

	*v = (struct value_share){.value = value, .count = count, .least = count, .most = count};
	l->samples += count;
}

static size_t run(struct scene *s)
{
	struct advice_list *all[VALUE_KINDS + 1];

	for (unsigned k = 0; k <= VALUE_KINDS; k++) {
		all[k] = k == VALUE_KINDS ? &s->c.targets : &s->c.lists[k];
		all[k]->values = s->values[k];
		for (size_t i = 0; i < all[k]->n; i++)
			value_share_set(&s->values[k][i], all[k]->samples);
	}
	strcpy(s->texts.source, "%rcx");
	strcpy(s->texts.result, "%rax");
	if (s->c.procedure[0] != '?') {
		s->c.roles = &s->roles;
		s->c.texts = &s->texts;
	}
	return advise(&s->c, s->out);
}

#define assert_advice(s, rule_name, kind_of, words)                               \
	do {                                                                      \
		assert_int_equal(run(s), 1);                                      \
		assert_string_equal((s)->out[0].rule, rule_name);                 \
		assert_int_equal((s)->out[0].kind, kind_of);                      \
		if (!strstr((s)->out[0].text, words))                             \
			fail_msg("'%s' is not in '%s'", words, (s)->out[0].text); \
	} while (0)

/* ---- shares ---- */

static void bounds_of_shares(void **state)
{
	struct value_share v = {.count = 90, .least = 90, .most = 90};

	(void)state;
	value_share_set(&v, 100);
	assert_float_equal(v.share, 0.9, 1e-9);
	assert_float_equal(v.low, 0.826, 0.001); /* Wilson, 90 of 100 */
	assert_float_equal(v.high, 0.945, 0.001);
	v.least = 80; /* what the list is unsure of comes on top */
	value_share_set(&v, 100);
	assert_float_equal(v.low, 0.711, 0.001);
	v = (struct value_share){.count = 100, .least = 100, .most = 120};
	value_share_set(&v, 100);
	assert_float_equal(v.low, 0.963, 0.001);
	assert_true(v.high <= 1);
	value_share_set(&v, 0);
	assert_true(v.low == 0 && v.high == 1);
}

static void pointers(void **state)
{
	(void)state;
	assert_true(value_is_pointer(0x7ffdeadbeef0));
	assert_true(value_is_pointer(0x55d0c0001000));
	assert_true(value_is_pointer(0xffff888100000000));
	assert_false(value_is_pointer(0x10));
	assert_false(value_is_pointer(UINT64_MAX));
	assert_false(value_is_pointer(0xffffffff));
}

/* ---- specialise ---- */

static void an_argument(void **state)
{
	struct scene s = scene(OPERATION_MOVE);

	(void)state;
	came(&s, VALUE_ENTRY1, 16, 990);
	came(&s, VALUE_ENTRY1, 32, 10);
	assert_advice(&s, "specialise", VALUE_ENTRY1, "argument 2 (%rsi) is 0x10 in 99.0%");
	assert_non_null(strstr(s.out[0].text, "of 1000 calls"));
	assert_non_null(strstr(s.out[0].text, "at least 98.1%"));
}

static void no_argument(void **state)
{
	struct scene few = scene(OPERATION_MOVE), mixed = few, cold = few, pointer = few,
		     unread = few, stub = few;

	(void)state;
	came(&few, VALUE_ENTRY1, 16, 99);
	assert_int_equal(run(&few), 0);
	came(&mixed, VALUE_ENTRY1, 16, 910); /* over 90%, but its bound is not */
	came(&mixed, VALUE_ENTRY1, 17, 90);
	assert_int_equal(run(&mixed), 0);
	came(&cold, VALUE_ENTRY1, 16, 1000);
	cold.c.hot = 0.009;
	assert_int_equal(run(&cold), 0);
	came(&pointer, VALUE_ENTRY1, 0x7f0000001000, 1000);
	assert_int_equal(run(&pointer), 0);
	came(&unread, VALUE_ENTRY1, 16, 1000);
	unread.c.arguments = 1;
	assert_int_equal(run(&unread), 0);
	came(&stub, VALUE_ENTRY1, 16, 1000);
	stub.c.is_stub = true;
	assert_int_equal(run(&stub), 0);
}

static void a_source(void **state)
{
	struct scene s = scene(OPERATION_MULTIPLY), immediate = s, known = s, aside = s,
		     move = scene(OPERATION_MOVE), compare = scene(OPERATION_COMPARE);

	(void)state;
	came(&s, VALUE_SOURCE, 3, 1000);
	assert_advice(&s, "specialise", VALUE_SOURCE, "%rcx is 0x3 in 100.0%");
	came(&immediate, VALUE_SOURCE, 3, 1000);
	immediate.roles.constant_source = true;
	assert_int_equal(run(&immediate), 0);
	came(&move, VALUE_SOURCE, 3, 1000);
	assert_int_equal(run(&move), 0);
	came(&compare, VALUE_SOURCE, 3, 1000); /* a branch that is predicted costs nothing */
	assert_int_equal(run(&compare), 0);
	came(&known, VALUE_SOURCE, 3, 1000);
	known.c.in_code = true;
	assert_int_equal(run(&known), 0);
	came(&aside, VALUE_SOURCE, 3, 1000);
	aside.c.near = 0.009;
	assert_int_equal(run(&aside), 0);
}

static void a_bound(void **state)
{
	struct scene s = scene(OPERATION_COMPARE), known, immediate, far, none, big, other;

	(void)state;
	s.c.loop = 5;
	known = immediate = far = none = big = other = s;
	came(&other, VALUE_SOURCE, 1, 300); /* the index, and the bound on the other side */
	came(&other, VALUE_SOURCE, 2, 300);
	came(&other, VALUE_RESULT, 8, 600);
	assert_advice(&other, "specialise", VALUE_RESULT, "ends at %rax, which is 0x8 in 100.0%");
	came(&s, VALUE_SOURCE, 8, 990);
	came(&s, VALUE_SOURCE, 6, 10);
	assert_advice(&s, "specialise", VALUE_SOURCE, "ends at %rcx, which is 0x8 in 99.0%");
	came(&known, VALUE_SOURCE, 8, 1000);
	known.c.in_code = true;
	assert_int_equal(run(&known), 0);
	came(&immediate, VALUE_SOURCE, 8, 1000);
	immediate.roles.constant_source = true;
	assert_int_equal(run(&immediate), 0);
	came(&far, VALUE_SOURCE, 65, 1000); /* a long loop hardly gains */
	assert_int_equal(run(&far), 0);
	came(&big, VALUE_SOURCE, 8, 1000);
	big.c.loop = 65;
	assert_int_equal(run(&big), 0);
	came(&none, VALUE_SOURCE, 0, 1000); /* a sign or a list's end, no bound */
	assert_int_equal(run(&none), 0);
}

/* ---- devirtualise ---- */

static void one_target(void **state)
{
	struct scene s = scene(OPERATION_OTHER), jump;

	(void)state;
	s.roles.kind = INSN_CALL_INDIRECT;
	s.c.target = "draw_circle";
	came(&s, VALUE_TARGET, 0x1000, 980);
	came(&s, VALUE_TARGET, 0x2000, 20);
	jump = s;
	assert_advice(&s, "devirtualise", VALUE_TARGET, "goes to draw_circle in 98.0%");
	jump.roles.kind = INSN_JUMP_INDIRECT;
	assert_advice(&jump, "devirtualise", VALUE_TARGET, "test for this case");
}

static void many_targets(void **state)
{
	struct scene s = scene(OPERATION_OTHER), got = s, back = s;

	(void)state;
	s.roles.kind = got.roles.kind = INSN_CALL_INDIRECT;
	came(&s, VALUE_TARGET, 0x1000, 500);
	came(&s, VALUE_TARGET, 0x2000, 500);
	assert_int_equal(run(&s), 0);
	came(&got, VALUE_TARGET, 0x1000, 1000); /* call *puts@GOT(%rip) */
	got.roles.fixed_address = got.c.leaves = true;
	assert_int_equal(run(&got), 0);
	back.roles.kind = INSN_RETURN;
	came(&back, VALUE_TARGET, 0x1000, 1000);
	assert_int_equal(run(&back), 0);
}

/* ---- divisions ---- */

static void a_divisor(void **state)
{
	struct scene s = scene(OPERATION_DIVIDE), powers = s, one = s, eight = s;

	(void)state;
	came(&s, VALUE_SOURCE, 10, 985);
	came(&s, VALUE_SOURCE, 1ull << 33, 15);
	assert_advice(&s, "division", VALUE_SOURCE, "the divisor %rcx is 0xa in 98.5%");
	assert_non_null(strstr(s.out[0].text, "divide by a constant"));
	came(&one, VALUE_SOURCE, 1, 1000);
	assert_advice(&one, "division", VALUE_SOURCE, "test for it and leave the division out");
	came(&eight, VALUE_SOURCE, 8, 1000);
	assert_advice(&eight, "division", VALUE_SOURCE, "test for it and shift");
	came(&powers, VALUE_SOURCE, 8, 500);
	came(&powers, VALUE_SOURCE, 1ull << 33, 480);
	came(&powers, VALUE_SOURCE, 7, 20);
	assert_advice(&powers, "division", VALUE_SOURCE, "a power of two in 98.0%");
}

static void any_divisor(void **state)
{
	struct scene s = scene(OPERATION_DIVIDE), zero = s;

	(void)state;
	came(&s, VALUE_SOURCE, 8, 500);
	came(&s, VALUE_SOURCE, 1ull << 34 | 1, 500);
	assert_int_equal(run(&s), 0);
	came(&zero, VALUE_SOURCE, 0, 50); /* 0 is no power; and too few */
	assert_int_equal(run(&zero), 0);
}

/* ---- copies ---- */

static void a_copy(void **state)
{
	struct scene s = scene(OPERATION_COPY), call = scene(OPERATION_MOVE);

	(void)state;
	s.roles.repeats = true;
	came(&s, VALUE_LENGTH, 4, 1000);
	assert_advice(&s, "copy", VALUE_LENGTH, "the size is 32 bytes");
	call.c.procedure = "__memcpy_avx_unaligned_erms";
	came(&call, VALUE_ENTRY2, 24, 1000);
	assert_advice(&call, "copy", VALUE_ENTRY2, "the size is 24 bytes in 100.0%");
	call.c.procedure = "memset@plt";
	call.c.is_stub = true;
	assert_advice(&call, "copy", VALUE_ENTRY2, "24 bytes");
}

static void no_copy(void **state)
{
	struct scene large = scene(OPERATION_COPY), huge, varied, other = scene(OPERATION_MOVE);

	(void)state;
	large.roles.repeats = true;
	huge = varied = large;
	came(&large, VALUE_LENGTH, 33, 1000); /* 264 bytes */
	assert_int_equal(run(&large), 0);
	came(&huge, VALUE_LENGTH, 1ull << 61, 1000); /* does not wrap around */
	assert_int_equal(run(&huge), 0);
	came(&varied, VALUE_LENGTH, 4, 500);
	came(&varied, VALUE_LENGTH, 5, 500);
	assert_int_equal(run(&varied), 0);
	other.c.procedure = "memcpyish";
	other.c.arguments = 0;
	came(&other, VALUE_ENTRY2, 24, 1000);
	assert_int_equal(run(&other), 0);
	assert_false(advice_is_copy("compare"));
}

/* ---- loads ---- */

static struct scene load(void)
{
	struct scene s = scene(OPERATION_MOVE);

	s.roles.loads = true;
	s.roles.size = 4;
	return s;
}

static void an_invariant_load(void **state)
{
	struct scene s = load(), fixed = load();

	(void)state;
	came(&s, VALUE_RESULT, 1ull << 33, 1000);
	came(&s, VALUE_ADDRESS, 0x7f0000001000, 1000);
	assert_advice(
		&s, "hoist", VALUE_RESULT, "loads 0x200000000 from the same address in 100.0%");
	came(&fixed, VALUE_RESULT, 5, 1000);
	fixed.roles.fixed_address = true;
	assert_advice(&fixed, "hoist", VALUE_RESULT, "before the loop");
}

static void a_load_that_must_stay(void **state)
{
	struct scene once = load(), moves = load(), varies = load(), rarely = load(),
		     stored = load();

	(void)state;
	came(&once, VALUE_RESULT, 5, 1000);
	came(&once, VALUE_ADDRESS, 64, 1000);
	once.c.in_loop = false;
	assert_int_equal(run(&once), 0);
	came(&moves, VALUE_RESULT, 5, 1000);
	came(&moves, VALUE_ADDRESS, 64, 500);
	came(&moves, VALUE_ADDRESS, 68, 500);
	assert_int_equal(run(&moves), 0);
	came(&varies, VALUE_RESULT, 5, 500);
	came(&varies, VALUE_RESULT, 6, 500);
	came(&varies, VALUE_ADDRESS, 64, 1000);
	assert_int_equal(run(&varies), 0);
	came(&rarely, VALUE_RESULT, 5, 985); /* nearly invariant is not invariant */
	came(&rarely, VALUE_RESULT, 6, 15);
	came(&rarely, VALUE_ADDRESS, 64, 1000);
	assert_int_equal(run(&rarely), 0);
	came(&stored, VALUE_RESULT, 5, 1000);
	came(&stored, VALUE_ADDRESS, 64, 1000);
	stored.c.is_stored = true;
	assert_int_equal(run(&stored), 0);
}

static void a_long_stride(void **state)
{
	struct scene s = load(), back = load(), slow = load();

	(void)state;
	came(&s, VALUE_STRIDE, 256, 1000);
	s.c.waits = 0.3;
	assert_advice(&s, "prefetch", VALUE_STRIDE, "goes on by 256 bytes in 100.0%");
	came(&back, VALUE_STRIDE, -128ull, 1000);
	back.c.waits = 0.3;
	assert_advice(&back, "prefetch", VALUE_STRIDE, "by -128 bytes");
	came(&slow, VALUE_STRIDE, 4096, 1000);
	came(&slow, VALUE_LATENCY, 200 | 4, 700); /* memory */
	came(&slow, VALUE_LATENCY, 16 | 1, 300);
	assert_advice(&slow, "prefetch", VALUE_STRIDE, "by 4096 bytes");
}

static void a_stride_that_caches_handle(void **state)
{
	struct scene short_one = load(), quick = load(), measured = load(), mixed = load();

	(void)state;
	came(&short_one, VALUE_STRIDE, 8, 1000);
	short_one.c.waits = 0.3;
	assert_int_equal(run(&short_one), 0);
	came(&quick, VALUE_STRIDE, 256, 1000);
	quick.c.waits = 0.05;
	assert_int_equal(run(&quick), 0);
	came(&measured, VALUE_STRIDE, 256, 1000); /* latencies know better than samples nearby */
	came(&measured, VALUE_LATENCY, 16 | 2, 1000);
	measured.c.waits = 0.3;
	assert_int_equal(run(&measured), 0);
	came(&mixed, VALUE_STRIDE, 256, 500);
	came(&mixed, VALUE_STRIDE, 512, 500);
	mixed.c.waits = 0.3;
	assert_int_equal(run(&mixed), 0);
}

/* ---- denormals ---- */

static void denormals(void **state)
{
	struct scene s = scene(OPERATION_OTHER), single = s, normal = s, few = s;

	(void)state;
	s.roles.float_size = normal.roles.float_size = few.roles.float_size = 8;
	came(&s, VALUE_FLOAT, 0x3ff0000000000000, 800);
	came(&s, VALUE_FLOAT, 0x0000000000000123, 150);
	came(&s, VALUE_FLOAT, 0x8000000000000123, 50); /* a negative one */
	assert_advice(&s, "denormals", VALUE_FLOAT, "20.0% (at least 17.6%) of 1000 operands");
	single.roles.float_size = 4;
	came(&single, VALUE_FLOAT, 0x00000123, 200);
	came(&single, VALUE_FLOAT, 0x3f800000, 800);
	assert_advice(&single, "denormals", VALUE_FLOAT, "20.0%");
	came(&normal, VALUE_FLOAT, 0, 900); /* zero is none */
	came(&normal, VALUE_FLOAT, 0x0010000000000000, 100);
	assert_int_equal(run(&normal), 0);
	came(&few, VALUE_FLOAT, 0x3ff0000000000000, 960);
	came(&few, VALUE_FLOAT, 0x123, 40);
	assert_int_equal(run(&few), 0);
}

/* ---- narrower types ---- */

static void a_narrow_division(void **state)
{
	struct scene s = scene(OPERATION_DIVIDE), wide, narrow_already;

	(void)state;
	came(&s, VALUE_SOURCE, 1001, 600);
	came(&s, VALUE_SOURCE, 7, 400);
	wide = narrow_already = s;
	came(&s, VALUE_RESULT, 5, 500);
	came(&s, VALUE_RESULT, 70000, 500);
	assert_advice(&s, "narrow", VALUE_SOURCE, "below 2^32 in at least 99.6% of 1000");
	came(&wide, VALUE_RESULT, 5, 500);
	came(&wide, VALUE_RESULT, 70000000, 500);
	assert_int_equal(run(&wide), 0);
	came(&narrow_already, VALUE_RESULT, 5, 1000);
	narrow_already.roles.size = 4;
	assert_int_equal(run(&narrow_already), 0);
}

static void a_narrow_load(void **state)
{
	struct scene s = load(), bytes, wide, unknown, extended, one;

	(void)state;
	s.roles.size = s.roles.memory_size = 8;
	bytes = wide = unknown = extended = one = s;
	came(&s, VALUE_RESULT, 70000, 500);
	came(&s, VALUE_RESULT, 3, 500);
	assert_advice(&s, "narrow", VALUE_RESULT, "are below 2^32");
	came(&bytes, VALUE_RESULT, 200, 500);
	came(&bytes, VALUE_RESULT, 3, 500);
	assert_advice(&bytes, "narrow", VALUE_RESULT, "are below 2^8");
	came(&wide, VALUE_RESULT, 3, 999);
	came(&wide, VALUE_RESULT, 1ull << 32, 1);
	assert_int_equal(run(&wide), 0);
	/* The list shows few of the values that came: nobody knows the others. */
	came(&unknown, VALUE_RESULT, 3, 100);
	unknown.c.lists[VALUE_RESULT].samples = 1000;
	assert_int_equal(run(&unknown), 0);
	came(&extended, VALUE_RESULT, 200, 500); /* movslq: 64 bits in the register alone */
	came(&extended, VALUE_RESULT, 3, 500);
	extended.roles.memory_size = 4;
	assert_int_equal(run(&extended), 0);
	came(&one, VALUE_RESULT, 200, 500); /* a variable, no array */
	came(&one, VALUE_RESULT, 3, 500);
	came(&one, VALUE_ADDRESS, 64, 1000);
	assert_int_equal(run(&one), 0);
}

/* Nothing that asks for the instruction speaks without code. */
static void no_code(void **state)
{
	struct scene s = scene(OPERATION_DIVIDE);

	(void)state;
	s.c.procedure = "?";
	s.c.arguments = 0;
	for (unsigned k = 0; k < VALUE_KINDS; k++)
		came(&s, k, 256, 1000);
	came(&s, VALUE_TARGET, 256, 1000);
	assert_int_equal(run(&s), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_of_shares),
		cmocka_unit_test(pointers),
		cmocka_unit_test(an_argument),
		cmocka_unit_test(no_argument),
		cmocka_unit_test(a_source),
		cmocka_unit_test(a_bound),
		cmocka_unit_test(one_target),
		cmocka_unit_test(many_targets),
		cmocka_unit_test(a_divisor),
		cmocka_unit_test(any_divisor),
		cmocka_unit_test(a_copy),
		cmocka_unit_test(no_copy),
		cmocka_unit_test(an_invariant_load),
		cmocka_unit_test(a_load_that_must_stay),
		cmocka_unit_test(a_long_stride),
		cmocka_unit_test(a_stride_that_caches_handle),
		cmocka_unit_test(denormals),
		cmocka_unit_test(a_narrow_division),
		cmocka_unit_test(a_narrow_load),
		cmocka_unit_test(no_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
