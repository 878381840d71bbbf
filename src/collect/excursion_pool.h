/*
 * The excursions since the last flush, placed: a uniform sample of them (store/excursions.h), each
 * as what it showed of one image.
 */
#ifndef CULPRIT_COLLECT_EXCURSION_POOL_H
#define CULPRIT_COLLECT_EXCURSION_POOL_H

#include "base/vec.h"
#include "collect/reservoir.h"
#include "store/excursions.h"

#include <stddef.h>
#include <stdint.h>

#define EXCURSION_POOL      (EXCURSIONS_MOST / EXCURSION_STRETCHES)
#define EXCURSION_TRANSFERS (1u << 20) /* of all in the pool: 40 MB */

struct pooled_transfer {
	uint32_t stretch;
	uint32_t image, target; /* numbers; the target's + 1, 0: the same image */
	uint64_t from, to, count;
};

struct pooled_excursion {
	uint32_t who;
	uint64_t number, weight, instructions[EXCURSION_STRETCHES];
	size_t ntransfers;
	struct pooled_transfer *transfers; /* by image, stretch, from, target, to */
};

struct excursion_pool {
	VEC(struct pooled_excursion) list; /* by number once settled */
	struct reservoir reservoir;
	size_t most;      /* in the list: EXCURSION_POOL, fewer where they have many transfers */
	size_t transfers; /* in the list */
};

void excursion_pool_init(struct excursion_pool *p, uint64_t seed);
void excursion_pool_deinit(struct excursion_pool *p);
void excursion_pool_clear(struct excursion_pool *p);

/* Takes over the transfers, which need be in no order. */
void excursion_pool_add(struct excursion_pool *p, const struct pooled_excursion *x);

/* Sorts the list by number; the weights then add up to those of all that were seen, about. */
void excursion_pool_settle(struct excursion_pool *p);

/* What a stretch of one showed of an image; how many transfers that are. */
size_t pooled_excursion_of(const struct pooled_excursion *x, uint32_t image, uint32_t stretch,
	const struct pooled_transfer **first);

size_t excursion_pool_memory(const struct excursion_pool *p);

#endif
