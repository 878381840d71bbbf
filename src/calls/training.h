/*
 * Path maps from calling contexts that were counted: what `record --context` saw of a program tells
 * the paths to all of its procedures, and the unwind rows of its call sites tell their heights. So
 * a map knows contexts that nobody has sampled yet (the paper's section 4.2, whose instrumentation
 * keeps heights itself).
 *
 * Trees that were counted have only images that were edited: the map must have seen a stack with a
 * root of the tree in it, so that it knows who called that. Recursion is known to its first depth;
 * the map guesses the others.
 */
#ifndef CULPRIT_CALLS_TRAINING_H
#define CULPRIT_CALLS_TRAINING_H

#include "base/vec.h"
#include "calls/map.h"
#include "calls/sites.h"

#include <stddef.h>
#include <stdint.h>

struct call_trainer;

/* Takes over the tree, and asks the sites, which must outlive it. */
struct call_trainer *call_trainer_create(struct call_tree *counted, struct call_sites *sites);
void call_trainer_destroy(struct call_trainer *t); /* takes NULL */

/* The map has learned this stack, innermost frame first, whose last frame is the root. Teaches what
 * was called below those roots of the tree that were not met before. */
void call_trainer_meet(struct call_trainer *t, struct call_map *m, enum stack_kind kind,
	const struct call_frame *frames, size_t n);

/* The same for all stacks that a map knows whole: teaches another map, or itself. */
void call_trainer_recall(struct call_trainer *t, const struct call_map *known, struct call_map *to);

/* Paths with the sites of their calls, of which maps know nothing: those that were taught, by the
 * number of their height in the map. */
struct call_site_path {
	uint32_t number, pad;
	uint64_t hash; /* of the path, sites and all */
	uint64_t count;
};
struct call_site_paths {
	VEC(struct call_site_path) list;
};
void call_trainer_sites(const struct call_trainer *t, struct call_site_paths *out);
/* Those at a height of the map; returns how many. */
size_t call_site_paths_at(
	const struct call_site_paths *s, uint32_t number, const struct call_site_path **out);

struct call_training {
	uint64_t taught; /* contexts */
	uint64_t left;   /* whose height cannot be told; */
	uint64_t unmet;  /* below roots that were not met */
};
void call_trainer_sum(const struct call_trainer *t, struct call_training *sum); /* adds */

#endif
