#include "paths/fast.h"

#include "base/mem.h"
#include "flow/loops.h"

#include <stdlib.h>
#include <string.h>

#define WORTH 2.0 /* steps inside, for a way in or out */

struct looking {
	struct choosing *chosen;
	const struct flow *flow;
	struct loops loops;
	bool *inside; /* by block: the loop that is looked at */
};

static bool is_inside(const struct looking *l, uint32_t node)
{
	return node < l->flow->nblocks && l->inside[node];
}

/* ---- shape ---- */

/* Nobody is called or enters from elsewhere, and some block needs the variable. */
static bool has_plain_blocks(const struct looking *l, const bool *blocks)
{
	uint32_t n = 0;
	bool needs = false;

	for (uint32_t i = 0; i < l->flow->nblocks; i++) {
		const struct flow_block *b = &l->flow->blocks[i];

		if (!l->inside[i])
			continue;
		if (b->end == FLOW_CALLS || b->end == FLOW_STOPS || b->marks & FLOW_ENTERED ||
			l->chosen->fast.p[i])
			return false;
		needs |= blocks[i];
		n++;
	}
	return needs && n > 1; /* loops of one block count their turns (turns.h) */
}

/* Code can be on all edges in and out, and no other such loop is next to it. */
static bool has_plain_edges(const struct looking *l)
{
	const struct flow *flow = l->flow;

	for (uint32_t i = 0; i < flow->graph.edges; i++) {
		struct graph_edge e = flow->graph.edge[i];
		bool from = is_inside(l, e.from), to = is_inside(l, e.to);

		if (!from && !to)
			continue;
		if (flow->edge_kind[i] == FLOW_EDGE_TABLE && flow->njumps > 1)
			return false;
		if (from == to)
			continue;
		if (e.from >= flow->nblocks || e.to >= flow->nblocks ||
			flow->edge_kind[i] == FLOW_EDGE_TABLE ||
			!edit_edge_carries(l->chosen->function, i) ||
			l->chosen->fast.p[from ? e.to : e.from])
			return false;
	}
	return true;
}

/* ---- cost ---- */

static uint32_t block_of(const struct looking *l, uint32_t node)
{
	const struct exact_function *f = &l->chosen->model.graph;

	if (node < f->blocks.n || node == exact_outside(f))
		return node;
	graph_each_in (e, &l->chosen->graph, node)
		if (f->links.p[*e].from < f->blocks.n)
			return f->links.p[*e].from;
	return node;
}

static bool pays(const struct looking *l)
{
	const struct choosing *c = l->chosen;
	double steps = 0, ways = 0;

	for (uint32_t i = 0; i < c->numbering.given; i++) {
		const struct exact_link *k = &c->model.graph.links.p[i];
		bool from = is_inside(l, block_of(l, k->from)),
		     to = is_inside(l, block_of(l, k->to));
		double often = c->weights.p[i] / c->places.p[i].price;
		enum plan_op op = c->plan.step[i].op;

		if (from != to)
			ways += often;
		if (!from || !to)
			continue;
		steps += op == PLAN_SET || op == PLAN_ADD || op == PLAN_COUNT ? often : 0;
		if (c->numbering.cut[i])
			steps += c->plan.step[c->numbering.begins[i]].op == PLAN_SET ? often : 0;
	}
	return steps > WORTH * ways;
}

/* ---- registers ---- */

static int take_register(struct looking *l)
{
	struct edit *e = l->chosen->scene.edit;
	struct edit_function *f = l->chosen->function;
	const char *why;

	if (edit_variable_in_register(e, f, FAST_VARIABLE, l->inside))
		return FAST_FREE;
	if (edit_variable(e, f, FAST_SAVED, l->inside, &why) &&
		edit_variable_borrowed(e, f, FAST_VARIABLE, l->inside))
		return FAST_BORROWED;
	return FAST_NOT;
}

/* Also where a block's ways part. */
static void mark(struct looking *l, int how)
{
	const struct exact_function *f = &l->chosen->model.graph;

	for (uint32_t i = 0; i < l->flow->nblocks; i++)
		if (l->inside[i])
			l->chosen->fast.p[i] = (uint8_t)how;
	vec_each (k, &f->links)
		if (is_inside(l, k->from) && k->to >= f->blocks.n && k->to != exact_outside(f))
			l->chosen->fast.p[k->to] = (uint8_t)how;
}

/* Outer loops come before those inside them. */
void fast_find(struct choosing *c, const bool *blocks)
{
	struct looking l = {.chosen = c, .flow = c->function->flow};
	int how;

	l.inside = xcalloc(l.flow->nblocks + 1, sizeof *l.inside);
	loops_init(&l.loops, &l.flow->graph, l.flow->entry_node);
	for (uint32_t i = 0; i < l.loops.n; i++) {
		for (uint32_t k = 0; k < l.flow->nblocks; k++)
			l.inside[k] = loops_contain(&l.loops, i, k);
		if (!has_plain_blocks(&l, blocks) || !has_plain_edges(&l) || !pays(&l))
			continue;
		how = take_register(&l);
		if (how != FAST_NOT)
			mark(&l, how);
	}
	loops_deinit(&l.loops);
	free(l.inside);
}
