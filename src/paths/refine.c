#include "paths/refine.h"

#include "base/mem.h"

#include <stdlib.h>

#define TURNS 4    /* a loop that turns less often for an entry stays joined to what precedes it */
#define COLD  0.02 /* of what leaves a block */

/* Into loops that turn often. All ways in are cut, or none: then every path there begins anew. */
static void cut_entries(const struct graph *g, uint32_t outside, const double *weights,
	const bool *around, bool *cut)
{
	for (uint32_t i = 0; i < g->nodes; i++) {
		double turns = 0, entries = 0;

		graph_each_in (e, g, i) {
			if (around[*e])
				turns += weights[*e];
			else
				entries += weights[*e];
		}
		if (i == outside || turns <= 0 || turns < TURNS * entries)
			continue;
		graph_each_in (e, g, i)
			cut[*e] = true;
	}
}

static void cut_cold(const struct graph *g, uint32_t outside, const double *weights, bool *cut)
{
	for (uint32_t i = 0; i < g->nodes; i++) {
		double out = 0;

		graph_each_out (e, g, i)
			out += weights[*e];
		graph_each_out (e, g, i)
			cut[*e] |= i != outside && graph_out_degree(g, i) > 1 &&
				   g->edge[*e].to != outside && weights[*e] <= COLD * out;
	}
}

bool *refine_cut(const struct graph *g, uint32_t outside, const double *weights, const bool *around,
	enum refine_cuts what)
{
	bool *cut = xcalloc(g->edges + 1, sizeof *cut);

	if (what >= REFINE_ENTRIES)
		cut_entries(g, outside, weights, around, cut);
	if (what == REFINE_COLD || what == REFINE_COLD_SEAMS)
		cut_cold(g, outside, weights, cut);
	return cut;
}
