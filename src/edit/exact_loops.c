#include "edit/exact_loops.h"

#include "base/mem.h"
#include "edit/exact_turns.h"
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

/* How often it is entered and left, and which variables are used around it. */
static void look_around(const struct holding *h, struct candidate *c)
{
	const struct graph *g = &h->flow->graph;

	c->in = c->left = 0;
	c->taken = 0;
	for (uint32_t k = 0; k < h->flow->nblocks; k++)
		c->taken |= c->blocks[k] ? h->taken[k] : 0;
	for (uint32_t i = 0; i < g->edges; i++) {
		bool from = is_inside(c, h, g->edge[i].from), to = is_inside(c, h, g->edge[i].to);
		uint32_t other = from ? g->edge[i].to : g->edge[i].from;
		if (from == to)
			continue;
		*(from ? &c->left : &c->in) += h->often[i];
		if (other < h->flow->nblocks)
			c->taken |= h->taken[other];
	}
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
			*vec_add(h->out) = (struct exact_hold){
				i, link, (uint8_t)variable, to, h->places->p[link].step};
	}
	for (uint32_t k = 0; k < h->flow->nblocks; k++)
		if (c->blocks[k])
			h->taken[k] |= (uint8_t)(1u << variable);
}

/* What a register of the program's counts. */
static void hold_turns(struct holding *h, struct candidate *c)
{
	for (size_t i = 0; i < h->model->links.n; i++) {
		const struct exact_place *p = &h->places->p[i];
		unsigned v = (unsigned)__builtin_ctz(~c->taken);

		if (!h->model->links.p[i].counted || !p->step || v >= SNIPPET_VARIABLES ||
			!runs_inside(h, c, i))
			continue;
		edit_variable_is(h->e, h->f, v, c->blocks, p->reg);
		hold(h, c, (uint32_t)i, v);
		c->taken |= (uint8_t)(1u << v);
	}
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
		if (exact_turns_alone(f, &h.loops, c.loop, c.blocks)) {
			look_around(&h, &c);
			hold_turns(&h, &c);
			hold_in(&h, &c);
		}
	loops_deinit(&h.loops);
	free(h.often);
	free(h.taken);
	free(c.blocks);
	return h.held;
}
