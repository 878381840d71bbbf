#include "paths/turns.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define TURNS 1.5 /* for an entry, at least */

struct looking {
	const struct choosing *chosen;
	const struct flow *flow;
	bool *blocks; /* one of them is true */
	bool *taken;  /* by block: a loop that is counted so, or beside one */
};

/* ---- shape ---- */

static bool is_plain(const struct looking *l, uint32_t link)
{
	return l->chosen->places.p[link].how == EXACT_ON_EDGE;
}

/* Its links, if it is such a loop: what comes in and goes out can be told from going around. */
static bool take_links(const struct looking *l, struct turn_loop *t)
{
	const struct exact_function *f = &l->chosen->model.graph;
	uint32_t node = GRAPH_NONE, ways = 0;

	t->inside = t->around = t->leaving = GRAPH_NONE;
	for (uint32_t i = 0; i < f->links.n; i++)
		if (f->links.p[i].from == t->block) {
			node = f->links.p[i].to;
			t->inside = i;
			ways++;
		}
	if (ways != 1 || node < f->blocks.n || node == exact_outside(f))
		return false;
	for (uint32_t i = 0; i < f->links.n; i++) {
		if (f->links.p[i].to == node && i != t->inside)
			return false; /* a table that jumps share */
		if (f->links.p[i].from != node)
			continue;
		ways++;
		*(f->links.p[i].to == t->block ? &t->around : &t->leaving) = i;
	}
	return ways == 3 && t->around != GRAPH_NONE && t->leaving != GRAPH_NONE &&
	       is_plain(l, t->leaving) && l->chosen->places.p[t->inside].how == EXACT_BEFORE;
}

/* Code is on the way back alone: it says which path a turn is. */
static bool has_plain_steps(const struct looking *l, const struct turn_loop *t)
{
	const struct choosing *c = l->chosen;
	const struct plan_step *step = c->plan.step;

	if (!c->numbering.cut[t->around] || c->numbering.cut[t->inside] ||
		step[t->inside].op != PLAN_NOTHING)
		return false;
	if (step[t->around].op == PLAN_COUNTED)
		return true;
	return step[t->around].op == PLAN_COUNT &&
	       step[c->numbering.begins[t->around]].op == PLAN_SET;
}

/* Every way in comes from a block, by an edge of its own. */
static bool has_plain_entries(const struct looking *l, const struct turn_loop *t)
{
	const struct exact_function *f = &l->chosen->model.graph;
	double entries = 0;

	for (uint32_t i = 0; i < f->links.n; i++) {
		if (f->links.p[i].to != t->block || i == t->around)
			continue;
		if (f->links.p[i].from == exact_outside(f) || !is_plain(l, i))
			return false;
		entries += l->chosen->weights.p[i] / l->chosen->places.p[i].price;
	}
	return l->chosen->weights.p[t->around] / l->chosen->places.p[t->around].price >=
	       TURNS * entries;
}

static bool has_plain_edges(const struct looking *l, uint32_t block)
{
	const struct flow *flow = l->flow;

	if (flow->blocks[block].end != FLOW_BRANCHES || flow->blocks[block].marks & FLOW_ENTERED)
		return false;
	graph_each_in (e, &flow->graph, block)
		if (flow->graph.edge[*e].from >= flow->nblocks ||
			flow->edge_kind[*e] == FLOW_EDGE_TABLE)
			return false;
	return true;
}

static bool turns_itself(const struct flow *flow, uint32_t block)
{
	graph_each_out (e, &flow->graph, block)
		if (flow->graph.edge[*e].to == block)
			return true;
	return false;
}

/* ---- registers ---- */

/* Variables of one number must not meet. */
static void take_around(struct looking *l, uint32_t block)
{
	const struct graph *g = &l->flow->graph;

	l->taken[block] = true;
	graph_each_out (e, g, block)
		if (g->edge[*e].to < l->flow->nblocks)
			l->taken[g->edge[*e].to] = true;
	graph_each_in (e, g, block)
		if (g->edge[*e].from < l->flow->nblocks)
			l->taken[g->edge[*e].from] = true;
}

/* Where the saved register lies is asked for first: without a register it does no harm. */
static bool take_register(struct looking *l, struct turn_loop *t)
{
	struct edit *e = l->chosen->scene.edit;
	struct edit_function *f = l->chosen->function;
	const char *why;
	bool had;

	l->blocks[t->block] = true;
	t->borrowed = false;
	had = edit_variable_in_register(e, f, TURNS_COUNTER, l->blocks);
	if (!had) {
		t->borrowed = true;
		had = edit_variable(e, f, TURNS_SAVED, l->blocks, &why) &&
		      edit_variable_borrowed(e, f, TURNS_COUNTER, l->blocks);
	}
	l->blocks[t->block] = false;
	return had;
}

void turns_find(const struct choosing *c, turn_loops *out)
{
	struct looking l = {.chosen = c, .flow = c->function->flow};

	out->n = 0;
	l.blocks = xcalloc(l.flow->nblocks + 1, sizeof *l.blocks);
	l.taken = xcalloc(l.flow->nblocks + 1, sizeof *l.taken);
	for (uint32_t i = 0; i < l.flow->nblocks; i++) {
		struct turn_loop t = {.block = i};

		if (l.taken[i] || !turns_itself(l.flow, i) || !has_plain_edges(&l, i) ||
			!take_links(&l, &t) || !has_plain_steps(&l, &t) ||
			!has_plain_entries(&l, &t) || !take_register(&l, &t))
			continue;
		take_around(&l, i);
		*vec_add(out) = t;
	}
	free(l.blocks);
	free(l.taken);
}
