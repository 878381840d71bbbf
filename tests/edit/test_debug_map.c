#include "edit/debug_map.h"

#include "edit/edit_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/*
 * The procedure 0x1000 to 0x1040, moved to 0x8000: code was added at the entry, before 0x1010, and
 * on an edge from the branch at 0x1020, which lies behind all; the branch at 0x1030 grew. Another
 * one at 0x1050 stayed, and one at 0x1060 was moved twice.
 */
static const struct edit_span first[] = {
	{.at = 0x8000, .old = 0x1000, .size = 8},
	{.at = 0x8008, .old = 0x1000, .size = 0x10, .copied = true},
	{.at = 0x8018, .old = 0x1010, .size = 8},
	{.at = 0x8020, .old = 0x1010, .size = 0x20, .copied = true},
	{.at = 0x8040, .old = 0x1030, .size = 6},
	{.at = 0x8046, .old = 0x1032, .size = 0xe, .copied = true},
	{.at = 0x8054, .old = 0x1020, .size = 12},
};
static const struct edit_span second[] = {
	{.at = 0x9000, .old = 0x1060, .size = 0x10, .copied = true}};
static const struct edit_span third[] = {
	{.at = 0xa000, .old = 0x1060, .size = 0x10, .copied = true}};
static const struct edit_fragment fragments[] = {
	{.twin = true,
		.start = 0xa000,
		.size = 0x10,
		.old_start = 0x1060,
		.spans = third,
		.nspans = 1},
	{.start = 0x9000, .size = 0x10, .old_start = 0x1060, .spans = second, .nspans = 1},
	{.start = 0x8000, .size = 0x60, .old_start = 0x1000, .spans = first, .nspans = 7},
};

static struct debug_map map;

static int set_up(void **state)
{
	static struct home homes[] = {{.start = 0x1000, .size = 0x40},
		{.start = 0x1050, .size = 0x10}, {.start = 0x1060, .size = 0x10}};
	struct edit e = {.homes = {homes, 3, 3}};

	(void)state;
	debug_map_init(&map, &e, fragments, 3);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	debug_map_deinit(&map);
	return 0;
}

static void instructions(void **state)
{
	static const struct {
		uint64_t old, at;
	} want[] = {
		{0x1000, 0x8000}, /* with what was added */
		{0x1004, 0x800c},
		{0x1010, 0x8018},
		{0x1014, 0x8024},
		{0x1020, 0x8030}, /* and not where the code of its edge is */
		{0x1030, 0x8040},
		{0x1032, 0x8046},
		{0x1050, 0x1050},
		{0x1060, 0x9000},
		{0x2000, 0x2000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		assert_int_equal(debug_map_start(&map, want[i].old), want[i].at);
}

static void ends(void **state)
{
	(void)state;
	assert_int_equal(debug_map_end(&map, 0x1010), 0x8018);
	assert_int_equal(debug_map_end(&map, 0x1040), 0x8060); /* all that was added, too */
	assert_int_equal(debug_map_end(&map, 0x1060), 0x1060);
	assert_int_equal(debug_map_end(&map, 0x1070), 0x9010);
	assert_int_equal(debug_map_end(&map, 0), 0);
}

static void assert_ranges(
	uint64_t start, uint64_t end, bool twins, const struct range *want, size_t n)
{
	range_list list = {0};

	debug_map_range(&map, start, end, twins, &list);
	assert_int_equal(list.n, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(list.p[i].start, want[i].start);
		assert_int_equal(list.p[i].size, want[i].size);
	}
	vec_deinit(&list);
}

static void ranges(void **state)
{
	static const struct range all[] = {
		{0x8000, 0x60}, {0x1040, 0x20}, {0x9000, 0x10}, {0xa000, 0x10}, {0x1070, 0x10}};
	static const struct range inside[] = {{0x8018, 0x18}};
	static const struct range across[] = {{0x8046, 0x1a}, {0x1040, 0x20}, {0x9000, 4}};

	(void)state;
	assert_ranges(0x1000, 0x1080, true, all, 5);
	assert_ranges(0x1010, 0x1020, false, inside, 1);
	assert_ranges(0x1032, 0x1064, false, across, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions),
		cmocka_unit_test(ends),
		cmocka_unit_test(ranges),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
