/*
 * The bursts since the last flush as they went: a uniform sample of those that could be placed, by
 * the image they start in and process name or process.
 *
 * Most bursts do not stay, and are told so before anything is kept of them.
 */
#ifndef CULPRIT_COLLECT_WALK_POOL_H
#define CULPRIT_COLLECT_WALK_POOL_H

#include "base/buf.h"
#include "base/vec.h"
#include "collect/reservoir.h"
#include "store/walks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WALK_POOL WALKS_MOST /* of a flush, over all images */

struct pooled_step {
	uint64_t from, to;
	uint32_t target; /* the image's number + 1; 0: the same image */
};

struct pooled_walk {
	uint32_t image, who;
	uint64_t start, weight; /* the weight is set by settling */
	uint32_t instructions, nsteps, size;
	uint8_t *steps; /* bytes: a tenth of what they are in memory */
};

struct walk_pool {
	VEC(struct pooled_walk) list; /* WALK_POOL at most */
	struct reservoir reservoir;
	size_t place; /* of the walk under way */
	struct pooled_walk next;
	struct buf steps; /* of it, */
	uint64_t last;    /* and where they led to */
	size_t bytes;     /* of steps in the list */
};

void walk_pool_init(struct walk_pool *p, uint64_t seed);
void walk_pool_deinit(struct walk_pool *p);
void walk_pool_clear(struct walk_pool *p);

/* A burst starts; true when it stays. Then its steps follow, and its end or that it is void. */
bool walk_pool_begin(struct walk_pool *p, uint32_t image, uint32_t who, uint64_t start);
bool walk_pool_step(struct walk_pool *p, uint64_t from, uint32_t target, uint64_t to); /* or full */
void walk_pool_end(struct walk_pool *p, uint32_t instructions); /* 0: it was cut here */
void walk_pool_void(struct walk_pool *p);

/* Sorts the list by image and who; the weights then add up to all that were seen. */
void walk_pool_settle(struct walk_pool *p);

/* Once settled: where the walks of an image and who begin, and how many they are. */
size_t walk_pool_find(
	const struct walk_pool *p, uint32_t image, uint32_t who, const struct pooled_walk **first);

/* The steps of a walk; there must be room for nsteps. */
void pooled_walk_steps(const struct pooled_walk *w, struct pooled_step *out);

size_t walk_pool_memory(const struct walk_pool *p);

#endif
