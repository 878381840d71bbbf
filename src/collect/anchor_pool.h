/*
 * The pairs of samples since the last flush: a uniform sample of those that were placed, in fixed
 * memory, by image and process name or process.
 */
#ifndef CULPRIT_COLLECT_ANCHOR_POOL_H
#define CULPRIT_COLLECT_ANCHOR_POOL_H

#include "base/vec.h"
#include "collect/reservoir.h"
#include "store/anchors.h"

#include <stddef.h>
#include <stdint.h>

struct pooled_anchor {
	uint32_t image, who;
	struct anchor anchor;
};

struct anchor_pool {
	VEC(struct pooled_anchor) list; /* ANCHORS_MOST at most */
	struct reservoir reservoir;
	uint64_t written; /* by the flush under way: since anchor_pool_settle */
};

void anchor_pool_init(struct anchor_pool *p, uint64_t seed);
void anchor_pool_deinit(struct anchor_pool *p);
void anchor_pool_clear(struct anchor_pool *p);

/* The weight does not count: settling sets it. */
void anchor_pool_add(
	struct anchor_pool *p, uint32_t image, uint32_t who, const struct anchor *anchor);

/* Sorts the list by image, who and anchor; the weights then add up to all that were seen. */
void anchor_pool_settle(struct anchor_pool *p);

/* Once settled: where the anchors of an image and who begin, and how many they are. */
size_t anchor_pool_find(const struct anchor_pool *p, uint32_t image, uint32_t who,
	const struct pooled_anchor **first);

size_t anchor_pool_memory(const struct anchor_pool *p);

#endif
