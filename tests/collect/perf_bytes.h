/* Records as the kernel writes them, built in memory. */
#ifndef CULPRIT_TESTS_PERF_BYTES_H
#define CULPRIT_TESTS_PERF_BYTES_H

#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

/* A header whose size comes with the end. Returns where the record starts. */
static inline size_t perf_begin(struct buf *b, uint32_t type, uint16_t misc)
{
	size_t start = b->n;

	buf_u32(b, type);
	buf_u32(b, misc);
	return start;
}

static inline void perf_size(struct buf *b, size_t start)
{
	uint16_t size = (uint16_t)(b->n - start);

	memcpy(b->p + start + 6, &size, sizeof size);
}

/* A string with its NUL, filled up to a multiple of 8. */
static inline void perf_str(struct buf *b, const char *s)
{
	buf_str(b, s);
	while (b->n % 8)
		buf_u8(b, 0);
}

/* The trailer of sample_id_all, and the size. */
static inline void perf_end(
	struct buf *b, size_t start, uint32_t pid, uint32_t tid, uint64_t time, uint64_t id)
{
	buf_u32(b, pid);
	buf_u32(b, tid);
	buf_u64(b, time);
	buf_u32(b, 1); /* CPU */
	buf_u32(b, 0);
	buf_u64(b, id);
	perf_size(b, start);
}

static inline void perf_comm(
	struct buf *b, uint32_t pid, const char *name, uint64_t time, bool exec)
{
	size_t start = perf_begin(b, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);

	buf_u32(b, pid);
	buf_u32(b, pid);
	perf_str(b, name);
	perf_end(b, start, pid, pid, time, 5);
}

static inline void perf_sample(
	struct buf *b, uint64_t id, uint64_t pc, uint32_t pid, uint64_t time, uint16_t misc)
{
	size_t start = perf_begin(b, PERF_RECORD_SAMPLE, misc);

	buf_u64(b, id);
	buf_u64(b, pc);
	buf_u32(b, pid);
	buf_u32(b, pid + 1);
	buf_u64(b, time);
	buf_u32(b, 3); /* CPU */
	buf_u32(b, 0);
	perf_size(b, start);
}

#endif
