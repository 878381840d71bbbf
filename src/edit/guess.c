#include "edit/guess.h"

#include "base/mem.h"
#include "flow/loops.h"

#include <stdlib.h>

#define TURNS  10.0  /* of a loop */
#define COLD   0.01  /* what is in line for so much is cold */
#define UNSEEN 0.001 /* landing pads and the like */
#define FALL   1.5   /* against the branch: likely code follows */

#define HIGHEST 1e12

struct guessing {
	const struct flow *flow;
	const struct procedure *procedure;
	struct graph_walk walk;
	struct loops loops;
	double *edge;
};

static bool is_cold(const struct guessing *g, uint32_t node)
{
	const struct range *hot = &g->procedure->ranges[0];
	const struct flow_block *b = &g->flow->blocks[node];

	if (node >= g->flow->nblocks)
		return false;
	return b->end == FLOW_STOPS || b->end == FLOW_BAD || b->start - hot->start >= hot->size;
}

/* Against the other edges of its block. */
static double likely(const struct guessing *g, uint32_t edge)
{
	const struct graph_edge *e = &g->flow->graph.edge[edge];
	enum flow_edge_kind kind = g->flow->edge_kind[edge];
	double weight = 1;

	if (kind == FLOW_EDGE_UNSEEN || kind == FLOW_EDGE_STOP)
		return UNSEEN;
	if (g->loops.edge[edge] & LOOP_LEAVE)
		weight /= TURNS;
	if (is_cold(g, e->to) && !is_cold(g, e->from))
		weight *= COLD;
	if (kind == FLOW_EDGE_FALL)
		weight *= FALL;
	return weight;
}

/* What comes into a node, apart from what goes around in its loop: that is guessed. */
static double inflow(const struct guessing *g, uint32_t node)
{
	double in = 0;
	bool heads = false;

	graph_each_in (e, &g->flow->graph, node) {
		uint32_t from = g->flow->graph.edge[*e].from;

		if (g->walk.post[from] == GRAPH_NONE)
			continue;
		if (g->walk.post[from] > g->walk.post[node])
			in += g->edge[*e];
		heads |= g->loops.edge[*e] & LOOP_BACK;
	}
	in *= heads ? TURNS : 1;
	return in < HIGHEST ? in : HIGHEST;
}

static void share_out(struct guessing *g, uint32_t node)
{
	double in = node == g->flow->entry_node ? 1 : inflow(g, node), sum = 0;

	graph_each_out (e, &g->flow->graph, node)
		sum += likely(g, *e);
	graph_each_out (e, &g->flow->graph, node)
		g->edge[*e] = in * likely(g, *e) / sum;
}

double *guess_edges(const struct flow *f, const struct procedure *p)
{
	struct guessing g = {.flow = f, .procedure = p};

	g.edge = xcalloc(f->graph.edges + 1, sizeof *g.edge);
	graph_walk_init(&g.walk, &f->graph, f->entry_node);
	loops_init(&g.loops, &f->graph, f->entry_node);
	for (uint32_t i = g.walk.reached; i-- > 0;)
		share_out(&g, g.walk.postorder[i]);
	loops_deinit(&g.loops);
	graph_walk_deinit(&g.walk);
	return g.edge;
}
