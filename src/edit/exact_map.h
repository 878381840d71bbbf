/*
 * What the counters of an edited file mean: for each procedure its graph, which of the links
 * are counted, and which calls may not have come back. Whoever reads counts needs nothing else, not
 * even the file; so it stays true when a later version sees other blocks in the same code.
 *
 * Counters are numbered through all procedures, by address, and in each by the order of its links.
 * The map is kept as bytes (exact_map.c); reading trusts nothing.
 */
#ifndef CULPRIT_EDIT_EXACT_MAP_H
#define CULPRIT_EDIT_EXACT_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cursor.h"
#include "base/vec.h"
#include "image/image.h"

/* Whom a block calls at its end, or goes to for good if it leaves the procedure by a jump. */
enum exact_call {
	EXACT_CALLS_NOBODY,  /* who might not come back */
	EXACT_CALLS_COUNTED, /* a procedure of this map: callee */
	EXACT_CALLS_OUTSIDE, /* another file, by name */
	EXACT_CALLS_WILD, /* through a pointer; code that is not counted; what may not come back */
};

struct exact_block {
	uint64_t start, callee;
	uint32_t size;
	uint8_t last; /* bytes of its last instruction */
	uint8_t call; /* enum exact_call */
	bool padding; /* never runs */
};

enum exact_link_kind {
	EXACT_LINK_INSIDE,  /* between blocks, or a table that several jumps share */
	EXACT_LINK_ENTRY,   /* these come from outside: the procedure is called */
	EXACT_LINK_ENTERED, /* somebody goes into its middle: a landing pad */
	EXACT_LINK_BACK,    /* a call comes back that may do so several times, or never */
	EXACT_LINK_RETURN,  /* these go there */
	EXACT_LINK_TAIL,
	EXACT_LINK_STOP,  /* never to return: a trap, an exception, the end of the process */
	EXACT_LINK_LEAVE, /* nobody knows where to */
	EXACT_LINK_AWAY,  /* into such a call */
	EXACT_LINK_KINDS,
};

struct exact_link {
	uint32_t from, to; /* blocks, then tables, then the outside */
	uint8_t kind;
	bool counted;
	bool held;    /* in a register, until a loop is left */
	int32_t step; /* not 0: what the counter gains each time, for it is the program's register
		       */
};

struct exact_function {
	uint64_t start;
	uint64_t first; /* counter */
	VEC(struct exact_block) blocks;
	VEC(struct exact_link) links;
	uint32_t tables; /* nodes for ways out that blocks share, or that one has to itself */
};

static inline uint32_t exact_outside(const struct exact_function *f)
{
	return (uint32_t)f->blocks.n + f->tables;
}
uint64_t exact_counters(const struct exact_function *f); /* how many it has */
void exact_function_deinit(struct exact_function *f);

/* ---- writing ---- */

struct exact_map_writer {
	struct buf body;
	uint64_t counters, functions, last;
};
/* By ascending start; sets f->first. */
void exact_map_add(struct exact_map_writer *w, struct exact_function *f);
/* The whole map, of an edit of this image; the writer is done with. */
void exact_map_finish(
	struct exact_map_writer *w, const struct image_id *id, const char *path, struct buf *out);

/* ---- reading ---- */

struct exact_map_reader {
	struct cursor at;
	struct image_id id;
	const char *path; /* of the original, in the bytes that are read */
	uint64_t counters, left, last, next;
	bool begun;
	/* Of the next function, after exact_map_next: */
	uint64_t start, first, count;
	struct cursor body;
};
int exact_map_open(struct exact_map_reader *r, const void *p, size_t n); /* -EBADMSG */
/* 1: there is one more, and which counters it has; 0 at the end; -EBADMSG. */
int exact_map_next(struct exact_map_reader *r);
/* All of it. What is in `out` is replaced; its memory is used again. */
int exact_map_read(const struct exact_map_reader *r, struct exact_function *out);

#endif
