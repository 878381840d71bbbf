/*
 * Exact counts: how often the blocks and edges of procedures ran, as an edited program counted.
 *
 * A profile is a list of rows, by procedure: a row for the procedure itself, one for each of its
 * blocks, one for each of its edges, also those that never ran. Addresses are virtual addresses of
 * the file. Procedures that did not run are not there. Two profiles of an image add up. Reading
 * trusts nothing.
 */
#ifndef CULPRIT_STORE_EXACT_H
#define CULPRIT_STORE_EXACT_H

#include "base/cursor.h"
#include "store/store.h"

#include <stddef.h>
#include <stdint.h>

struct buf;

enum exact_kind {
	EXACT_PROCEDURE, /* a and b are 0; count is by how much it may be off, 0: exact */
	EXACT_BLOCK,     /* a is its start, b its size */
	EXACT_EDGE,      /* from the instruction a to b */
};

struct exact_row {
	uint64_t procedure; /* its start */
	enum exact_kind kind;
	uint64_t a, b, count;
};

/* Registered by the store; its weight is the sum of the blocks' counts. */
extern const struct blob_type blob_exact;

/* The order in a profile: as the fields, count aside. For qsort. */
int exact_row_compare(const void *a, const void *b);

/* Appends a profile. Rows must ascend, each once, and begin with the procedure's own. */
void exact_pack(const struct exact_row *rows, size_t n, struct buf *out);

struct exact_reader {
	struct cursor at;
	uint64_t left;
	bool begun;
	struct exact_row last;
};
int exact_reader_init(struct exact_reader *r, const void *p, size_t n); /* -EBADMSG */
/* 1 and the next row, 0 at the end, -EBADMSG. */
int exact_reader_next(struct exact_reader *r, struct exact_row *out);

#endif
