/*
 * Numbers for the acyclic paths of a graph (Ball and Larus, MICRO 1996).
 *
 * One node stands for everything outside: paths begin on its edges out and end on its edges in.
 * Edges that go around (retreating ones in a walk from the outside, whether the loop is reducible
 * or not) are cut, and so is what the caller wants: a path ends there, and the next one begins at
 * the edge's target. What is left is an acyclic graph, `dag`: its first edges are those of the
 * graph, cut ones lead to the outside; behind them comes one edge from the outside for each target
 * of a cut. A path is a way in it from the outside to the outside; the values of its edges add up
 * to its number, and all numbers from 0 to total - 1 are some path's.
 */
#ifndef CULPRIT_PATHS_NUMBER_H
#define CULPRIT_PATHS_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "flow/graph.h"

#define NUMBER_MOST ((uint64_t)1 << 62) /* paths: more are never numbered */

struct numbering {
	struct graph dag;
	uint32_t outside, given; /* given: edges of the graph */
	bool *cut;               /* by edge of the graph */
	uint32_t *begins; /* by edge of the graph that is cut: that by which the next path begins */
	uint32_t ncut, shortened; /* how many; those that were cut to have fewer paths */
	uint64_t *value;          /* by edge of the dag */
	uint64_t *paths; /* by node: from it to the outside; 0: nothing leads from it there */
	uint64_t total;
	uint32_t *order,
		reached; /* nodes that something leads to, each behind all that it leads to */
};

/* Edges of the dag. */
typedef VEC(uint32_t) number_path;

struct number_wish {
	const bool *cut;      /* by edge; NULL: only what must be. Edges to the outside never are */
	const double *weight; /* by edge: lighter ones are cut first; negative: not to have fewer
				 paths. NULL: all weigh the same */
	uint64_t limit;       /* of paths; 0: NUMBER_MOST */
	const double *often;  /* by edge; paths by edges that are taken often get the last numbers
				 of their node, so that their counters are close together. NULL:
				 as edges come */
};

/*
 * Edges are cut until there are no more paths than the limit; total is above it only if that does
 * not help any more (a block with more ways out than that).
 */
void numbering_init(struct numbering *n, const struct graph *g, uint32_t outside,
	const struct number_wish *wish);
/* From cuts and values, by edge of the dag, that were chosen before. -EBADMSG when they do not
 * number all paths. */
int numbering_recall(struct numbering *n, const struct graph *g, uint32_t outside, const bool *cut,
	const uint64_t *values, size_t nvalues);
void numbering_deinit(struct numbering *n);

/* The path of a number below total. */
void numbering_decode(const struct numbering *n, uint64_t number, number_path *out);

/*
 * What to add on the edges of the dag so that the sums stay the same, and as much as possible is
 * 0: on the edges of a heaviest spanning tree (section 3.2 there). Edges that touch the outside
 * may have anything: code is there in any case. Sums in between may wrap around.
 */
uint64_t *numbering_increments(const struct numbering *n, const double *weight);

#endif
