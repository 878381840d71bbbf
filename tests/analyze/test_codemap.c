#include "analyze/codemap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct procedure plain(const struct range *r, uint32_t n)
{
	return (struct procedure){.start = r->start, .ranges = r, .nranges = n};
}

static void finds_ranges_and_gaps(void **state)
{
	static const struct range a = {0x100, 0x40}, b[] = {{0x200, 0x10}, {0x150, 8}};
	struct procedure list[] = {plain(&a, 1), plain(b, 2)};
	struct code_map m;
	struct code_walk w;
	uint64_t v;

	(void)state;
	code_map_init(&m, list, 2);
	w = code_walk_start(&m, NULL, 0);
	assert_int_equal(code_walk_to(&w, 0xff, &v), CODE_NOWHERE);
	assert_int_equal(code_walk_to(&w, 0x100, &v), 0);
	assert_int_equal(v, 0x100);
	assert_int_equal(code_walk_to(&w, 0x13f, &v), 0);
	assert_int_equal(code_walk_to(&w, 0x140, &v), CODE_NOWHERE);
	assert_int_equal(code_walk_to(&w, 0x150, &v), 1);
	assert_int_equal(code_walk_to(&w, 0x157, &v), 1);
	assert_int_equal(code_walk_to(&w, 0x158, &v), CODE_NOWHERE);
	assert_int_equal(code_walk_to(&w, 0x20f, &v), 1);
	assert_int_equal(code_walk_to(&w, 0x210, &v), CODE_NOWHERE);
	assert_int_equal(code_walk_to(&w, 0x120, &v), 0); /* backwards */
	code_map_deinit(&m);
}

static void inner_ranges_win(void **state)
{
	static const struct range outer = {0x100, 0x100}, inner = {0x140, 0x20},
				  crossing = {0x1f0, 0x20};
	struct procedure list[] = {plain(&outer, 1), plain(&inner, 1), plain(&crossing, 1)};
	struct code_map m;
	struct code_walk w;
	uint64_t v;

	(void)state;
	code_map_init(&m, list, 3);
	assert_int_equal(m.n, 4);
	w = code_walk_start(&m, NULL, 0);
	assert_int_equal(code_walk_to(&w, 0x13f, &v), 0);
	assert_int_equal(code_walk_to(&w, 0x140, &v), 1);
	assert_int_equal(code_walk_to(&w, 0x15f, &v), 1);
	assert_int_equal(code_walk_to(&w, 0x160, &v), 0);
	assert_int_equal(code_walk_to(&w, 0x1f0, &v), 2);
	assert_int_equal(code_walk_to(&w, 0x20f, &v), 2);
	assert_int_equal(code_walk_to(&w, 0x210, &v), CODE_NOWHERE);
	code_map_deinit(&m);
}

/* Nested three deep, and an outer range that ended inside an inner one. */
static void deep_nesting_stays_disjoint(void **state)
{
	static const struct range r[] = {{0, 100}, {10, 50}, {20, 10}, {55, 60}, {200, 0}};
	struct procedure list[5];
	struct code_map m;

	(void)state;
	for (int i = 0; i < 5; i++)
		list[i] = plain(&r[i], 1);
	code_map_init(&m, list, 5);
	for (size_t i = 0; i < m.n; i++) {
		assert_true(m.ranges[i].start < m.ranges[i].end);
		if (i)
			assert_true(m.ranges[i - 1].end <= m.ranges[i].start);
		assert_int_not_equal(m.ranges[i].procedure, 4); /* the empty one */
	}
	assert_int_equal(m.ranges[m.n - 1].end, 115);
	code_map_deinit(&m);
}

static void offsets_go_through_segments(void **state)
{
	static const struct segment segments[] = {{0x1000, 0x100, 0x401000}, {0x2000, 0x80, 0x300}};
	static const struct range a = {0x401010, 0x10}, b = {0x310, 4};
	struct procedure list[] = {plain(&b, 1), plain(&a, 1)};
	struct code_map m;
	struct code_walk w;
	uint64_t v;

	(void)state;
	code_map_init(&m, list, 2);
	w = code_walk_start(&m, segments, 2);
	assert_int_equal(code_walk_to(&w, 0x401010, &v), CODE_NOWHERE);
	assert_int_equal(code_walk_to(&w, 0x1010, &v), 1);
	assert_int_equal(v, 0x401010);
	assert_int_equal(code_walk_to(&w, 0x10ff, &v), CODE_NOWHERE);
	assert_int_equal(v, 0x4010ff);
	assert_int_equal(code_walk_to(&w, 0x1100, &v), CODE_NOWHERE);
	assert_int_equal(v, 0x1100);
	assert_int_equal(code_walk_to(&w, 0x2012, &v), 0);
	assert_int_equal(v, 0x312);
	code_map_deinit(&m);
}

/* The walk must agree with a plain search, whatever the order of offsets. */
static void walk_agrees_with_search(void **state)
{
	enum { N = 300 };
	static struct range ranges[N];
	static struct procedure list[N];
	uint32_t seed = 7;
	struct code_map m;
	struct code_walk w;

	(void)state;
	for (int i = 0; i < N; i++) {
		ranges[i] = (struct range){(uint64_t)i * 32 + 8, 4 + (uint64_t)i % 24};
		list[i] = plain(&ranges[i], 1);
	}
	code_map_init(&m, list, N);
	w = code_walk_start(&m, NULL, 0);
	for (int i = 0; i < 20000; i++) {
		uint32_t want = CODE_NOWHERE;
		uint64_t at, v;

		seed = seed * 1664525 + 1013904223;
		at = (seed >> 8) % (N * 32 + 64);
		for (uint32_t j = 0; j < N; j++)
			if (at - ranges[j].start < ranges[j].size)
				want = j;
		assert_int_equal(code_walk_to(&w, at, &v), want);
	}
	code_map_deinit(&m);
}

static void empty_map_has_nothing(void **state)
{
	struct code_map m;
	struct code_walk w;
	uint64_t v;

	(void)state;
	code_map_init(&m, NULL, 0);
	w = code_walk_start(&m, NULL, 0);
	assert_int_equal(code_walk_to(&w, 5, &v), CODE_NOWHERE);
	code_map_deinit(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_ranges_and_gaps),
		cmocka_unit_test(inner_ranges_win),
		cmocka_unit_test(deep_nesting_stays_disjoint),
		cmocka_unit_test(offsets_go_through_segments),
		cmocka_unit_test(walk_agrees_with_search),
		cmocka_unit_test(empty_map_has_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
