/*
 * Directed graphs in compressed rows: what all of src/flow computes on.
 *
 * Nodes and edges are numbers from 0. Several edges between two nodes and edges from a node to
 * itself are allowed. A graph does not change once it is made. All algorithms on it are without
 * recursion: procedures of 100,000 blocks exist.
 */
#ifndef CULPRIT_FLOW_GRAPH_H
#define CULPRIT_FLOW_GRAPH_H

#include <stdint.h>

#define GRAPH_NONE UINT32_MAX /* no node, no edge, no number */

struct graph_edge {
	uint32_t from, to;
};

/* out[out_first[n] .. out_first[n + 1]) are the edges that leave n, ascending; in alike. */
struct graph {
	uint32_t nodes, edges;
	struct graph_edge *edge;
	uint32_t *out_first, *out;
	uint32_t *in_first, *in;
};

/* Copies the list. Both ends of every edge must be below nodes; nodes and n below GRAPH_NONE. */
void graph_init(struct graph *g, uint32_t nodes, const struct graph_edge *list, uint32_t n);
void graph_reverse(const struct graph *g, struct graph *out); /* the same edge numbers */
void graph_deinit(struct graph *g);

static inline uint32_t graph_out_degree(const struct graph *g, uint32_t node)
{
	return g->out_first[node + 1] - g->out_first[node];
}

static inline uint32_t graph_in_degree(const struct graph *g, uint32_t node)
{
	return g->in_first[node + 1] - g->in_first[node];
}

/* *it is each edge that leaves or enters a node. */
#define graph_each_out(it, g, node)                                            \
	for (const uint32_t *it = (g)->out + (g)->out_first[node],             \
			    *it##_end = (g)->out + (g)->out_first[(node) + 1]; \
		it < it##_end; it++)
#define graph_each_in(it, g, node)                                           \
	for (const uint32_t *it = (g)->in + (g)->in_first[node],             \
			    *it##_end = (g)->in + (g)->in_first[(node) + 1]; \
		it < it##_end; it++)

/* Depth first from a root. Out edges are followed in their order. */
struct graph_walk {
	uint32_t root, reached;         /* reached: how many nodes, the root included */
	uint32_t *pre, *post;           /* by node: its number, GRAPH_NONE when not reached */
	uint32_t *preorder, *postorder; /* the first `reached` are nodes by their number */
	uint32_t *parent;               /* by node: the tree edge to it, GRAPH_NONE for the root */
};

void graph_walk_init(struct graph_walk *w, const struct graph *g, uint32_t root);
void graph_walk_deinit(struct graph_walk *w);

uint32_t *graph_numbers(uint32_t n, uint32_t value); /* n times the value; never of no size */

#endif
