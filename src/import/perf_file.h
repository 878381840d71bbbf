/*
 * A recording as `perf record` writes it: perf.data, or the stream of `perf record -o -`.
 *
 * What stands around the records is read here (header, events, features, compression); the records
 * come out one by one, in the order of the file, as the kernel or perf wrote them. Sizes are those
 * of the file and are checked; nothing is mapped, so that a file that changes hurts nobody.
 */
#ifndef CULPRIT_IMPORT_PERF_FILE_H
#define CULPRIT_IMPORT_PERF_FILE_H

#include "base/vec.h"
#include "image/image.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct perf_file;

/* An event that was recorded. */
struct perf_event {
	struct perf_event_attr attr; /* what perf knew less than we is 0 */
	char *name;                  /* NULL: nobody says */
	VEC(uint64_t) ids;
};

struct perf_build_id {
	struct image_id id;
	const char *path;
	bool kernel;
};

/* What was written about the recording; NULL and 0 where nothing was. */
struct perf_facts {
	char *host, *release, *machine, *cpu, *command;
	uint32_t cpus;
	uint64_t first, last;         /* times of samples */
	uint64_t clock_time, wall_ns; /* the same moment on the clock of the records and the wall */
	int64_t written;              /* ns since 1970, of a file: when it was last changed */
	bool interrupted;             /* perf did not come to write the header's end */
};

/* "-" is the standard input. -EBADMSG, -EPROTO, -ENOENT and so on, in words. */
int perf_file_open(const char *path, struct perf_file **out, struct err *e);
void perf_file_close(struct perf_file *f); /* takes NULL */

/*
 * The next record, header included, good until the next call. 1, 0 at the end, or -EBADMSG. Records
 * that only speak of the file (PERF_RECORD_USER_TYPE_START and above) come out too if they matter
 * to anybody: the end of a round.
 */
int perf_file_next(struct perf_file *f, const uint8_t **record, size_t *size, struct err *e);

/* A stream tells these before the first sample, and facts as it goes on. */
size_t perf_file_events(const struct perf_file *f, const struct perf_event **out);
const struct perf_facts *perf_file_facts(const struct perf_file *f);

/* The build-id of a path that the file has a list of; NULL: none. */
const struct image_id *perf_file_build_id(const struct perf_file *f, const char *path, bool kernel);

/* Bytes of traces by the processor itself (AUX area), which nobody reads here. */
uint64_t perf_file_aux_bytes(const struct perf_file *f);

/* Times past this are none: clocks begin with the machine, or in 1970. */
#define PERF_TIME_MOST (1ull << 62)

enum {
	PERF_USER_FIRST = 64, /* types of records that perf makes itself */
	PERF_USER_ATTR = 64,
	PERF_USER_TRACING_DATA = 66,
	PERF_USER_BUILD_ID = 67,
	PERF_USER_FINISHED_ROUND = 68,
	PERF_USER_AUXTRACE = 71,
	PERF_USER_EVENT_UPDATE = 78,
	PERF_USER_FEATURE = 80,
	PERF_USER_COMPRESSED = 81,
	PERF_USER_COMPRESSED2 = 83,
};

#endif
