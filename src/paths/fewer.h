/* Cutting edges so that a graph has fewer paths, at the least cost; for number.c. */
#ifndef CULPRIT_PATHS_FEWER_H
#define CULPRIT_PATHS_FEWER_H

#include <stdbool.h>
#include <stdint.h>

#include "flow/graph.h"

struct fewer {
	const struct graph *graph;
	uint32_t outside;
	const uint32_t *order; /* nodes that count, each behind all that it leads to */
	uint32_t nodes;
	const double *weight; /* by edge; negative: not to be cut; NULL: all the same */
	bool *cut;            /* by edge; gets more */
};

/*
 * One edge after the other, each time the one that takes most paths away for its weight: those
 * where many ways in meet many ways out. Gives up after some time; whoever wants to be sure goes
 * on by other means.
 */
void fewer_paths(const struct fewer *f, uint64_t limit);

#endif
