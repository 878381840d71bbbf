/*
 * The tool that counts: edits a file so that it counts how often every block and edge runs, with
 * counters on the edges that are enough to know all others (chords.h). What the edited file counted
 * is put into words by books.h, with the map that is made here.
 *
 * This is also the example of a tool: it asks for memory, puts a snippet on edges, and has the run
 * time started.
 */
#ifndef CULPRIT_EDIT_EXACT_H
#define CULPRIT_EDIT_EXACT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "edit/edit.h"
#include "edit/tool.h"

struct counts;
struct err;
struct exact;
struct guide;

struct exact_options {
	const char *counts; /* the file to count into: an absolute path, shorter than RT_PATH */
	bool atomic;        /* exact also where threads or processes count at once; slower */
	bool per_thread;    /* each thread into a block of its own; -EOPNOTSUPP without glibc */
	const struct guide *guide; /* by what counters are placed; NULL: by guesses */
};

/* Inserts everything. It must live until edit_write is done; the map outlives it. */
int exact_create(struct edit *edit, const struct exact_options *o, struct exact **out,
	struct buf *map, struct err *e);
void exact_destroy(struct exact *x);

/* For whoever keeps copies; o->counts is not used. */
void exact_tool(const struct exact_options *o, struct edit_tool *out);

/* Whether all processes that counted ended by themselves, with exit or _exit; not in static
 * programs, which nobody asks. */
bool exact_all_ended(const struct counts *c);

uint64_t exact_bytes(const struct exact *x); /* of all counters, in the file that is counted into */

#endif
