/*
 * The tool that counts paths: edits a file so that it counts how often every acyclic path inside
 * its procedures runs (Ball and Larus, MICRO 1996). Paths are numbered by number.h, plan.h says
 * which code is needed, and what was counted is put into rows by read.h, with the map that is made
 * here.
 *
 * A path begins at an entry, behind an edge that goes around, at a landing pad or a label that is
 * entered, and where a call comes back that may do so several times. It ends at returns and jumps
 * to other procedures, at edges that go around, and at calls that never come back. Procedures with
 * few potential paths have an array of counters, those with many a hash table. Where no variable is
 * to be had, paths end wherever ways meet.
 */
#ifndef CULPRIT_PATHS_PATHS_H
#define CULPRIT_PATHS_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "edit/edit.h"
#include "edit/measure.h"

struct err;
struct guide;
struct paths;

struct paths_options {
	const char *counts; /* the file to count into: an absolute path, shorter than RT_PATH */
	bool atomic;        /* exact also where threads or processes count at once; slower */
	bool per_thread;    /* each thread into a block of its own; -EOPNOTSUPP without glibc */
	struct measures measures;  /* on paths, without their callees */
	const struct guide *guide; /* what earlier runs counted; NULL: nobody knows */
	bool full; /* count all paths whole, in tables where there are many; slower */
};

/* Inserts everything. It must live until edit_write is done; the map outlives it. */
int paths_create(struct edit *edit, const struct paths_options *o, struct paths **out,
	struct buf *map, struct err *e);
void paths_destroy(struct paths *p);

uint64_t paths_bytes(const struct paths *p); /* of what is counted into */

#endif
