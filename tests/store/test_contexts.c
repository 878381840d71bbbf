#include "store/contexts.h"

#include "store/blob_rig.h"

#define COUNT(list) (sizeof list / sizeof *list)
#define EXE         0x1111111111111111
#define LIB         0x2222222222222222

#define NODE(deep, where, what, from, again, times, metric)                     \
	{                                                                       \
		.depth = deep, .image = where, .procedure = what, .site = from, \
		.recursive = again, .count = times, .metrics = {                \
			metric                                                  \
		}                                                               \
	}
#define PATH(deep, what, times, metric, ...)                        \
	{                                                           \
		.depth = deep, .is_path = true, .procedure = what,  \
		.shape = {.end = PATH_RETURN,                       \
			.n = sizeof((uint64_t[]){__VA_ARGS__}) / 8, \
			.blocks = (uint64_t[]){__VA_ARGS__}},       \
		.count = times, .metrics = {                        \
			metric                                      \
		}                                                   \
	}

static const struct metric_names tsc = {1, {"tsc"}};

static const struct context_row some[] = {
	NODE(0, EXE, 0x1000, 0, false, 1, 10),
	PATH(1, 0x1000, 1, 4, 0x1000, 0x1010),
	PATH(1, 0x1000, 2, 6, 0x1000, 0x1020),
	NODE(1, EXE, 0x2000, 0x1010, false, 4, 40),
	NODE(2, EXE, 0x2000, 0x2010, true, 3, 0),
	NODE(2, LIB, 0x1000, 0x2020, false, 9, 90),
	NODE(1, EXE, 0x2000, 0x1020, false, 5, 50),
	NODE(0, LIB, 0x7000, 0, false, UINT64_MAX, 1),
};
static const struct context_row more[] = {
	NODE(0, 0, 0, 0, false, 0, 0), /* somebody unknown */
	NODE(1, LIB, 0x7000, 0, false, 1, 1),
	NODE(0, EXE, 0x1000, 0, false, 2, 20),
	PATH(1, 0x1000, 5, 5, 0x1000, 0x1020),
	NODE(1, EXE, 0x2000, 0x1010, false, 1, 1),
	NODE(2, LIB, 0x500, 0x2020, false, 6, 60),
	NODE(3, LIB, 0x600, 0x508, false, 7, 70),
	NODE(2, LIB, 0x1000, 0x2020, false, 1, 10),
};
static const struct context_row both[] = {
	NODE(0, 0, 0, 0, false, 0, 0),
	NODE(1, LIB, 0x7000, 0, false, 1, 1),
	NODE(0, EXE, 0x1000, 0, false, 3, 30),
	PATH(1, 0x1000, 1, 4, 0x1000, 0x1010),
	PATH(1, 0x1000, 7, 11, 0x1000, 0x1020),
	NODE(1, EXE, 0x2000, 0x1010, false, 5, 41),
	NODE(2, EXE, 0x2000, 0x2010, true, 3, 0),
	NODE(2, LIB, 0x500, 0x2020, false, 6, 60),
	NODE(3, LIB, 0x600, 0x508, false, 7, 70),
	NODE(2, LIB, 0x1000, 0x2020, false, 10, 100),
	NODE(1, EXE, 0x2000, 0x1020, false, 5, 50),
	NODE(0, LIB, 0x7000, 0, false, UINT64_MAX, 1),
};

static void pack(const struct context_row *rows, size_t n, struct buf *out)
{
	struct key_list keys = {0};
	struct context_writer w;

	for (size_t i = 0; i < n; i++)
		if (rows[i].image)
			*vec_add(&keys.list) = rows[i].image;
	context_writer_init(&w, &tsc, &keys, n, out);
	for (size_t i = 0; i < n; i++)
		context_writer_put(&w, &rows[i]);
	context_writer_deinit(&w);
}

static void assert_reads(const struct buf *b, const struct context_row *list, size_t n)
{
	struct context_reader r;
	struct context_row row;

	assert_int_equal(context_reader_init(&r, b->p, b->n), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(context_reader_next(&r, &row), 1);
		assert_int_equal(row.depth, list[i].depth);
		assert_int_equal(context_row_compare(&row, &list[i]), 0);
		assert_int_equal(row.procedure, list[i].procedure);
		assert_int_equal(row.count, list[i].count);
		assert_int_equal(row.metrics[0], list[i].metrics[0]);
	}
	assert_int_equal(context_reader_next(&r, &row), 0);
	context_reader_deinit(&r);
}

