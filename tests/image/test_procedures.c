#include "image/procedures.h"

#include "image/workshop.h"

static void add(struct procedures *ps, uint64_t start, uint64_t size, const char *name)
{
	procedures_add(ps, start, size, PROCEDURE_SYMBOL, name, name ? strlen(name) : 0);
}

static void test_look_up(void **state)
{
	(void)state;
	struct procedures ps = {0};
	procedures_add_area(&ps, 0x1000, 0x1000);
	add(&ps, 0x1100, 0x80, "_Z1fv");
	add(&ps, 0x1200, 0x100, NULL);
	procedures_add_fragment(&ps, 0, 0x1010, 0x10);
	procedures_finish(&ps);

	const struct procedure *p = procedures_at(&ps, 0x117f);
	assert_string_equal(p->name, "f()");
	assert_int_equal(p->start, 0x1100);
	assert_int_equal(p->nranges, 2);
	assert_int_equal(p->ranges[0].start, 0x1100);
	assert_int_equal(p->ranges[1].start, 0x1010);
	assert_ptr_equal(procedures_at(&ps, 0x101f), p);
	assert_null(procedures_at(&ps, 0x1200)->name);
	assert_null(procedures_at(&ps, 0xfff));
	assert_null(procedures_at(&ps, 0x2000));
	procedures_deinit(&ps);
}

static void test_gaps(void **state)
{
	(void)state;
	struct procedures ps = {0};
	procedures_add_area(&ps, 0x1000, 0x1000);
	add(&ps, 0x1100, 0x80, "f");
	procedures_add_fragment(&ps, 0, 0x1010, 0x10);
	procedures_finish(&ps);

	const struct procedure *p = procedures_at(&ps, 0x1000);
	assert_int_equal(p->source, PROCEDURE_GAP);
	assert_int_equal(p->ranges[0].start, 0x1000);
	assert_int_equal(p->ranges[0].size, 0x10);
	assert_ptr_equal(procedures_at(&ps, 0x100f), p);
	p = procedures_at(&ps, 0x1050);
	assert_int_equal(p->ranges[0].start, 0x1020);
	assert_int_equal(p->ranges[0].size, 0xe0);
	p = procedures_at(&ps, 0x1fff);
	assert_int_equal(p->ranges[0].start, 0x1180);
	assert_int_equal(p->ranges[0].size, 0xe80);
	procedures_deinit(&ps);
}

/* Who asks where one starts only hears the same. */
static void test_starts(void **state)
{
	(void)state;
	struct procedures ps = {0};
	procedures_add_area(&ps, 0x1000, 0x800);
	procedures_add_area(&ps, 0x1a00, 0x100);
	add(&ps, 0x1100, 0x80, "f");
	add(&ps, 0x1200, 0x100, NULL);
	procedures_add_fragment(&ps, 1, 0x1010, 0x10);
	procedures_finish(&ps);
	for (uint64_t at = 0xff0; at < 0x1c00; at++) {
		uint64_t start = 0;
		bool found = procedures_start(&ps, at, &start);
		const struct procedure *p = procedures_at(&ps, at);
		assert_int_equal(found, p != NULL);
		assert_int_equal(start, p ? p->start : 0);
	}
	procedures_deinit(&ps);
}

static void test_forget(void **state)
{
	(void)state;
	struct procedures ps = {0};
	procedures_forget(&ps); /* before there are any */
	add(&ps, 0x1100, 0x80, "_Z1fv");
	procedures_finish(&ps);

	size_t before = procedures_memory(&ps);
	assert_string_equal(procedures_at(&ps, 0x1100)->name, "f()");
	assert_true(procedures_memory(&ps) > before);
	procedures_forget(&ps);
	assert_int_equal(procedures_memory(&ps), before);
	assert_string_equal(procedures_at(&ps, 0x1100)->name, "f()");
	procedures_deinit(&ps);
}

/* An area may be half of the address space (a kernel that hides its symbols), a row may not. */
static void test_far(void **state)
{
	(void)state;
	struct procedures ps = {0};
	uint64_t half = UINT64_C(1) << 63, kernel = UINT64_C(0xffffffff81000000);
	procedures_add_area(&ps, half, half - 1);
	add(&ps, half, 0x10, "nowhere");
	add(&ps, kernel, 0x100, "start");
	procedures_finish(&ps);

	const struct procedure *p = procedures_at(&ps, kernel + 0xff);
	assert_string_equal(p->name, "start");
	assert_int_equal(p->start, kernel);
	p = procedures_at(&ps, half + 5);
	assert_int_equal(p->source, PROCEDURE_GAP);
	assert_int_equal(p->start, half);
	assert_int_equal(p->ranges[0].size, kernel - half);
	procedures_deinit(&ps);
}

/* Overlaps are cut, and a table of all agrees with single questions. */
static void test_all(void **state)
{
	(void)state;
	struct procedures ps = {0};
	add(&ps, 0x1000, 0x80, "a");
	add(&ps, 0x1040, 0x10, "b");
	add(&ps, 0x1040, 0x10, "again");
	add(&ps, 0x1060, 0, "empty");
	procedures_finish(&ps);
	const struct procedure *early = procedures_at(&ps, 0x1000), *all;
	assert_int_equal(procedures_all(&ps, &all), 2);
	assert_string_equal(all[0].name, "a");
	assert_int_equal(all[0].ranges[0].size, 0x40);
	assert_string_equal(all[1].name, "b");
	assert_ptr_equal(procedures_at(&ps, 0x1040), &all[1]);
	assert_string_equal(early->name, "a");
	assert_true(procedures_memory(&ps) > 2 * sizeof(struct procedure_row));
	procedures_deinit(&ps);
}

static void test_empty(void **state)
{
	(void)state;
	struct procedures ps = {0};
	procedures_finish(&ps);
	const struct procedure *all;
	assert_null(procedures_at(&ps, 0));
	assert_int_equal(procedures_all(&ps, &all), 0);
	procedures_deinit(&ps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_look_up),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_starts),
		cmocka_unit_test(test_far),
		cmocka_unit_test(test_forget),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
