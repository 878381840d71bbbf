/*
 * Paces: how often instructions ran, from words in memory that count (collect/progress.h): an
 * absolute scale, which samples do not have.
 *
 * A profile of paces belongs to an image; offsets are file offsets of the instructions, as in PC
 * profiles. Turns were counted in part of the time only: bursts tell in which part of what they saw
 * the instruction do. Merging adds up.
 * Reading trusts nothing.
 */
#ifndef CULPRIT_STORE_PACES_H
#define CULPRIT_STORE_PACES_H

#include "base/cursor.h"
#include "store/store.h"

#include <stddef.h>
#include <stdint.h>

struct buf;

struct pace {
	uint64_t offset;
	uint64_t turns;   /* that were counted */
	uint64_t counted; /* of those that bursts saw */
	uint64_t seen;    /* by bursts, in all; never 0 */
};

/* Registered by the store; its weight is the sum of what was seen. */
extern const struct blob_type blob_turns;
/* What older databases have: turns, and the ns and reads that they were counted in. */
extern const struct blob_type blob_pace;

/* Sorts a list by offset and adds up what has the same one; returns how many are left. */
size_t paces_settle(struct pace *list, size_t n);

/* Appends a profile. The list must be settled. */
void paces_pack(const struct pace *list, size_t n, struct buf *out);

struct pace_reader {
	struct cursor at;
	uint64_t left, next; /* the least offset that may come */
	bool full;           /* there can be none above */
};
int pace_reader_init(struct pace_reader *r, const void *p, size_t n); /* -EBADMSG */
/* 1 and the next pace, 0 at the end, -EBADMSG. */
int pace_reader_next(struct pace_reader *r, struct pace *out);

#endif
