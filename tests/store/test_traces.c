#include "store/traces.h"

#include "store/blob_rig.h"

#define COUNT(list) (sizeof list / sizeof *list)
#define EXE         0x1111111111111111
#define LIB         0x2222222222222222

static const struct trace_site sites[] = {
	{LIB, 0x1000, 0x1010, TRACE_LOAD, 8, NULL},
	{EXE, 0x5000, 0x5004, TRACE_STORE, 4, NULL},
	{EXE, 0x4000, 0x3ff0, TRACE_LOAD | TRACE_STORE, 64, NULL},
};
static const struct trace_reference first[] = {
	{0, 0x7fff00001000}, {1, 0x600000}, {0, 0x7fff00001008}, {2, UINT64_MAX}, {2, 0}};
static const struct trace_reference second[] = {{1, 0x600004}};
static const struct trace_burst bursts[] = {
	{7, 8, 1000, first, COUNT(first)},
	{7, 7, 900, second, COUNT(second)},
	{1, 1, 5000, NULL, 0},
};

static void pack(size_t n, uint64_t lost, struct buf *out)
{
	struct trace_writer w = {0};

	for (size_t i = 0; i < n; i++)
		trace_writer_put(&w, &bursts[i]);
	trace_writer_end(&w, sites, COUNT(sites), lost, out);
}

static void assert_bursts(struct trace_reader *r, size_t n)
{
	struct trace_burst b;

	assert_int_equal(r->sites.n, COUNT(sites));
	for (size_t i = 0; i < COUNT(sites); i++) {
		assert_int_equal(r->sites.p[i].image, sites[i].image);
		assert_int_equal(r->sites.p[i].procedure, sites[i].procedure);
		assert_int_equal(r->sites.p[i].at, sites[i].at);
		assert_int_equal(r->sites.p[i].kind, sites[i].kind);
		assert_int_equal(r->sites.p[i].size, sites[i].size);
	}
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(trace_reader_next(r, &b), 1);
		assert_int_equal(b.process, bursts[i].process);
		assert_int_equal(b.thread, bursts[i].thread);
		assert_int_equal(b.time, bursts[i].time);
		assert_int_equal(b.n, bursts[i].n);
		for (size_t k = 0; k < b.n; k++) {
			assert_int_equal(b.references[k].site, bursts[i].references[k].site);
			assert_int_equal(b.references[k].address, bursts[i].references[k].address);
		}
	}
	assert_int_equal(trace_reader_next(r, &b), 0);
}

static void packs(void **state)
{
	struct trace_reader r;
	struct buf b = {0};

	(void)state;
	pack(3, 4, &b);
	assert_int_equal(trace_reader_init(&r, b.p, b.n), 0);
	assert_int_equal(trace_reader_part(&r), 1);
	assert_int_equal(r.lost, 4);
	assert_bursts(&r, 3);
	assert_int_equal(trace_reader_part(&r), 0);
	trace_reader_deinit(&r);
	assert_whole(&blob_trace, &b);
	assert_int_equal(blob_weight(&blob_trace, &b), 6);
	buf_deinit(&b);
}

/* Paths have shapes, unless nobody knows them. */
static void paths_have_shapes(void **state)
{
	static const uint64_t blocks[] = {0x5000, 0x5040, 0x5010};
	static const struct path_shape shape = {PATH_AGAIN, PATH_NEXT, 3, blocks, 0x5000};
	static const struct trace_site list[] = {
		{EXE, 0x5000, 0x5018, TRACE_PATH, 0, &shape},
		{EXE, 0x5000, 0x5018, TRACE_PATH, 0, NULL},
		{EXE, 0x5000, 0x5004, TRACE_STORE, 4, NULL},
	};
	static const struct trace_reference path = {0, 17};
	static const struct trace_burst burst = {7, 8, 1000, &path, 1};
	static const uint8_t want[] = {0x01, 0x01, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11,
		0x03, 0x00, 0x80, 0xa0, 0x01, 0x18, 0x07, 0x00, 0x01, 0x01, 0x02, 0x03, 0x00, 0xc0,
		0x00, 0x50, 0x70, 0x00, 0x00, 0x18, 0x07, 0x00, 0x00, 0x00, 0x00, 0x04, 0x02, 0x04,
		0x00, 0x01, 0x07, 0x08, 0xe8, 0x07, 0x01, 0x00, 0x11};
	struct trace_writer w = {0};
	struct trace_reader r;
	struct buf b = {0};

	(void)state;
	trace_writer_put(&w, &burst);
	trace_writer_end(&w, list, COUNT(list), 0, &b);
	assert_bytes(&b, want, sizeof want);
	assert_whole(&blob_trace, &b);
	assert_int_equal(trace_reader_init(&r, b.p, b.n), 0);
	assert_int_equal(trace_reader_part(&r), 1);
	assert_int_equal(path_shape_compare(r.sites.p[0].path, &shape), 0);
	assert_null(r.sites.p[1].path);
	assert_null(r.sites.p[2].path);
	trace_reader_deinit(&r);
	buf_deinit(&b);
}

