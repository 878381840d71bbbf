/*
 * Paths that were counted in pieces, put together as far as it is certain that they ran so. Of t
 * that come to a head, a by one piece, and go on from it, b by another, at least a + b - t do both
 * (definite flow: Ball, Mataga and Sagiv, POPL 1998). Those become one path; of the others it is
 * not known how they went on, so they stay pieces. All sums stay what they were.
 */
#ifndef CULPRIT_PATHS_JOIN_H
#define CULPRIT_PATHS_JOIN_H

#include "paths/number.h"

struct join_piece {
	uint64_t count;
	uint32_t from, to; /* heads, or the outside */
	size_t first, n;   /* its edges of the dag, in the list */
};

struct joining {
	VEC(struct join_piece) pieces;
	number_path edges;
};
void joining_deinit(struct joining *j);

/* A path that was counted so often. */
void join_add(
	struct joining *j, const struct numbering *n, const number_path *path, uint64_t count);

/* At heads that no edge goes around to; by edge of the graph, whether one does. */
void join_all(
	struct joining *j, const struct numbering *n, const struct graph *g, const bool *around);

#endif
