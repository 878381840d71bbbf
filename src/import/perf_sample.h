/*
 * What stands in the records of an event, as its attr says (man perf_event_open, "MMAP layout").
 */
#ifndef CULPRIT_IMPORT_PERF_SAMPLE_H
#define CULPRIT_IMPORT_PERF_SAMPLE_H

#include "calls/walk.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_event;

/* How events are told apart: all of a recording's agree in that. */
struct perf_layout {
	const struct perf_event *events;
	size_t n;
	int id_in_sample;  /* words from the beginning of its body; -1: there is none */
	int id_in_trailer; /* words from the end */
};

/* False when nothing tells the events apart, though they differ. */
bool perf_layout_of(const struct perf_event *events, size_t n, struct perf_layout *out);

/* The id in a record with its header; 0: it has none. */
uint64_t perf_record_id(const struct perf_layout *l, const uint8_t *record, size_t size);

/* What is behind a record that is no sample: bytes, and what they tell. */
struct perf_trailer {
	uint64_t time; /* 0: it does not say */
	int32_t pid, tid;
	uint32_t cpu;
};
size_t perf_trailer_size(const struct perf_event_attr *attr);
bool perf_trailer_parse(const struct perf_event_attr *attr, const uint8_t *record, size_t size,
	struct perf_trailer *out);

struct perf_sample {
	uint64_t ip, time, period, cgroup;
	int32_t pid, tid;
	uint32_t cpu;
	uint16_t misc;
	const uint8_t *chain; /* words, with PERF_CONTEXT_ marks among them */
	size_t nchain;
	const uint8_t *branches; /* from, to, flags; the latest first */
	size_t nbranches;
	bool has_stack; /* the program's registers, and a copy of its stack */
	struct walk_start stack;
};

/* False when it is not what the attr says. */
bool perf_sample_parse(const struct perf_event_attr *attr, const uint8_t *record, size_t size,
	struct perf_sample *out);

#endif
