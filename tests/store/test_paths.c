#include "store/paths.h"

#include "store/blob_rig.h"

#include <string.h>

#define COUNT(list) (sizeof list / sizeof *list)
#define SHAPE(from, to, target, ...)                                               \
	{                                                                          \
		.start = from, .end = to, .next = target,                          \
		.n = sizeof((uint64_t[]){__VA_ARGS__}) / 8, .blocks = (uint64_t[]) \
		{                                                                  \
			__VA_ARGS__                                                \
		}                                                                  \
	}
#define PROCEDURE(at, kind, paths, cut, wrong)                                              \
	{                                                                                   \
		.procedure = at, .how = kind, .potential = paths, .cuts = cut, .off = wrong \
	}
#define PATH(at, times, metric, ...)                                                           \
	{                                                                                      \
		.procedure = at, .is_path = true, .shape = SHAPE(__VA_ARGS__), .count = times, \
		.metrics = {                                                                   \
			metric                                                                 \
		}                                                                              \
	}

static const struct metric_names none, tsc = {1, {"tsc"}}, misses = {1, {"misses"}};

static const struct path_row some[] = {
	PROCEDURE(0x1000, PATH_HOW_ARRAY, 4, 0, 0),
	PATH(0x1000, 7, 70, PATH_ENTRY, PATH_NEXT, 0x1010, 0x1000, 0x1010),
	PATH(0x1000, 3, 9, PATH_ENTRY, PATH_RETURN, 0, 0x1000, 0x1030),
	PATH(0x1000, UINT64_MAX - 1, 1, PATH_AGAIN, PATH_NEXT, 0x1010, 0x1010),
	PROCEDURE(0x2000, PATH_HOW_HASH, UINT64_MAX, 3, 2),
	PATH(0x2000, 1, 0, PATH_ENTERED, PATH_TAIL, 0, 0x2000, 0x800, UINT64_MAX),
};
static const struct path_row more[] = {
	PROCEDURE(0x500, PATH_HOW_ONE, 1, 0, 0),
	PATH(0x500, 2, 5, PATH_ENTRY, PATH_STOP, 0, 0x500),
	PROCEDURE(0x1000, PATH_HOW_HASH, 2, 1, 1),
	PATH(0x1000, 1, 30, PATH_ENTRY, PATH_NEXT, 0x1010, 0x1000, 0x1010),
	PATH(0x1000, 9, 0, PATH_ENTRY, PATH_NEXT, 0x1020, 0x1000, 0x1010),
	PATH(0x1000, 5, 2, PATH_AGAIN, PATH_NEXT, 0x1010, 0x1010),
};
static const struct path_row both[] = {
	PROCEDURE(0x500, PATH_HOW_ONE, 1, 0, 0),
	PATH(0x500, 2, 5, PATH_ENTRY, PATH_STOP, 0, 0x500),
	PROCEDURE(0x1000, PATH_HOW_HASH, 4, 1, 1),
	PATH(0x1000, 8, 100, PATH_ENTRY, PATH_NEXT, 0x1010, 0x1000, 0x1010),
	PATH(0x1000, 9, 0, PATH_ENTRY, PATH_NEXT, 0x1020, 0x1000, 0x1010),
	PATH(0x1000, 3, 9, PATH_ENTRY, PATH_RETURN, 0, 0x1000, 0x1030),
	PATH(0x1000, UINT64_MAX, 3, PATH_AGAIN, PATH_NEXT, 0x1010, 0x1010),
	PROCEDURE(0x2000, PATH_HOW_HASH, UINT64_MAX, 3, 2),
	PATH(0x2000, 1, 0, PATH_ENTERED, PATH_TAIL, 0, 0x2000, 0x800, UINT64_MAX),
};

static void assert_row(const struct path_row *a, const struct path_row *b)
{
	assert_int_equal(path_row_compare(a, b), 0);
	assert_int_equal(a->how, b->how);
	assert_int_equal(a->potential, b->potential);
	assert_int_equal(a->cuts, b->cuts);
	assert_int_equal(a->off, b->off);
	assert_int_equal(a->count, b->count);
	assert_memory_equal(a->metrics, b->metrics, sizeof a->metrics);
}

static void assert_reads(const struct buf *b, const struct path_row *list, size_t n)
{
	struct path_reader r;
	struct path_row row;

	assert_int_equal(path_reader_init(&r, b->p, b->n), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(path_reader_next(&r, &row), 1);
		assert_row(&row, &list[i]);
	}
	assert_int_equal(path_reader_next(&r, &row), 0);
	path_reader_deinit(&r);
}

static void packs(void **state)
{
	struct buf b = {0};

	(void)state;
	paths_pack(&tsc, some, COUNT(some), &b);
	assert_reads(&b, some, COUNT(some));
	assert_whole(&blob_path, &b);
	buf_deinit(&b);
}

