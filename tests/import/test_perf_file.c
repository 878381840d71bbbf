#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "import/perf_data.h"
#include "import/perf_file.h"

#include <errno.h>
#include <zstd.h>

static char path[] = "/tmp/culprit-test-perf.XXXXXX";

static int set_up(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	close(fd);
	return fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

static struct perf_file *opened(struct buf *b)
{
	struct perf_file *f;
	struct err e = {0};

	data_write(path, b);
	buf_deinit(b);
	if (perf_file_open(path, &f, &e) < 0)
		fail_msg("%s", e.text);
	return f;
}

/* How many records come out, whose sizes add up to *bytes; or the failure. */
static int count(struct perf_file *f, size_t *bytes)
{
	const uint8_t *record;
	size_t size;
	struct err e = {0};
	int n = 0, r;

	*bytes = 0;
	while ((r = perf_file_next(f, &record, &size, &e)) > 0) {
		n++;
		*bytes += size;
	}
	assert_int_equal(r < 0, *e.text != 0);
	return r < 0 ? r : n;
}

static struct data example(void)
{
	struct data d = {.attrs = {data_attr(0, 0), data_attr(2, 0)}, .nattrs = 2};
	struct buf *b;

	for (unsigned i = 0; i < 20; i++)
		perf_sample(&d.records, 10 + i % 2, 0x1000 + i, 7, 100 + i, PERF_RECORD_MISC_USER);
	data_string(data_feature(&d, 3), "there");
	b = data_feature(&d, 11);
	buf_u32(b, 2);
	data_string(b, "/usr/bin/perf");
	data_string(b, "record");
	b = data_feature(&d, 12);
	buf_u32(b, 2);
	buf_u32(b, sizeof(struct perf_event_attr));
	for (unsigned i = 0; i < 2; i++) {
		buf_put(b, &d.attrs[i], sizeof d.attrs[i]);
		buf_u32(b, 1);
		data_string(b, i ? "page-faults:u" : "cpu-clock");
		buf_u64(b, 10 + i);
	}
	b = data_feature(&d, 21);
	buf_u64(b, 100);
	buf_u64(b, 119);
	return d;
}

static void check_example(struct perf_file *f, struct data *d)
{
	const struct perf_facts *facts = perf_file_facts(f);
	const struct perf_event *events;
	size_t bytes;

	assert_int_equal(count(f, &bytes), 20);
	assert_int_equal(bytes, d->records.n);
	assert_int_equal(perf_file_events(f, &events), 2);
	assert_int_equal(events[1].ids.n, 1);
	assert_int_equal(events[1].ids.p[0], 11);
	assert_int_equal(events[1].attr.config, 2);
	assert_string_equal(events[0].name, "cpu-clock");
	assert_string_equal(events[1].name, "page-faults:u");
	assert_string_equal(facts->host, "there");
	assert_string_equal(facts->command, "perf record");
	assert_int_equal(facts->last, 119);
	perf_file_close(f);
	data_deinit(d);
}

static void test_file(void **state)
{
	struct data d = example();
	struct buf b = data_file(&d);

	(void)state;
	check_example(opened(&b), &d);
}

static void test_stream(void **state)
{
	struct data d = example();
	struct buf b = data_stream(&d);

	(void)state;
	check_example(opened(&b), &d);
}

/* Pieces of one stream of zstd, cut in the middle of records, in both kinds of records. */
static void test_compressed(void **state)
{
	struct data d = example();
	struct buf plain = d.records, b;
	ZSTD_CStream *z = ZSTD_createCStream();
	uint8_t space[4096];
	size_t third = plain.n / 3 + 3;

	(void)state;
	d.records = (struct buf){0};
	for (unsigned i = 0; i < 3; i++) {
		size_t from = i * third, to = i < 2 ? from + third : plain.n, start;
		ZSTD_inBuffer in = {plain.p + from, to - from, 0};
		ZSTD_outBuffer out = {space, sizeof space, 0};

		ZSTD_compressStream2(z, &out, &in, i < 2 ? ZSTD_e_flush : ZSTD_e_end);
		start = perf_begin(&d.records, i % 2 ? 83 : 81, 0);
		if (i % 2)
			buf_u64(&d.records, out.pos);
		buf_put(&d.records, space, out.pos);
		while (i % 2 && d.records.n % 8)
			buf_u8(&d.records, 0);
		perf_size(&d.records, start);
	}
	ZSTD_freeCStream(z);
	b = data_file(&d);
	buf_deinit(&d.records);
	d.records = plain;
	check_example(opened(&b), &d);

	/* What is no zstd. */
	d = example();
	memset(d.records.p, 0xaa, d.records.n);
	memcpy(d.records.p, "\x51\0\0\0\0\0\x20\0", 8);
	b = data_file(&d);
	data_deinit(&d);
	{
		struct perf_file *f = opened(&b);
		size_t bytes;

		assert_int_equal(count(f, &bytes), -EBADMSG);
		perf_file_close(f);
	}
}

/* Bytes that follow a record without being counted in its size. */
static void test_traces_are_skipped(void **state)
{
	struct data d = {.attrs = {data_attr(0, 0)}, .nattrs = 1};
	struct buf b, *r = &d.records;
	struct perf_file *f;
	size_t start, bytes;

	(void)state;
	perf_sample(r, 10, 1, 7, 100, PERF_RECORD_MISC_USER);
	start = perf_begin(r, 71, 0);
	buf_u64(r, 4000);
	for (int i = 0; i < 4; i++)
		buf_u64(r, 0);
	perf_size(r, start);
	for (int i = 0; i < 4000; i++)
		buf_u8(r, 0xff);
	perf_sample(r, 10, 2, 7, 100, PERF_RECORD_MISC_USER);
	b = data_file(&d);
	data_deinit(&d);
	f = opened(&b);
	assert_int_equal(count(f, &bytes), 2);
	assert_int_equal(perf_file_aux_bytes(f), 4000);
	perf_file_close(f);
}

/* However much of it is there, it is refused in words, or was a stream that just ended. */
static void test_cut(void **state)
{
	for (int stream = 0; stream < 2; stream++) {
		struct data d = example();
		struct buf b = stream ? data_stream(&d) : data_file(&d);
		size_t whole = b.n;

		(void)state;
		for (size_t n = 0; n < whole; n += 1 + n % 7) {
			struct buf part = {0};
			struct perf_file *f = NULL;
			struct err e = {0};
			size_t bytes;
			int r;

			buf_put(&part, b.p, n);
			data_write(path, &part);
			buf_deinit(&part);
			r = perf_file_open(path, &f, &e);
			if (r == 0)
				r = count(f, &bytes);
			else
				assert_true(*e.text);
			assert_true(r == -EBADMSG || (stream && r >= 0 && r <= 20));
			perf_file_close(f);
		}
		buf_deinit(&b);
		data_deinit(&d);
	}
}

/* perf that was killed leaves a header without sizes: what it wrote counts. */
static void test_interrupted(void **state)
{
	struct data d = example();
	struct buf b;
	struct perf_file *f;
	size_t bytes;

	(void)state;
	d.nfeatures = 0;
	b = data_file(&d);
	memset(b.p + 48, 0, 8);
	b.n -= 20;
	f = opened(&b);
	assert_int_equal(count(f, &bytes), 19);
	assert_true(perf_file_facts(f)->interrupted);
	perf_file_close(f);
	d.nfeatures = 4;
	data_deinit(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_compressed),
		cmocka_unit_test(test_traces_are_skipped),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_interrupted),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
