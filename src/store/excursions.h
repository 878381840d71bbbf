/*
 * Excursions: long stretches of what threads did, tens of thousands of instructions each, as which
 * way branches went how often (collect/scout.h). They begin where time is spent, as bursts do
 * (walks.h), but soon leave behind where they began.
 *
 * A profile holds what excursions showed of one image; offsets are file offsets as in PC profiles,
 * targets as in edges.h. One that went through several images is in the profiles of all of them,
 * by its number, so that they can be put together again. Each says for how much time it stands.
 * They say more about samples that are in a PC profile already, so nobody adds the two up. Reading
 * trusts nothing.
 */
#ifndef CULPRIT_STORE_EXCURSIONS_H
#define CULPRIT_STORE_EXCURSIONS_H

#include "base/cursor.h"
#include "base/vec.h"
#include "store/edges.h"

#include <stddef.h>
#include <stdint.h>

struct buf;

#define EXCURSION_STRETCHES 4     /* one after the other; each is told by itself */
#define EXCURSIONS_MOST     16384 /* stretches of a profile, */
#define EXCURSIONS_MERGED   4096  /* of one that was put together */

/* A stretch. */
struct excursion_part {
	uint64_t number;       /* EXCURSION_STRETCHES * the excursion's + which stretch it is */
	uint64_t weight;       /* ns of the program's time that the excursion stands for, never 0 */
	uint64_t instructions; /* of all of it, in any image */
	size_t nedges;
	const struct edge *edges; /* ascending, as in edges.h; counts are never 0 */
};

/* Registered by the store; its weight is the number of stretches. */
extern const struct blob_type blob_excursion;

/* The order in a profile: by number. For qsort. */
int excursion_compare(const void *a, const void *b);

/* Appends a profile. No more than EXCURSIONS_MOST, in order, none twice. */
void excursions_pack(const struct excursion_part *list, size_t n, struct buf *out);

struct excursion_reader {
	struct cursor at;
	struct key_table keys;
	uint64_t left;
	unsigned level;             /* what is there is one in 2^level; weights tell that already */
	struct excursion_part last; /* weight 0: there was none */
	VEC(struct edge) edges;     /* of it */
};
int excursion_reader_init(struct excursion_reader *r, const void *p, size_t n); /* -EBADMSG */
/* 1 and the next part, 0 at the end, -EBADMSG. The edges are the reader's until the next call. */
int excursion_reader_next(struct excursion_reader *r, struct excursion_part *out);
void excursion_reader_deinit(struct excursion_reader *r);

#endif
