/*
 * Where the time went: the samples that a selection holds, reduced to rows by procedure, image,
 * process, thread, process name, source line, cgroup or CPU, with one count for each event (what
 * dcpiprof shows in the DCPI paper's section 3.1).
 *
 * Procedures and lines come from PC profiles, the other views from totals. Every sample is in
 * exactly one row: where no procedure or line is known there is one row for all of an image. Rows
 * are sorted by the first event, then by the following ones, then by name. Strings live as long as
 * the tally.
 */
#ifndef CULPRIT_ANALYZE_TALLY_H
#define CULPRIT_ANALYZE_TALLY_H

#include "analyze/selection.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct tally;

enum tally_by {
	TALLY_PROCEDURE,
	TALLY_IMAGE,
	TALLY_PROCESS,
	TALLY_THREAD,
	TALLY_COMM,
	TALLY_LINE,
	TALLY_CGROUP,
	TALLY_CPU,
};

struct tally_row {
	const char *name; /* procedure, image, process, thread, file, cgroup; never NULL */
	bool known;       /* false: stands for what has no procedure, line, cgroup, ... */
	uint64_t start;   /* of the procedure */
	const struct selected_image *image; /* procedure, image and line views, else NULL */
	uint32_t procedure;                 /* number within the image, or CODE_NOWHERE */
	const char *process;                /* thread view: whose */
	int64_t started;                    /* process and thread views, microseconds, 0 unknown */
	int32_t pid, tid, cpu, line;
	const uint64_t *samples; /* one for each event */
};

/*
 * `procedure` is a glob over procedure names (procedure and line views; NULL: all). -ENOENT when
 * the filter names a process whose own profiles were not kept.
 */
int tally_create(struct selection *sel, enum tally_by by, const char *procedure, struct tally **out,
	struct err *e);
void tally_destroy(struct tally *t);

size_t tally_rows(const struct tally *t, const struct tally_row **out);
uint64_t tally_total(const struct tally *t, size_t event); /* the sum of all rows */

/* Rows in the order of another event; those without samples of it are left out. */
size_t tally_rows_by(const struct tally *t, size_t event, const struct tally_row ***out);

#endif
