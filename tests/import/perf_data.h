/* Recordings as perf writes them, built in memory: also of what this machine cannot record. */
#ifndef CULPRIT_TESTS_PERF_DATA_H
#define CULPRIT_TESTS_PERF_DATA_H

#include "collect/perf_bytes.h"
#include "image/image.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DATA_TYPE                                                                       \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
		PERF_SAMPLE_CPU)

static inline struct perf_event_attr data_attr(uint64_t config, uint64_t more)
{
	return (struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = config,
		.sample_period = 1000000,
		.sample_type = DATA_TYPE | more,
		.sample_id_all = 1};
}

struct data_feature {
	unsigned number;
	struct buf bytes;
};

/* Event i has the id 10 + i. */
struct data {
	struct perf_event_attr attrs[4];
	size_t nattrs;
	struct buf records;
	struct data_feature features[8]; /* by number */
	size_t nfeatures;
};

static inline void data_string(struct buf *b, const char *s)
{
	buf_u32(b, (uint32_t)strlen(s) + 1);
	buf_put(b, s, strlen(s) + 1);
}

static inline struct buf *data_feature(struct data *d, unsigned number)
{
	struct data_feature *f = &d->features[d->nfeatures++];

	*f = (struct data_feature){.number = number};
	return &f->bytes;
}

/* The file: header, ids, attrs, records, the table of features, features. */
static inline struct buf data_file(struct data *d)
{
	struct buf out = {0};
	uint64_t ids = 104, each = sizeof(struct perf_event_attr) + 16, bits[4] = {0}, at;
	uint64_t attrs = ids + 8 * d->nattrs, records = attrs + each * d->nattrs;

	for (size_t i = 0; i < d->nfeatures; i++)
		bits[d->features[i].number / 64] |= 1ull << d->features[i].number % 64;
	buf_put(&out, "PERFILE2", 8);
	buf_u64(&out, 104);
	buf_u64(&out, each);
	buf_u64(&out, attrs);
	buf_u64(&out, each * d->nattrs);
	buf_u64(&out, records);
	buf_u64(&out, d->records.n);
	buf_u64(&out, 0);
	buf_u64(&out, 0);
	for (int i = 0; i < 4; i++)
		buf_u64(&out, bits[i]);
	for (size_t i = 0; i < d->nattrs; i++)
		buf_u64(&out, 10 + i);
	for (size_t i = 0; i < d->nattrs; i++) {
		buf_put(&out, &d->attrs[i], sizeof d->attrs[i]);
		buf_u64(&out, ids + 8 * i);
		buf_u64(&out, 8);
	}
	buf_put(&out, d->records.p, d->records.n);
	at = out.n + 16 * d->nfeatures;
	for (size_t i = 0; i < d->nfeatures; i++) {
		buf_u64(&out, at);
		buf_u64(&out, d->features[i].bytes.n);
		at += d->features[i].bytes.n;
	}
	for (size_t i = 0; i < d->nfeatures; i++)
		buf_put(&out, d->features[i].bytes.p, d->features[i].bytes.n);
	return out;
}

/* The same as `perf record -o -` tells it. */
static inline struct buf data_stream(struct data *d)
{
	struct buf out = {0};
	size_t start;

	buf_put(&out, "PERFILE2", 8);
	buf_u64(&out, 16);
	for (size_t i = 0; i < d->nattrs; i++) {
		start = perf_begin(&out, 64, 0);
		buf_put(&out, &d->attrs[i], sizeof d->attrs[i]);
		buf_u64(&out, 10 + i);
		perf_size(&out, start);
	}
	for (size_t i = 0; i < d->nfeatures; i++) {
		start = perf_begin(&out, 80, 0);
		buf_u64(&out, d->features[i].number);
		buf_put(&out, d->features[i].bytes.p, d->features[i].bytes.n);
		perf_size(&out, start);
	}
	buf_put(&out, d->records.p, d->records.n);
	return out;
}

static inline void data_deinit(struct data *d)
{
	buf_deinit(&d->records);
	for (size_t i = 0; i < d->nfeatures; i++)
		buf_deinit(&d->features[i].bytes);
	*d = (struct data){0};
}

/* ---- records ---- */

static inline void data_mmap(struct buf *b, uint32_t pid, uint64_t time, uint64_t address,
	uint64_t size, uint64_t offset, const struct image_id *id, const char *path)
{
	size_t start = perf_begin(b, PERF_RECORD_MMAP2,
		PERF_RECORD_MISC_USER | (id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0));
	uint8_t bytes[20] = {0};

	buf_u32(b, pid);
	buf_u32(b, pid);
	buf_u64(b, address);
	buf_u64(b, size);
	buf_u64(b, offset);
	if (id)
		memcpy(bytes, id->bytes, id->size);
	buf_u32(b, id ? id->size : 0);
	buf_put(b, bytes, sizeof bytes);
	buf_u32(b, PROT_READ | PROT_EXEC);
	buf_u32(b, MAP_PRIVATE);
	perf_str(b, path);
	perf_end(b, start, pid, pid, time, 10);
}

static inline void data_round(struct buf *b)
{
	perf_size(b, perf_begin(b, 68, 0));
}

/* The file's name, in a folder of its own. */
static inline void data_write(const char *path, const struct buf *b)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, b->p, b->n) != (ssize_t)b->n)
		abort();
	close(fd);
}

#endif
