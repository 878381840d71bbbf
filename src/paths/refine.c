#include "paths/refine.h"

#include "base/mem.h"

#include <stdlib.h>

#define TURNS 4    /* a loop that turns less often for an entry stays joined to what precedes it */
#define COLD  0.02 /* of what leaves a block */

/* ---- weights ---- */

static uint64_t last_of(const struct exact_block *b)
{
	return b->start + b->size - b->last;
}

/* Of a link inside. A node that ways out share has one block before it, or several jumps. */
static double inside(const struct guide *g, const struct exact_function *f,
	const struct exact_link *l, const uint32_t *before)
{
	const struct exact_block *blocks = f->blocks.p;
	uint32_t from = l->from;

	if (l->to >= f->blocks.n)
		return guide_block(g, blocks[from].start);
	if (from >= f->blocks.n)
		from = before[from - f->blocks.n];
	if (from == GRAPH_NONE)
		return guide_block(g, blocks[l->to].start);
	return guide_edge(g, blocks[from].start, last_of(&blocks[from]), blocks[l->to].start);
}

/* By table: the only block before it, GRAPH_NONE. */
static uint32_t *blocks_before(const struct exact_function *f)
{
	uint32_t *before = graph_numbers(f->tables + 1, GRAPH_NONE);
	uint32_t *n = graph_numbers(f->tables + 1, 0);

	vec_each (l, &f->links)
		if (l->from < f->blocks.n && l->to >= f->blocks.n && l->to < exact_outside(f)) {
			uint32_t table = l->to - (uint32_t)f->blocks.n;

			before[table] = n[table]++ ? GRAPH_NONE : l->from;
		}
	free(n);
	return before;
}

/* What links from and to the outside carry: what the blocks have more than the other links. */
static void weigh_outside(const struct guide *g, const struct exact_function *f, double *weights)
{
	uint32_t outside = exact_outside(f);
	double *in = xcalloc(outside + 1, sizeof *in), *out = xcalloc(outside + 1, sizeof *out);

	for (size_t i = 0; i < f->links.n; i++) {
		const struct exact_link *l = &f->links.p[i];

		if (l->from != outside && l->to != outside) {
			out[l->from] += weights[i];
			in[l->to] += weights[i];
		}
	}
	for (size_t i = 0; i < f->links.n; i++) {
		const struct exact_link *l = &f->links.p[i];
		uint32_t block = l->from == outside ? l->to : l->from;
		double has, other = l->from == outside ? in[block] : out[block];

		if ((l->from != outside && l->to != outside) || block >= f->blocks.n)
			continue;
		has = guide_block(g, f->blocks.p[block].start);
		weights[i] = has > other ? has - other : 0;
	}
	free(in);
	free(out);
}

bool refine_weights(const struct guide *g, const struct exact_function *f, double *weights)
{
	uint32_t *before = blocks_before(f);
	bool ran = false;

	for (size_t i = 0; i < f->links.n; i++) {
		const struct exact_link *l = &f->links.p[i];
		bool touches = l->from == exact_outside(f) || l->to == exact_outside(f);

		weights[i] = touches ? 0 : inside(g, f, l, before);
	}
	weigh_outside(g, f, weights);
	for (size_t i = 0; i < f->links.n; i++)
		ran |= weights[i] > 0;
	free(before);
	return ran;
}

/* ---- cuts ---- */

/* Into loops that turn often. All ways in are cut, or none: then every path there begins anew. */
static void cut_entries(const struct graph *g, uint32_t outside, const double *weights,
	const bool *around, bool *cut)
{
	for (uint32_t i = 0; i < g->nodes; i++) {
		double turns = 0, entries = 0;

		graph_each_in (e, g, i) {
			if (around[*e])
				turns += weights[*e];
			else
				entries += weights[*e];
		}
		if (i == outside || turns <= 0 || turns < TURNS * entries)
			continue;
		graph_each_in (e, g, i)
			cut[*e] = true;
	}
}

static void cut_cold(const struct graph *g, uint32_t outside, const double *weights, bool *cut)
{
	for (uint32_t i = 0; i < g->nodes; i++) {
		double out = 0;

		graph_each_out (e, g, i)
			out += weights[*e];
		graph_each_out (e, g, i)
			cut[*e] |= i != outside && graph_out_degree(g, i) > 1 &&
				   g->edge[*e].to != outside && weights[*e] <= COLD * out;
	}
}

bool *refine_cut(const struct graph *g, uint32_t outside, const double *weights, const bool *around,
	enum refine_cuts what)
{
	bool *cut = xcalloc(g->edges + 1, sizeof *cut);

	if (what >= REFINE_ENTRIES)
		cut_entries(g, outside, weights, around, cut);
	if (what >= REFINE_COLD)
		cut_cold(g, outside, weights, cut);
	return cut;
}
