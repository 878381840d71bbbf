/* What the files behind import.h share. */
#ifndef CULPRIT_IMPORT_IMPORT_INTERNAL_H
#define CULPRIT_IMPORT_IMPORT_INTERNAL_H

#include "base/hmap.h"
#include "base/vec.h"
#include "collect/calibrate_skid.h"
#include "collect/record_queue.h"
#include "import/import.h"
#include "import/perf_file.h"
#include "import/perf_sample.h"

struct attribution;
struct recorded;

/* An event as the database has it: those of one name are one. */
struct import_event {
	char *name;
	bool is_clock;
	double rate;      /* that was asked for; 0: a period was */
	bool counts_lost; /* perf was told at the end how many samples were lost */
	int64_t id;       /* the store's */
	struct skid skid; /* if it was recorded where it is imported */
	/* Of the whole recording: */
	uint64_t samples;
	double periods; /* their sum */
	/* Since the last flush: */
	uint64_t lost_records, lost_samples; /* see import_lost */
	double throttled;
};

/* One id of an event, which is one counter: a CPU's, or a thread's. */
struct import_counter {
	uint64_t id;
	uint32_t attr, event; /* numbers: of the file's events, of ours */
	uint64_t throttled_at;
};

struct import {
	struct store *store;
	const struct import_options *o;
	struct import_result *out;
	struct perf_file *file;
	struct perf_layout layout;
	VEC(struct import_event) events;
	VEC(uint32_t) event_of; /* by the file's number */
	struct hmap counters;   /* struct import_counter */
	bool begun, timed, build_ids;
	struct record_queue queue;
	uint64_t latest;   /* time in the queue */
	uint64_t complete; /* everything before has come */
	uint64_t sequence; /* stands for times where there are none */
	struct recorded *recorded;
	struct attribution *attribution;
	int64_t host, epoch;
	uint64_t first, last;  /* times of the stretch that is not flushed */
	uint64_t stretch;      /* ns, at least */
	int64_t clock_offset;  /* CLOCK_REALTIME less that of the records */
	int64_t flushed_until; /* us since 1970 */
	int failed;
	struct err *e;
};

/* The events that the file has told, once; before the first record that is not perf's own. */
int import_begin_events(struct import *im);
/* The counter of a record; NULL: of none that the file names. */
struct import_counter *import_counter(struct import *im, const uint8_t *record, size_t size);

/* A record whose time has come. */
void import_record(struct import *im, uint64_t time, const uint8_t *record, size_t size);

/* Samples that were lost since the last flush. */
uint64_t import_lost(const struct import *im, const struct import_event *ev);

/* Everything since the last flush. */
int import_flush(struct import *im, struct err *e);

#endif
