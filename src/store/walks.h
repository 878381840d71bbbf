/*
 * Walks: a sample of the interpreter's bursts as they went, one branch after the other. Edges sum
 * up which way branches went; a walk also tells where it began and what came after what, which is
 * what corrects the bias of bursts that begin where time is spent.
 *
 * A profile of walks belongs to the image that they start in; offsets are file offsets as in PC
 * profiles, targets as in edges.h. Steps are the transfers that the code alone does not tell
 * (conditional, indirect, return); the direct jumps and calls between them are in the code. A
 * repeated string instruction counts once for every 16 elements. Every walk says how many bursts
 * it stands for. They say more about samples that are in a PC profile already, so nobody adds the
 * two up. Reading trusts nothing.
 */
#ifndef CULPRIT_STORE_WALKS_H
#define CULPRIT_STORE_WALKS_H

#include "base/cursor.h"
#include "store/keys.h"
#include "store/store.h"

#include <stddef.h>
#include <stdint.h>

struct buf;

#define WALKS_MOST   32768 /* of a profile; */
#define WALKS_MERGED 256  /* of one that was put together, and not more */
#define WALKS_BURSTS 16   /* than one for so many bursts: in a year of hours they add up */
#define WALK_STEPS   256  /* of a walk */

struct walk_step {
	uint64_t from;   /* the branch instruction, in the image of the last `to` */
	uint64_t target; /* the image that `to` is in: 0 that of `from`, else its key */
	uint64_t to;
};

struct walk {
	uint64_t start;        /* the first instruction looked at */
	uint64_t weight;       /* bursts that this one stands for, never 0 */
	uint32_t instructions; /* looked at in all; 0: it was cut after its last step */
	uint32_t nsteps;       /* not 0 where instructions is */
	const struct walk_step *steps;
};

/* Registered by the store; its weight is the sum of the weights. */
extern const struct blob_type blob_walk;

/* The order of walks in a profile, by start first; 0 only when all but the weight is equal. */
int walk_compare(const void *a, const void *b);

/* Sorts a list and puts together walks that are equal; returns how many are left. */
size_t walks_settle(struct walk *list, size_t n);

/* Appends a profile. The list must be settled, and no longer than WALKS_MOST. */
void walks_pack(const struct walk *list, size_t n, struct buf *out);

struct walk_reader {
	struct cursor at;
	struct key_table keys;
	uint64_t left;
	struct walk last; /* weight 0: there was none */
	struct walk_step steps[2][WALK_STEPS];
	unsigned turn; /* which of them is the next walk's */
};
int walk_reader_init(struct walk_reader *r, const void *p, size_t n); /* -EBADMSG */
/* 1 and the next walk, 0 at the end, -EBADMSG. The steps are the reader's until the next call. */
int walk_reader_next(struct walk_reader *r, struct walk *out);

#endif