/* Databases hold these bytes: a change would make them unreadable. */
static void bytes_are_fixed(void **state)
{
	static const uint8_t want[] = {0x01, 't', 's', 'c', 0x00, 0x02, 0x00, 0x80, 0x20, 0x01,
		0x04, 0x00, 0x00, 0x01, 0x00, 0x02, 0x02, 0x00, 0x10, 0x00, 0x07, 0x46};
	struct buf b = {0};

	(void)state;
	paths_pack(&tsc, some, 2, &b);
	assert_bytes(&b, want, sizeof want);
	buf_deinit(&b);
}

#define PROC "\x00\x10\x01\x04\x00\x00"

static void refused(void **state)
{
	static const struct bad_blob bad[] = {
		{"nothing", "", 0},
		{"more metrics than there can be",
			"\x05"
			"a\0b\0c\0d\0e\0\x00",
			12},
		{"a metric without a name", "\x01\0\0", 3},
		{"metrics twice",
			"\x02"
			"a\0a\0\0",
			6},
		{"more rows than bytes", "\x00\x02" PROC, 8},
		{"more rows than memory", "\x00" NINE_FF "\x01\x00", 12},
		{"a path before any procedure", "\x00\x01\x01\x00\x00\x01\x00\x01", 8},
		{"a kind that is none", "\x00\x01\x02\x10\x01\x04\x00\x00", 8},
		{"counted in no known way", "\x00\x01\x00\x10\x04\x04\x00\x00", 8},
		{"a procedure twice", "\x00\x02" PROC "\x00\x00\x01\x04\x00\x00", 14},
		{"a path without blocks", "\x00\x02" PROC "\x01\x00\x00\x00\x01\x01", 14},
		{"a start that is none", "\x00\x02" PROC "\x01\x03\x00\x01\x00\x01", 14},
		{"an end that is none", "\x00\x02" PROC "\x01\x00\x04\x01\x00\x01", 14},
		{"a path twice", "\x00\x03" PROC "\x01\x00\x00\x01\x00\x01\x01\x00\x00\x01\x00\x01",
			20},
		{"more blocks than bytes", "\x00\x02" PROC "\x01\x00\x00\x09\x00\x01", 14},
		{"something follows", "\x00\x01" PROC "\x00", 9},
	};

	(void)state;
	assert_refused(&blob_path, bad, COUNT(bad));
	assert_int_equal(blob_path.check("\x00\x00", 2), 0);
	assert_int_equal(blob_path.check("\x00\x02" PROC "\x01\x00\x00\x01\x00\x01", 14), 0);
}

static void merges(void **state)
{
	struct buf a = {0}, b = {0}, out = {0};

	(void)state;
	paths_pack(&tsc, some, COUNT(some), &a);
	paths_pack(&tsc, more, COUNT(more), &b);
	blob_merge(&blob_path, &a, &b, &out);
	assert_reads(&out, both, COUNT(both));
	assert_int_equal(blob_weight(&blob_path, &b), 17);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&out);
}

/* What one run measured and the other did not stays what it was. */
static void metrics_find_their_names(void **state)
{
	struct buf a = {0}, b = {0}, out = {0};
	struct path_reader r;
	struct path_row row;

	(void)state;
	paths_pack(&tsc, some, 2, &a);
	paths_pack(&misses, more + 2, 2, &b);
	blob_merge(&blob_path, &a, &b, &out);
	assert_int_equal(path_reader_init(&r, out.p, out.n), 0);
	assert_int_equal(r.names.n, 2);
	assert_int_equal(path_reader_next(&r, &row), 1);
	assert_int_equal(path_reader_next(&r, &row), 1);
	assert_int_equal(row.metrics[metric_find(&r.names, "tsc")], 70);
	assert_int_equal(row.metrics[metric_find(&r.names, "misses")], 30);
	path_reader_deinit(&r);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&out);
}

/* ---- in a database ---- */

static void are_no_samples_of_their_own(void **state)
{
	struct buf a = {0}, b = {0};

	paths_pack(&none, some, 3, &a);
	paths_pack(&none, more, COUNT(more), &b);
	assert_no_samples_of_their_own(*state, &blob_path, &a, &b);
	buf_deinit(&a);
	buf_deinit(&b);
}

static void come_along_and_expire(void **state)
{
	struct buf a = {0}, b = {0};

	paths_pack(&none, some, 3, &a);
	paths_pack(&none, more, COUNT(more), &b);
	assert_come_along_and_expire(*state, &blob_path, &a, &b);
	buf_deinit(&a);
	buf_deinit(&b);
}

static void damaged_ones_stay_out(void **state)
{
	assert_damaged_stay_out(*state, &blob_path, "\x00\x01\x00", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packs),
		cmocka_unit_test(bytes_are_fixed),
		cmocka_unit_test(refused),
		cmocka_unit_test(merges),
		cmocka_unit_test(metrics_find_their_names),
		cmocka_unit_test_setup_teardown(are_no_samples_of_their_own, setup, teardown),
		cmocka_unit_test_setup_teardown(come_along_and_expire, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_ones_stay_out, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
