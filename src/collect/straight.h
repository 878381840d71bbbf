/*
 * Code that ran straight on from where one branch led to where the next was taken, as processors
 * remember them (branch stacks): the conditional branches on the way were not taken. Who only knew
 * those that were would take every branch for one that always is.
 *
 * Stretches are counted as they come, and looked at once when their edges are wanted.
 */
#ifndef CULPRIT_COLLECT_STRAIGHT_H
#define CULPRIT_COLLECT_STRAIGHT_H

#include "base/hmap.h"

#include <stdbool.h>
#include <stdint.h>

struct bursts;
struct image_cache;
struct process_table;

struct straights {
	struct hmap list; /* struct straight */
};

void straights_init(struct straights *s);
void straights_deinit(struct straights *s);

/* Offsets of an image: the first instruction, and the branch at the end. */
void straights_add(struct straights *s, uint32_t image, uint32_t who, uint64_t from, uint64_t to);
bool straights_full(const struct straights *s);

/* Adds the edges of branches that were not taken, and forgets. */
void straights_settle(struct straights *s, struct image_cache *images,
	const struct process_table *processes, struct bursts *out);

#endif
