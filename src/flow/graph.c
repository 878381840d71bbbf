#include "flow/graph.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Rows by one end of the edges, `end` pointing to that of edge 0, in ascending order. */
static void rows_init(const struct graph *g, const uint32_t *end, uint32_t **first, uint32_t **row)
{
	const size_t stride = sizeof *g->edge / sizeof *end;
	uint32_t *f = xcalloc((size_t)g->nodes + 2, sizeof *f);
	uint32_t *r = graph_numbers(g->edges, 0);

	/* Counted two places on, f[n + 1] is where row n begins, and where it ends once filled. */
	for (uint32_t e = 0; e < g->edges; e++)
		f[(size_t)end[e * stride] + 2]++;
	for (uint32_t n = 0; n < g->nodes; n++)
		f[n + 1] += f[n];
	for (uint32_t e = 0; e < g->edges; e++)
		r[f[(size_t)end[e * stride] + 1]++] = e;
	*first = f;
	*row = r;
}

void graph_init(struct graph *g, uint32_t nodes, const struct graph_edge *list, uint32_t n)
{
	assert(nodes < GRAPH_NONE - 1 && n < GRAPH_NONE);
	*g = (struct graph){.nodes = nodes, .edges = n};
	g->edge = xmalloc(((size_t)n + 1) * sizeof *g->edge);
	for (uint32_t e = 0; e < n; e++) {
		assert(list[e].from < nodes && list[e].to < nodes);
		g->edge[e] = list[e];
	}
	rows_init(g, &g->edge->from, &g->out_first, &g->out);
	rows_init(g, &g->edge->to, &g->in_first, &g->in);
}

void graph_reverse(const struct graph *g, struct graph *out)
{
	size_t first = ((size_t)g->nodes + 2) * sizeof *g->out_first;
	size_t row = ((size_t)g->edges + 1) * sizeof *g->out;

	*out = (struct graph){
		.nodes = g->nodes,
		.edges = g->edges,
		.edge = xmalloc(((size_t)g->edges + 1) * sizeof *out->edge),
		.out_first = xmemdup(g->in_first, first),
		.out = xmemdup(g->in, row),
		.in_first = xmemdup(g->out_first, first),
		.in = xmemdup(g->out, row),
	};
	for (uint32_t e = 0; e < g->edges; e++)
		out->edge[e] = (struct graph_edge){g->edge[e].to, g->edge[e].from};
}

void graph_deinit(struct graph *g)
{
	free(g->edge);
	free(g->out_first);
	free(g->out);
	free(g->in_first);
	free(g->in);
	*g = (struct graph){0};
}

void graph_walk_init(struct graph_walk *w, const struct graph *g, uint32_t root)
{
	_cleanup_free_ uint32_t *stack = graph_numbers(g->nodes, 0);
	_cleanup_free_ uint32_t *next = graph_numbers(g->nodes, 0); /* place in out, by node */
	uint32_t depth = 1, posts = 0;

	assert(root < g->nodes);
	*w = (struct graph_walk){
		.root = root,
		.pre = graph_numbers(g->nodes, GRAPH_NONE),
		.post = graph_numbers(g->nodes, GRAPH_NONE),
		.preorder = graph_numbers(g->nodes, 0),
		.postorder = graph_numbers(g->nodes, 0),
		.parent = graph_numbers(g->nodes, GRAPH_NONE),
	};
	memcpy(next, g->out_first, (size_t)g->nodes * sizeof *next);
	stack[0] = root;
	w->preorder[w->reached] = root;
	w->pre[root] = w->reached++;
	while (depth) {
		uint32_t node = stack[depth - 1];

		if (next[node] == g->out_first[node + 1]) {
			w->postorder[posts] = node;
			w->post[node] = posts++;
			depth--;
			continue;
		}
		uint32_t edge = g->out[next[node]++], to = g->edge[edge].to;

		if (w->pre[to] != GRAPH_NONE)
			continue;
		w->parent[to] = edge;
		w->preorder[w->reached] = to;
		w->pre[to] = w->reached++;
		stack[depth++] = to;
	}
}

void graph_walk_deinit(struct graph_walk *w)
{
	free(w->pre);
	free(w->post);
	free(w->preorder);
	free(w->postorder);
	free(w->parent);
	*w = (struct graph_walk){0};
}

uint32_t *graph_numbers(uint32_t n, uint32_t value)
{
	uint32_t *p = xmalloc(((size_t)n + 1) * sizeof *p);

	for (uint32_t i = 0; i < n; i++)
		p[i] = value;
	return p;
}
