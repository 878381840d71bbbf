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

/*
 * Cuts more edges, where ways in cross ways out. `n` is the numbering of the graph with what is cut
 * so far; often: by edge, how often it was taken; cuttable: by edge, negative where no path may
 * end.
 */
void seams_cut(const struct numbering *n, const struct graph *g, const double *often,
	const double *cuttable, bool *cut);

#endif
