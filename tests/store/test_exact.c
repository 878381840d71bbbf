#include "store/exact.h"

#include "store/blob_rig.h"

static const struct exact_row some[] = {
	{0x1000, EXACT_PROCEDURE, 0, 0, 0},
	{0x1000, EXACT_BLOCK, 0x800, 16, 3}, /* a cold part in front */
	{0x1000, EXACT_BLOCK, 0x1000, 8, 5},
	{0x1000, EXACT_BLOCK, 0x1008, 4, 0},
	{0x1000, EXACT_EDGE, 0x1006, 0x800, 3},
	{0x1000, EXACT_EDGE, 0x1006, 0x1008, 0},
	{0x2000, EXACT_PROCEDURE, 0, 0, 2},
	{0x2000, EXACT_BLOCK, 0x2000, 1, UINT64_MAX - 1},
	{UINT64_MAX, EXACT_PROCEDURE, 0, 0, 0},
	{UINT64_MAX, EXACT_BLOCK, 0, UINT64_MAX, 0},
	{UINT64_MAX, EXACT_EDGE, UINT64_MAX, 0, 1},
};
static const struct exact_row more[] = {
	{0x500, EXACT_PROCEDURE, 0, 0, 0},
	{0x500, EXACT_BLOCK, 0x500, 2, 1},
	{0x1000, EXACT_PROCEDURE, 0, 0, 4},
	{0x1000, EXACT_BLOCK, 0x1000, 8, 2},
	{0x1000, EXACT_BLOCK, 0x1008, 4, 9},
	{0x1000, EXACT_EDGE, 0x1006, 0x1008, 9},
	{0x2000, EXACT_PROCEDURE, 0, 0, 0},
	{0x2000, EXACT_BLOCK, 0x2000, 1, 9},
};
static const struct exact_row both[] = {
	{0x500, EXACT_PROCEDURE, 0, 0, 0},
	{0x500, EXACT_BLOCK, 0x500, 2, 1},
	{0x1000, EXACT_PROCEDURE, 0, 0, 4},
	{0x1000, EXACT_BLOCK, 0x800, 16, 3},
	{0x1000, EXACT_BLOCK, 0x1000, 8, 7},
	{0x1000, EXACT_BLOCK, 0x1008, 4, 9},
	{0x1000, EXACT_EDGE, 0x1006, 0x800, 3},
	{0x1000, EXACT_EDGE, 0x1006, 0x1008, 9},
	{0x2000, EXACT_PROCEDURE, 0, 0, 2},
	{0x2000, EXACT_BLOCK, 0x2000, 1, UINT64_MAX},
};
#define COUNT(list) (sizeof list / sizeof *list)

static void assert_reads(const struct buf *b, const struct exact_row *list, size_t n)
{
	struct exact_reader r;
	struct exact_row row;

	assert_int_equal(exact_reader_init(&r, b->p, b->n), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(exact_reader_next(&r, &row), 1);
		assert_int_equal(exact_row_compare(&row, &list[i]), 0);
		assert_int_equal(row.count, list[i].count);
	}
	assert_int_equal(exact_reader_next(&r, &row), 0);
}

static void packs(void **state)
{
	struct buf b = {0};

	(void)state;
	exact_pack(some, COUNT(some), &b);
	assert_reads(&b, some, COUNT(some));
	assert_whole(&blob_exact, &b);
	buf_deinit(&b);
}

/* Databases hold these bytes: a change would make them unreadable. */
static void bytes_are_fixed(void **state)
{
	static const uint8_t want[] = {0x04, 0x00, 0x80, 0x20, 0x00, 0x01, 0x80, 0x70, 0x10, 0x03,
		0x01, 0x80, 0x10, 0x08, 0x05, 0x01, 0x08, 0x04, 0x00};
	struct buf b = {0};

	(void)state;
	exact_pack(some, 4, &b);
	assert_bytes(&b, want, sizeof want);
	buf_deinit(&b);
}

static void refused(void **state)
{
	static const struct bad_blob bad[] = {
		{"nothing", "", 0},
		{"more rows than bytes", "\x02\x00\x10\x00", 4},
		{"more rows than memory", NINE_FF "\x01\x00", 11},
		{"a block before any procedure", "\x01\x01\x10\x01\x00", 5},
		{"an edge before any procedure", "\x01\x02\x10\x01\x00", 5},
		{"a kind that is none", "\x01\x03\x10\x01\x00", 5},
		{"a procedure twice", "\x02\x00\x10\x00\x00\x00\x00", 7},
		{"procedures that wrap", "\x02\x00\x10\x00\x00" NINE_FF "\x01\x00", 15},
		{"a block twice", "\x03\x00\x10\x00\x01\x00\x04\x01\x01\x00\x04\x01", 12},
		{"blocks out of order", "\x03\x00\x10\x00\x01\x00\x04\x01\x01\x7f\x04\x01", 12},
		{"a block behind an edge", "\x03\x00\x10\x00\x02\x00\x04\x01\x01\x01\x04\x01", 12},
		{"ends before the count", "\x01\x00\x80\x01", 4},
		{"something follows", "\x01\x00\x10\x00\x00", 5},
		{"something follows nothing", "\x00\x00", 2},
	};

	(void)state;
	assert_refused(&blob_exact, bad, COUNT(bad));
	assert_int_equal(blob_exact.check("\x00", 1), 0);
	assert_int_equal(
		blob_exact.check("\x03\x00\x10\x00\x01\x00\x04\x01\x01\x01\x04\x01", 12), 0);
}

static void merges(void **state)
{
	struct buf a = {0}, b = {0}, out = {0};

	(void)state;
	exact_pack(some, 8, &a);
	exact_pack(more, COUNT(more), &b);
	blob_merge(&blob_exact, &a, &b, &out);
	assert_reads(&out, both, COUNT(both));
	assert_int_equal(blob_weight(&blob_exact, &b), 21);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&out);
}

/* ---- in a database ---- */

static void are_no_samples_of_their_own(void **state)
{
	struct buf a = {0}, b = {0};

	exact_pack(some, 6, &a);
	exact_pack(more, COUNT(more), &b);
	assert_no_samples_of_their_own(*state, &blob_exact, &a, &b);
	buf_deinit(&a);
	buf_deinit(&b);
}

static void come_along_and_expire(void **state)
{
	struct buf a = {0}, b = {0};

	exact_pack(some, 6, &a);
	exact_pack(more, COUNT(more), &b);
	assert_come_along_and_expire(*state, &blob_exact, &a, &b);
	buf_deinit(&a);
	buf_deinit(&b);
}

static void damaged_ones_stay_out(void **state)
{
	assert_damaged_stay_out(*state, &blob_exact, "\x01\x00", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packs),
		cmocka_unit_test(bytes_are_fixed),
		cmocka_unit_test(refused),
		cmocka_unit_test(merges),
		cmocka_unit_test_setup_teardown(are_no_samples_of_their_own, setup, teardown),
		cmocka_unit_test_setup_teardown(come_along_and_expire, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_ones_stay_out, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