/* Databases hold these bytes: a change would make them unreadable. */
static void bytes_are_fixed(void **state)
{
	static const uint8_t want[] = {0x01, 0x02, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11,
		0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x03, 0x01, 0x80, 0x20, 0x10, 0x01,
		0x08, 0x00, 0x80, 0x80, 0x01, 0x04, 0x02, 0x04, 0x00, 0x80, 0x60, 0x70, 0x03, 0x40,
		0x00, 0x00};
	struct buf b = {0};

	(void)state;
	pack(0, 0, &b);
	assert_bytes(&b, want, sizeof want);
	buf_deinit(&b);
}

/* A site of image 0 at 0, then. */
#define PART "\x01\x01\x11\x11\x11\x11\x11\x11\x11\x11"

static void refused(void **state)
{
	static const struct bad_blob bad[] = {
		{"nothing", "", 0},
		{"a part that is not there", "\x01", 1},
		{"more sites than bytes", PART "\x09\x00\x00\x00\x01\x08\x00\x00", 18},
		{"a site in no image", PART "\x01\x01\x00\x00\x01\x08\x00\x00", 18},
		{"a kind that is none", PART "\x01\x00\x00\x00\x09\x08\x00\x00", 18},
		{"too large", PART "\x01\x00\x00\x00\x01\x80\x80\x04\x00\x00", 20},
		{"more bursts than bytes", PART "\x01\x00\x00\x00\x01\x08\x00\x02", 18},
		{"a reference of no site",
			PART "\x01\x00\x00\x00\x01\x08\x00\x01\x01\x01\x00\x01\x01\x00", 24},
		{"more references than bytes",
			PART "\x01\x00\x00\x00\x01\x08\x00\x01\x01\x01\x00\x02\x00\x00", 24},
		{"a path of no blocks", PART "\x01\x00\x00\x00\x07\x00\x01\x00\x00\x00\x00\x00",
			22},
		{"a path that is half known", PART "\x01\x00\x00\x00\x07\x00\x02\x00\x00", 19},
		{"something follows", PART "\x01\x00\x00\x00\x01\x08\x00\x00\x00", 19},
	};

	(void)state;
	assert_refused(&blob_trace, bad, COUNT(bad));
	assert_int_equal(blob_trace.check("\x00", 1), 0);
	assert_int_equal(blob_trace.check(PART "\x01\x00\x00\x00\x01\x08\x00\x00", 18), 0);
}

static void merges(void **state)
{
	struct buf a = {0}, b = {0}, out = {0};
	struct trace_reader r;

	(void)state;
	pack(3, 1, &a);
	pack(1, 2, &b);
	assert_int_equal(blob_trace.merge(a.p, a.n, b.p, b.n, &out), 0);
	assert_int_equal(trace_reader_init(&r, out.p, out.n), 0);
	assert_int_equal(trace_reader_part(&r), 1);
	assert_int_equal(trace_reader_part(&r), 1); /* bursts may be left out */
	assert_int_equal(r.lost, 2);
	assert_bursts(&r, 1);
	assert_int_equal(trace_reader_part(&r), 0);
	trace_reader_deinit(&r);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packs),
		cmocka_unit_test(paths_have_shapes),
		cmocka_unit_test(bytes_are_fixed),
		cmocka_unit_test(refused),
		cmocka_unit_test(merges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
