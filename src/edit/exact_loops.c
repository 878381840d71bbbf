#include "edit/exact_loops.h"

#include "base/mem.h"
#include "edit/snippet.h"

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
	const struct exact_alone *alone;
	const struct exact_function *model;
	const exact_places *places;
	double *often;  /* by edge of the flow */
	uint8_t *held;  /* by link */
	uint8_t *taken; /* by block: variables, a bit each */
	uint32_t *first,
		*next; /* counted links by the loop that they run in; GRAPH_NONE: no more */
	exact_holds *out;
};

/* A loop that is looked at. */
struct candidate {
	const struct exact_loop *loop;
	bool *blocks;    /* by block: it is in the loop */
	double in, left; /* how often it is entered and left */
	uint8_t taken;   /* variables that cannot be used in it */
};

/* ---- loops ---- */

/* How often it is entered and left, and which variables are used around it. */
static void look_around(const struct holding *h, struct candidate *c)
{
	const struct graph_edge *ends = h->flow->graph.edge;

	c->in = c->left = 0;
	c->taken = 0;
	for (uint32_t k = 0; k < c->loop->n; k++)
		c->taken |= h->taken[c->loop->blocks[k]];
	exact_each_way(w, h->alone, c->loop)
	{
		uint32_t other = w.in ? ends[w.edge].from : ends[w.edge].to;
		*(w.in ? &c->in : &c->left) += h->often[w.edge];
		if (other < h->flow->nblocks)
			c->taken |= h->taken[other];
	}
}

/* ---- counters ---- */

/* The innermost loop that a link is counted in, if it is counted where that goes on. */
static uint32_t loop_of(const struct holding *h, const struct exact_place *p)
{
	const uint32_t *of = h->alone->loops->of;
	const struct graph_edge *edge = &h->flow->graph.edge[p->where];

	if (p->how == EXACT_BEFORE)
		return of[flow_block_at(h->flow, h->flow->insns[p->where].address)];
	return p->how == EXACT_ON_EDGE && of[edge->from] == of[edge->to] ? of[edge->to]
									 : GRAPH_NONE;
}

static void sort_links(struct holding *h)
{
	h->first = graph_numbers(h->alone->loops->n, GRAPH_NONE);
	h->next = graph_numbers((uint32_t)h->model->links.n, GRAPH_NONE);
	for (uint32_t i = (uint32_t)h->model->links.n; i-- > 0;) {
		uint32_t loop =
			h->model->links.p[i].counted ? loop_of(h, &h->places->p[i]) : GRAPH_NONE;
		if (loop == GRAPH_NONE)
			continue;
		h->next[i] = h->first[loop];
		h->first[loop] = i;
	}
}

/* The counter that gains most, GRAPH_NONE if none gains. */
static uint32_t best_in(const struct holding *h, const struct candidate *c)
{
	double most = 0, cost = BEGIN * c->in + END * c->left;
	uint32_t best = GRAPH_NONE;

	for (uint32_t i = h->first[c->loop->number]; i != GRAPH_NONE; i = h->next[i]) {
		double gain = (IN_MEMORY - IN_REGISTER) * h->places->p[i].weight - cost;
		if (h->held[i] != EXACT_IN_MEMORY || gain <= most)
			continue;
		most = gain;
		best = i;
	}
	return best;
}

static void hold(struct holding *h, const struct candidate *c, uint32_t link, unsigned variable)
{
	h->held[link] = (uint8_t)variable;
	exact_each_way(w, h->alone, c->loop) * vec_add(h->out) =
		(struct exact_hold){w.edge, link, (uint8_t)variable, w.in, h->places->p[link].step};
	for (uint32_t k = 0; k < c->loop->n; k++)
		h->taken[c->loop->blocks[k]] |= (uint8_t)(1u << variable);
}

/* What a register of the program's counts. */
static void hold_turns(struct holding *h, struct candidate *c)
{
	for (uint32_t i = h->first[c->loop->number]; i != GRAPH_NONE; i = h->next[i]) {
		const struct exact_place *p = &h->places->p[i];
		unsigned v = (unsigned)__builtin_ctz(~c->taken);

		if (!p->step || v >= SNIPPET_VARIABLES)
			continue;
		edit_variable_is(h->e, h->f, v, c->blocks, p->reg);
		hold(h, c, i, v);
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

static void hold_all(struct holding *h)
{
	struct candidate c = {.blocks = xcalloc(h->flow->nblocks + 1, sizeof *c.blocks)};

	vec_each (l, &h->alone->list) {
		c.loop = l;
		for (uint32_t k = 0; k < l->n; k++)
			c.blocks[l->blocks[k]] = true;
		look_around(h, &c);
		hold_turns(h, &c);
		hold_in(h, &c);
		for (uint32_t k = 0; k < l->n; k++)
			c.blocks[l->blocks[k]] = false;
	}
	free(c.blocks);
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
	const exact_places *places, const struct exact_alone *alone, const double *taken,
	exact_holds *out)
{
	struct holding h = {.e = e,
		.f = f,
		.flow = f->flow,
		.alone = alone,
		.model = m,
		.places = places,
		.out = out};

	out->n = 0;
	h.held = xmalloc(m->links.n + 1);
	memset(h.held, EXACT_IN_MEMORY, m->links.n + 1);
	if (!alone->list.n)
		return h.held;
	h.often = edges_taken(&h, taken);
	h.taken = xcalloc(f->flow->nblocks + 1, sizeof *h.taken);
	sort_links(&h);
	hold_all(&h);
	free(h.often);
	free(h.taken);
	free(h.first);
	free(h.next);
	return h.held;
}