static void packs(void **state)
{
	struct buf b = {0};

	(void)state;
	pack(some, COUNT(some), &b);
	assert_reads(&b, some, COUNT(some));
	assert_whole(&blob_context, &b);
	buf_deinit(&b);
}

/* Databases hold these bytes: a change would make them unreadable. */
static void bytes_are_fixed(void **state)
{
	static const uint8_t want[] = {0x01, 't', 's', 'c', 0x00, 0x01, 0x11, 0x11, 0x11, 0x11,
		0x11, 0x11, 0x11, 0x11, 0x05, 0x00, 0x00, 0x01, 0x80, 0x20, 0x01, 0x0a, 0x01, 0x00,
		0x00, 0x02, 0x00, 0x10, 0x01, 0x04, 0x01, 0x00, 0x00, 0x02, 0x00, 0x20, 0x02, 0x06,
		0x0c, 0x00, 0x80, 0x20, 0x10, 0x04, 0x28, 0x0e, 0x00, 0x00, 0x10, 0x03, 0x00};
	struct buf b = {0};

	(void)state;
	pack(some, 5, &b);
	assert_bytes(&b, want, sizeof want);
	buf_deinit(&b);
}

static void refused(void **state)
{
	static const struct bad_blob bad[] = {
		{"nothing", "", 0},
		{"no keys", "\x00", 1},
		{"more rows than bytes", "\x00\x00\x02\x08\x00\x10\x01", 7},
		{"more rows than memory", "\x00\x00" NINE_FF "\x01\x00", 13},
		{"a path before any node", "\x00\x00\x01\x01\x00\x00\x01\x00\x01", 9},
		{"a kind that is none", "\x00\x00\x01\x10\x00\x10\x01", 7},
		{"a path that is recursive", "\x00\x00\x02\x08\x00\x10\x01\x03\x00\x00\x01\x00\x01",
			13},
		{"up from the root", "\x00\x00\x01\x08\x01\x10\x01", 7},
		{"an image that is not there", "\x00\x00\x01\x00\x00\x01\x10\x01", 8},
		{"an image that is the parent's", "\x00\x00\x01\x00\x00\x00\x10\x01", 8},
		{"a site that is none", "\x00\x00\x01\x0c\x00\x10\x00\x01", 8},
		{"below what is recursive",
			"\x00\x00\x03\x08\x00\x10\x01\x0a\x00\x00\x01\x08\x00\x10\x01", 15},
		{"a node twice", "\x00\x00\x02\x08\x00\x10\x01\x08\x01\x00\x01", 11},
		{"out of order", "\x00\x00\x02\x08\x00\x10\x01\x08\x01\x7f\x01", 11},
		{"ends before the count", "\x00\x00\x01\x08\x00\x80\x01", 7},
		{"something follows", "\x00\x00\x01\x08\x00\x10\x01\x00", 8},
	};

	(void)state;
	assert_refused(&blob_context, bad, COUNT(bad));
	assert_int_equal(blob_context.check("\x00\x00\x00", 3), 0);
	assert_int_equal(blob_context.check("\x00\x00\x02\x08\x00\x10\x01\x08\x01\x01\x01", 11), 0);
}

static void merges(void **state)
{
	struct buf a = {0}, b = {0}, out = {0};

	(void)state;
	pack(some, COUNT(some), &a);
	pack(more, COUNT(more), &b);
	blob_merge(&blob_context, &a, &b, &out);
	assert_reads(&out, both, COUNT(both));
	assert_int_equal(blob_weight(&blob_context, &b), 18);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&out);
}

/* ---- in a database ---- */

static void are_no_samples_of_their_own(void **state)
{
	struct buf a = {0}, b = {0};

	pack(some, 6, &a);
	pack(more, COUNT(more), &b);
	assert_no_samples_of_their_own(*state, &blob_context, &a, &b);
	buf_deinit(&a);
	buf_deinit(&b);
}

static void come_along_and_expire(void **state)
{
	struct buf a = {0}, b = {0};

	pack(some, 6, &a);
	pack(more, COUNT(more), &b);
	assert_come_along_and_expire(*state, &blob_context, &a, &b);
	buf_deinit(&a);
	buf_deinit(&b);
}

static void damaged_ones_stay_out(void **state)
{
	assert_damaged_stay_out(*state, &blob_context, "\x00\x01\x00", 3);
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
