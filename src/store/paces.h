/*
 * Paces: how often instructions were seen to run in a known time, from words in memory that count
 * (collect/progress.h): an absolute scale, which samples do not have.
 *
 * A profile of paces belongs to an image; offsets are file offsets of the instructions, as in PC
 * profiles. The time is that which the thread spent in the instruction's own procedure while it was
 * watched, so turns over time make a rate that holds wherever the procedure's other samples are
 * from. Merging adds up.
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
	uint64_t turns; /* how often it ran */
	uint64_t ns;    /* in its procedure */
	uint64_t reads; /* that were in the procedure: what the time is told from; never 0 */
};

/* Registered by the store; its weight is the sum of reads. */
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
