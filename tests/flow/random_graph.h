/* Random graphs for the tests of src/flow, the same for the same seed. */
#ifndef CULPRIT_TESTS_FLOW_RANDOM_GRAPH_H
#define CULPRIT_TESTS_FLOW_RANDOM_GRAPH_H

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "flow/graph.h"

/* splitmix64 */
static inline uint64_t random_next(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static inline uint32_t random_below(uint64_t *seed, uint32_t n)
{
	return random_next(seed) % n;
}

/* Uniform in (0, 1]. */
static inline double random_unit(uint64_t *seed)
{
	return ((random_next(seed) >> 11) + 1) * 0x1p-53;
}

/* Any edges at all: parallel ones, self loops, parts that nothing leads to or from. */
static inline void random_graph(struct graph *g, uint64_t *seed, uint32_t nodes, uint32_t edges)
{
	struct graph_edge *list = xmalloc(((size_t)edges + 1) * sizeof *list);

	for (uint32_t e = 0; e < edges; e++)
		list[e] = (struct graph_edge){random_below(seed, nodes), random_below(seed, nodes)};
	graph_init(g, nodes, list, edges);
	free(list);
}

/*
 * Like the code of a procedure: from 0 to the last node, each block goes on to the next one or
 * near by, one in five branches back; all is reached and reaches the end.
 */
static inline void random_procedure(struct graph *g, uint64_t *seed, uint32_t nodes)
{
	struct graph_edge *list = xmalloc((size_t)nodes * 2 * sizeof *list);
	uint32_t n = 0;

	for (uint32_t b = 0; b + 1 < nodes; b++) {
		uint32_t r = random_below(seed, 10), reach = 1 + random_below(seed, 20);

		list[n++] = (struct graph_edge){b, b + 1};
		if (r < 2)
			list[n++] = (struct graph_edge){b, b > reach ? b - reach : 0};
		else if (r < 6)
			list[n++] =
				(struct graph_edge){b, b + reach < nodes ? b + reach : nodes - 1};
	}
	graph_init(g, nodes, list, n);
	free(list);
}

/* Whether a path of any length, none included, leads from a to b without edge or node `but`. */
static inline int naive_reaches(
	const struct graph *g, uint32_t a, uint32_t b, uint32_t but_edge, uint32_t but_node)
{
	uint8_t *seen = xcalloc(g->nodes, 1);
	uint32_t *stack = xmalloc(g->nodes * sizeof *stack), depth = 0;

	if (a != but_node) {
		stack[depth++] = a;
		seen[a] = 1;
	}
	while (depth) {
		uint32_t node = stack[--depth];

		for (uint32_t e = 0; e < g->edges; e++) {
			uint32_t to = g->edge[e].to;

			if (g->edge[e].from != node || e == but_edge || to == but_node || seen[to])
				continue;
			seen[to] = 1;
			stack[depth++] = to;
		}
	}
	int reached = seen[b];

	free(seen);
	free(stack);
	return reached;
}

#endif
