/* Random graphs for the tests of paths. */
#ifndef TESTS_PATHS_GRAPHS_H
#define TESTS_PATHS_GRAPHS_H

#include "base/vec.h"
#include "flow/graph.h"

static uint64_t seed = 1;

static inline uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % below);
}

/*
 * Node n - 1 is outside. Backwards edges make loops, some of them entered in two places; some nodes
 * lead nowhere, some are reached by nobody.
 */
static inline void draw_graph(struct graph *g, uint32_t n, uint32_t extra, bool cyclic)
{
	VEC(struct graph_edge) list = {0};
	uint32_t out = n - 1;

	*vec_add(&list) = (struct graph_edge){out, 0};
	for (uint32_t i = 0; i < out; i++)
		if (i + 1 == out || !draw(5))
			*vec_add(&list) = (struct graph_edge){i, out};
		else if (draw(20))
			*vec_add(&list) = (struct graph_edge){i, i + 1 + draw(out - i - 1)};
	for (uint32_t i = 0; i < extra; i++) {
		uint32_t a = draw(out), b = draw(out);

		if (cyclic || a < b)
			*vec_add(&list) = (struct graph_edge){a, b};
	}
	for (uint32_t i = draw(3); i > 0; i--)
		*vec_add(&list) = (struct graph_edge){out, draw(out)};
	graph_init(g, n, list.p, (uint32_t)list.n);
	vec_deinit(&list);
}

static inline void draw_weights(const struct graph *g, double *weight)
{
	for (uint32_t i = 0; i < g->edges; i++)
		weight[i] = draw(1000);
}

#endif
