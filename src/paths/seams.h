/*
 * Seams: nodes at which all paths end, and others begin, since what is before them says nearly
 * nothing of what follows: either side of them is nearly always the same. What practical path
 * profiling (Bond and McKinley, CGO 2005) leaves to the profile of edges, since that foretells it,
 * is counted here, in two parts; and as most of these are told by others (derive.h) that costs as
 * little as counting edges.
 */
#ifndef CULPRIT_PATHS_SEAMS_H
#define CULPRIT_PATHS_SEAMS_H

#include "paths/number.h"

/* By edge and node of the graph. */
struct seams_wish {
	const double *often; /* how often an edge was taken, or is likely to be */
	const bool *can;     /* a path may end on the edge */
	const bool *dear;    /* code on the edge has to be jumped to */
	const bool *safe;    /* who comes to the node goes on */
	bool certain;        /* only where nothing is lost by it */
};

/*
 * Cuts more edges: where ways in cross ways out, and where many lead to a single one, if counting
 * it there spares the dear ones among them. The latter loses nothing, for pieces are put together
 * again (join.h). `n` is the numbering of the graph with what is cut so far.
 */
void seams_cut(
	const struct numbering *n, const struct graph *g, const struct seams_wish *wish, bool *cut);

#endif
