#include "paths/fewer.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS    3e6  /* looks at edges, of one procedure */
#define LIGHTEST 1e-3 /* what nothing weighs */

struct counting {
	const struct fewer *f;
	bool *head;     /* by node: a path begins there behind a cut */
	double *before; /* by node: ways to it, from where paths begin */
	double *behind; /* by node: ways from it, to where they end */
	double total;
};

static bool is_end(const struct counting *c, uint32_t edge)
{
	return c->f->cut[edge] || c->f->graph->edge[edge].to == c->f->outside;
}

static void find_heads(struct counting *c)
{
	const struct graph *g = c->f->graph;

	memset(c->head, 0, g->nodes);
	for (uint32_t i = 0; i < c->f->nodes; i++)
		graph_each_out (e, g, c->f->order[i])
			if (c->f->cut[*e])
				c->head[g->edge[*e].to] = true;
	graph_each_out (e, g, c->f->outside)
		if (c->f->cut[*e])
			c->head[g->edge[*e].to] = true;
}

static void count_behind(struct counting *c)
{
	const struct graph *g = c->f->graph;

	for (uint32_t i = 0; i < c->f->nodes; i++) {
		uint32_t node = c->f->order[i];
		double sum = 0;

		graph_each_out (e, g, node)
			sum += is_end(c, *e) ? 1 : c->behind[g->edge[*e].to];
		c->behind[node] = sum;
	}
}

static void count_before(struct counting *c)
{
	const struct graph *g = c->f->graph;

	memset(c->before, 0, g->nodes * sizeof *c->before);
	c->total = 0;
	graph_each_out (e, g, c->f->outside) {
		if (!is_end(c, *e))
			c->before[g->edge[*e].to]++;
		c->total += is_end(c, *e) ? 1 : c->behind[g->edge[*e].to];
	}
	for (uint32_t i = c->f->nodes; i-- > 0;) {
		uint32_t node = c->f->order[i];

		if (c->head[node]) {
			c->before[node]++;
			c->total += c->behind[node];
		}
		graph_each_out (e, g, node)
			if (!is_end(c, *e))
				c->before[g->edge[*e].to] += c->before[node];
	}
}

/* How much smaller the logarithm of their number becomes, for what the edge weighs. */
static double worth(const struct counting *c, uint32_t edge)
{
	const struct graph_edge *e = &c->f->graph->edge[edge];
	double weight = c->f->weight ? c->f->weight[edge] : 1, in, out, fewer;

	if (weight < 0 || is_end(c, edge))
		return 0;
	in = c->before[e->from];
	out = c->behind[e->to];
	fewer = in * out - in - (c->head[e->to] ? 0 : out);
	if (fewer <= 0)
		return 0;
	return -log1p(-fewer / c->total) / (weight + LIGHTEST);
}

static uint32_t best_edge(const struct counting *c)
{
	uint32_t best = GRAPH_NONE;
	double most = 0;

	for (uint32_t i = 0; i < c->f->nodes; i++)
		graph_each_out (e, c->f->graph, c->f->order[i]) {
			double w = worth(c, *e);

			if (w > most) {
				most = w;
				best = *e;
			}
		}
	return best;
}

void fewer_paths(const struct fewer *f, uint64_t limit)
{
	struct counting c = {.f = f};
	double steps = STEPS;

	c.head = xcalloc(f->graph->nodes + 1, sizeof *c.head);
	c.before = xcalloc(f->graph->nodes + 1, sizeof *c.before);
	c.behind = xcalloc(f->graph->nodes + 1, sizeof *c.behind);
	for (; steps > 0; steps -= f->graph->edges + 1) {
		uint32_t edge;

		find_heads(&c);
		count_behind(&c);
		count_before(&c);
		if (c.total <= (double)limit || (edge = best_edge(&c)) == GRAPH_NONE)
			break;
		f->cut[edge] = true;
	}
	free(c.head);
	free(c.before);
	free(c.behind);
}
