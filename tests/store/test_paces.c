#include "store/paces.h"

#include "store/blob_rig.h"

static void assert_reads(const struct buf *b, const struct pace *list, size_t n)
{
	struct pace_reader r;
	struct pace p;

	assert_int_equal(pace_reader_init(&r, b->p, b->n), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(pace_reader_next(&r, &p), 1);
		assert_memory_equal(&p, &list[i], sizeof p);
	}
	assert_int_equal(pace_reader_next(&r, &p), 0);
	assert_int_equal(pace_reader_next(&r, &p), 0);
}

static void packs(void **state)
{
	static const struct pace list[] = {
		{0, 0, 0, 1},
		{1, 7, 100, 2},
		{40, 3, UINT64_MAX, 5},
		{0xffffffff81000000, 1, 1, UINT64_MAX},
		{UINT64_MAX, UINT64_MAX, 0, 1},
	};
	const size_t n = sizeof list / sizeof *list;
	struct buf b = {0};

	(void)state;
	for (size_t from = 0; from <= n; from++) {
		b.n = 0;
		paces_pack(list + from, n - from, &b);
		assert_reads(&b, list + from, n - from);
		assert_whole(&blob_turns, &b);
	}
	buf_deinit(&b);
}

/* Databases hold these bytes: a change would make them unreadable. */
static void bytes_are_fixed(void **state)
{
	static const struct pace list[] = {{0x10, 3, 0x80, 1}, {0x12, 1, 7, 9}};
	static const uint8_t want[] = {0x02, 0x10, 0x03, 0x80, 0x01, 0x00, 0x01, 0x01, 0x07, 0x08};
	struct buf b = {0};

	(void)state;
	paces_pack(list, 2, &b);
	assert_bytes(&b, want, sizeof want);
	buf_deinit(&b);
}

static void refused(void **state)
{
	static const struct bad_blob bad[] = {
		{"nothing", "", 0},
		{"ends inside the number", "\x80", 1},
		{"more than bytes", "\x02\x01\x01\x07\x00", 5},
		{"more than memory", NINE_FF "\x01\x00", 11},
		{"ends before the reads", "\x01\x01\x01\x07", 4},
		{"something follows", "\x01\x01\x01\x07\x00\x00", 6},
		{"something follows none", "\x00\x00", 2},
		{"offsets that wrap", "\x02" NINE_FF "\x01\x01\x07\x00\x00\x01\x07\x00", 18},
		{"reads past the end of numbers", "\x01\x01\x01\x07" NINE_FF "\x01", 14},
		{"number of more than 64 bits", "\x01\x01\x01\x07" NINE_FF "\x02", 14},
	};

	(void)state;
	assert_refused(&blob_turns, bad, sizeof bad / sizeof *bad);
	/* What they are variations of. */
	assert_int_equal(blob_turns.check("\x00", 1), 0);
	assert_int_equal(blob_turns.check("\x01\x01\x01\x07\x00", 5), 0);
}

static void merges(void **state)
{
	struct pace some[] = {{9, 4, 10, 1}, {1, 1, 3, 4}, {9, 1, 5, 2}};
	static const struct pace settled[] = {{1, 1, 3, 4}, {9, 5, 15, 3}};
	static const struct pace more[] = {{5, 8, 8, 8}, {9, UINT64_MAX, 1, 1}};
	static const struct pace both[] = {{1, 1, 3, 4}, {5, 8, 8, 8}, {9, UINT64_MAX, 16, 4}};
	struct buf a = {0}, b = {0}, out = {0};

	(void)state;
	assert_int_equal(paces_settle(some, 3), 2);
	assert_memory_equal(some, settled, sizeof settled);
	assert_int_equal(paces_settle(NULL, 0), 0);
	paces_pack(some, 2, &a);
	paces_pack(more, 2, &b);
	blob_merge(&blob_turns, &a, &b, &out);
	assert_reads(&out, both, 3);
	assert_int_equal(blob_weight(&blob_turns, &out), 16);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&out);
}

static void in_a_database(void **state)
{
	static const struct pace list[] = {{9, 5, 15, 3}};
	struct buf b = {0};

	paces_pack(list, 1, &b);
	assert_no_samples_of_their_own(*state, &blob_turns, &b, &b);
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
