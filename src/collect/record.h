/*
 * The records of a perf ring buffer (man perf_event_open, "MMAP layout"), parsed and checked.
 *
 * All our events ask for the same sample_type and sample_id_all, so one layout serves them all:
 * IDENTIFIER, IP, TID, TIME, CPU for samples; TID, TIME, CPU, IDENTIFIER behind other records.
 * Times are CLOCK_MONOTONIC nanoseconds. Strings point into the record.
 */
#ifndef CULPRIT_COLLECT_RECORD_H
#define CULPRIT_COLLECT_RECORD_H

#include "image/image.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_SAMPLE_TYPE                                                              \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
		PERF_SAMPLE_CPU)

enum record_kind {
	RECORD_SAMPLE,
	RECORD_MMAP, /* MMAP and MMAP2, executable mappings only */
	RECORD_COMM,
	RECORD_FORK,
	RECORD_EXIT,
	RECORD_LOST,
	RECORD_THROTTLE,
	RECORD_UNTHROTTLE,
	RECORD_CGROUP,
	RECORD_OTHER, /* nothing we use */
};

struct record {
	enum record_kind kind;
	uint64_t time, id; /* id of the event, from IDENTIFIER */
	uint32_t cpu;
	int32_t pid, tid;
	union {
		struct {
			uint64_t pc;
			uint16_t misc; /* PERF_RECORD_MISC_KERNEL, _USER, ... */
		} sample;
		struct {
			uint64_t start, size, offset;
			struct image_id build_id; /* size 0 when the kernel had none */
			uint64_t inode, inode_generation;
			uint32_t major, minor;
			bool kernel;
			const char *path;
		} mmap;
		struct {
			bool exec;
			const char *name;
		} comm;
		struct {
			int32_t parent_pid, parent_tid;
		} task; /* FORK and EXIT */
		struct {
			uint64_t lost;
		} lost;
		struct {
			uint64_t id;
			const char *path;
		} cgroup;
	};
};

/*
 * Parses the record at p (n bytes are there). 0, or -EBADMSG; *size is its length then too if it is
 * plausible, else 0. build_ids: the event asked for them. If it did not, a record that says it has
 * one has none: the kernel forgets to take back what it said for another event (sampler_open.c).
 */
int record_parse(const void *p, size_t n, bool build_ids, struct record *out, size_t *size);

#endif
