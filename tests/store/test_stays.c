#include "store/stays.h"

#include "store/blob_rig.h"

static void assert_reads(const struct buf *b, const struct stay *list, size_t n)
{
	struct stay_reader r;
	struct stay s;

	assert_int_equal(stay_reader_init(&r, b->p, b->n), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(stay_reader_next(&r, &s), 1);
		assert_memory_equal(&s, &list[i], sizeof s);
	}
	assert_int_equal(stay_reader_next(&r, &s), 0);
	assert_int_equal(stay_reader_next(&r, &s), 0);
}

static void packs(void **state)
{
	static const struct stay list[] = {
		{0, 0, 0, 1},
		{0, 1, 7, 100},
		{1, 1, 3, UINT64_MAX},
		{40, 0, 1, 0},
		{INT64_MAX, 0, 1, 1},
		{INT64_MAX, 1, UINT64_MAX, 0},
	};
	const size_t n = sizeof list / sizeof *list;
	struct buf b = {0};

	(void)state;
	for (size_t from = 0; from <= n; from++) {
		b.n = 0;
		stays_pack(list + from, n - from, &b);
		assert_reads(&b, list + from, n - from);
		assert_whole(&blob_stay, &b);
	}
	buf_deinit(&b);
}

/* Databases hold these bytes: a change would make them unreadable. */
static void bytes_are_fixed(void **state)
{
	static const struct stay list[] = {{0x10, 0, 3, 0x80}, {0x10, 1, 1, 7}};
	static const uint8_t want[] = {0x02, 0x20, 0x03, 0x80, 0x01, 0x01, 0x01, 0x07};
	struct buf b = {0};

	(void)state;
	stays_pack(list, 2, &b);
	assert_bytes(&b, want, sizeof want);
	buf_deinit(&b);
}

static void refused(void **state)
{
	static const struct bad_blob bad[] = {
		{"nothing", "", 0},
		{"ends inside the number", "\x80", 1},
		{"more than bytes", "\x02\x02\x01\x07", 4},
		{"more than memory", NINE_FF "\x01\x00", 11},
		{"ends before the last count", "\x01\x02\x01", 3},
		{"something follows", "\x01\x02\x01\x07\x00", 5},
		{"something follows none", "\x00\x00", 2},
		{"was never visited", "\x01\x02\x00\x00", 4},
		{"twice the same", "\x02\x02\x01\x07\x00\x01\x07", 7},
		{"data behind code", "\x02\x03\x01\x07\x00\x01\x07", 7},
		{"an offset beyond the last", "\x02" NINE_FF "\x01\x01\x07\x02\x01\x07", 16},
		{"number of more than 64 bits", "\x01\x02\x01" NINE_FF "\x02", 13},
	};

	(void)state;
	assert_refused(&blob_stay, bad, sizeof bad / sizeof *bad);
	/* What they are variations of. */
	assert_int_equal(blob_stay.check("\x00", 1), 0);
	assert_int_equal(blob_stay.check("\x01\x02\x01\x07", 4), 0);
	assert_int_equal(blob_stay.check("\x02\x02\x01\x07\x01\x01\x07", 7), 0);
}

static void merges(void **state)
{
	struct stay some[] = {{9, 1, 4, 10}, {1, 0, 1, 3}, {9, 0, 2, 0}, {9, 1, 1, 5}};
	static const struct stay settled[] = {{1, 0, 1, 3}, {9, 0, 2, 0}, {9, 1, 5, 15}};
	static const struct stay more[] = {{5, 0, 8, 8}, {9, 1, UINT64_MAX, 1}};
	static const struct stay both[] = {
		{1, 0, 1, 3}, {5, 0, 8, 8}, {9, 0, 2, 0}, {9, 1, UINT64_MAX, 16}};
	struct buf a = {0}, b = {0}, out = {0};

	(void)state;
	assert_int_equal(stays_settle(some, 4), 3);
	assert_memory_equal(some, settled, sizeof settled);
	assert_int_equal(stays_settle(NULL, 0), 0);
	stays_pack(some, 3, &a);
	stays_pack(more, 2, &b);
	blob_merge(&blob_stay, &a, &b, &out);
	assert_reads(&out, both, 4);
	assert_true(blob_weight(&blob_stay, &out) == UINT64_MAX);
	assert_int_equal(blob_weight(&blob_stay, &a), 26);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&out);
}

static void in_a_database(void **state)
{
	static const struct stay list[] = {{9, 1, 5, 15}};
	struct buf b = {0};

	stays_pack(list, 1, &b);
	assert_no_samples_of_their_own(*state, &blob_stay, &b, &b);
	buf_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packs),
		cmocka_unit_test(bytes_are_fixed),
		cmocka_unit_test(refused),
		cmocka_unit_test(merges),
		cmocka_unit_test_setup_teardown(in_a_database, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
