/*
 * Editing by what an earlier run counted (in the manner of targeted and practical path profiling:
 * Joshi, Bond and Zilles, CGO 2004; Bond and McKinley, CGO 2005). Nothing is lost: what they leave
 * out, paths that are hardly ever taken, ends here on the edge that is cold, and is counted.
 */
#ifndef CULPRIT_PATHS_REFINE_H
#define CULPRIT_PATHS_REFINE_H

#include <stdbool.h>

#include "flow/graph.h"

enum refine_cuts {
	REFINE_NONE,
	REFINE_ENTRIES,    /* into loops that turn often: their paths are then their own */
	REFINE_COLD,       /* and edges that are hardly taken */
	REFINE_SEAMS,      /* or into loops, and at seams (seams.h) */
	REFINE_COLD_SEAMS, /* or all of these */
	REFINE_CUTS,
};

/* By edge, to be freed. `around` are the edges that go around, by edge. */
bool *refine_cut(const struct graph *g, uint32_t outside, const double *weights, const bool *around,
	enum refine_cuts what);

#endif
