#include "edit/exact_loops.h"

#include "base/mem.h"
#include "edit/guess.h"
#include "edit/snippet.h"
#include "flow/loops.h"

#include <stdlib.h>
#include <string.h>

/* What counting costs, in instructions: in memory and in a register, beginning and ending. */
#define IN_MEMORY   3.0
#define IN_REGISTER 1.0
#define BEGIN       1.0
#define END         4.0

struct holding {
	struct edit *e;
	struct edit_function *f;
	const struct flow *flow;
	const struct exact_function *model;
	const exact_places *places;
	struct loops loops;
	double *often;  /* by edge of the flow */
	uint8_t *held;  /* by link */
	uint8_t *taken; /* by block: variables, a bit each */
	exact_holds *out;
};

/* A loop that is looked at. */
struct candidate {
	uint32_t loop;
	bool *blocks;
	double in, left; /* how often it is entered and left */
	uint8_t taken;   /* variables that cannot be used in it */
};

/* ---- loops ---- */

static bool is_inside(const struct candidate *c, const struct holding *h, uint32_t node)
{
	return node < h->flow->nblocks && c->blocks[node];
}

static bool calls_in(const struct holding *h, uint32_t block)
{
	const struct flow_block *b = &h->flow->blocks[block];
	const struct flow_insn *last = &h->flow->insns[b->first + b->count - 1];

	return b->end != FLOW_STOPS &&
	       (last->kind == INSN_CALL || last->kind == INSN_CALL_INDIRECT);
}

/* Whether code on all ways in and out of it runs then and only then. */
static bool take_edges(const struct holding *h, struct candidate *c)
{
	const struct graph *g = &h->flow->graph;

	for (uint32_t i = 0; i < g->edges; i++) {
		bool from = is_inside(c, h, g->edge[i].from), to = is_inside(c, h, g->edge[i].to);
		bool shared = h->flow->edge_kind[i] == FLOW_EDGE_TABLE && h->flow->njumps > 1;
		uint32_t other = from ? g->edge[i].to : g->edge[i].from;
		if (from == to)
			continue;
		if (shared || !edit_edge_carries(h->f, i))
			return false;
		*(from ? &c->left : &c->in) += h->often[i];
		if (other < h->flow->nblocks)
			c->taken |= h->taken[other];
	}
	return true;
}

static bool has_inner(const struct loops *l, uint32_t loop)
{
	for (uint32_t i = loop + 1; i < l->n; i++)
		if (l->loop[i].parent == loop)
			return true;
	return false;
}

/* Outer loops are left so seldom that a signal could lose much. */
static bool look_at(const struct holding *h, struct candidate *c)
{
	if (has_inner(&h->loops, c->loop))
		return false;
	c->in = c->left = 0;
	c->taken = 0;
	for (uint32_t k = 0; k < h->flow->nblocks; k++) {
		c->blocks[k] = loops_contain(&h->loops, c->loop, k);
		if (!c->blocks[k])
			continue;
		if (calls_in(h, k))
			return false;
		c->taken |= h->taken[k];
	}
	return take_edges(h, c);
}

/* ---- counters ---- */

static bool runs_inside(const struct holding *h, const struct candidate *c, size_t link)
{
	const struct exact_place *p = &h->places->p[link];
	const struct graph_edge *ends = h->flow->graph.edge;

	if (p->how == EXACT_BEFORE)
		return is_inside(c, h, flow_block_at(h->flow, h->flow->insns[p->where].address));
	return p->how == EXACT_ON_EDGE && is_inside(c, h, ends[p->where].from) &&
	       is_inside(c, h, ends[p->where].to);
}

/* The counter that gains most, GRAPH_NONE if none gains. */
static uint32_t best_in(const struct holding *h, const struct candidate *c)
{
	double most = 0, cost = BEGIN * c->in + END * c->left;
	uint32_t best = GRAPH_NONE;

	for (size_t i = 0; i < h->model->links.n; i++) {
		double gain = (IN_MEMORY - IN_REGISTER) * h->places->p[i].weight - cost;
		if (!h->model->links.p[i].counted || h->held[i] != EXACT_IN_MEMORY ||
			gain <= most || !runs_inside(h, c, i))
			continue;
		most = gain;
		best = (uint32_t)i;
	}
	return best;
}

static void hold(struct holding *h, const struct candidate *c, uint32_t link, unsigned variable)
{
	const struct graph *g = &h->flow->graph;

	h->held[link] = (uint8_t)variable;
	for (uint32_t i = 0; i < g->edges; i++) {
		bool from = is_inside(c, h, g->edge[i].from), to = is_inside(c, h, g->edge[i].to);
		if (from != to)
			*vec_add(h->out) = (struct exact_hold){i, link, (uint8_t)variable, to};
	}
	for (uint32_t k = 0; k < h->flow->nblocks; k++)
		if (c->blocks[k])
			h->taken[k] |= (uint8_t)(1u << variable);
}

static void hold_in(struct holding *h, struct candidate *c)
{
	for (unsigned v = 0; v < SNIPPET_VARIABLES; v++) {
		uint32_t link = c->taken >> v & 1 ? GRAPH_NONE : best_in(h, c);
		if (link == GRAPH_NONE)
			continue;
		if (!edit_variable_in_register(h->e, h->f, v, c->blocks))
			return;
		hold(h, c, link, v);
	}
}

/* By edge of the flow. */
static double *edges_taken(const struct holding *h, const double *taken)
{
	const struct flow *flow = h->flow;
	double *often = xcalloc(flow->graph.edges + 1, sizeof *often);

	for (size_t i = 0; i < h->places->n; i++) {
		const struct exact_place *p = &h->places->p[i];

		if (p->how == EXACT_ON_EDGE)
			often[p->where] = taken[i];
		if (p->how != EXACT_AT_ENTRY)
			continue;
		graph_each_out (edge, &flow->graph, flow->entry_node)
			if (flow->edge_kind[*edge] == FLOW_EDGE_ENTRY)
				often[*edge] = taken[i];
	}
	return often;
}

uint8_t *exact_hold_loops(struct edit *e, struct edit_function *f, const struct exact_function *m,
	const exact_places *places, const double *taken, exact_holds *out)
{
	struct holding h = {
		.e = e, .f = f, .flow = f->flow, .model = m, .places = places, .out = out};
	struct candidate c = {0};

	out->n = 0;
	h.held = xmalloc(m->links.n + 1);
	memset(h.held, EXACT_IN_MEMORY, m->links.n + 1);
	loops_init(&h.loops, &f->flow->graph, f->flow->entry_node);
	if (h.loops.n) {
		h.often = taken ? edges_taken(&h, taken) : guess_edges(e, f);
		h.taken = xcalloc(f->flow->nblocks + 1, sizeof *h.taken);
		c.blocks = xcalloc(f->flow->nblocks + 1, sizeof *c.blocks);
	}
	for (c.loop = 0; c.loop < h.loops.n; c.loop++)
		if (look_at(&h, &c))
			hold_in(&h, &c);
	loops_deinit(&h.loops);
	free(h.often);
	free(h.taken);
	free(c.blocks);
	return h.held;
}
