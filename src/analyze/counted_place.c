#include "analyze/counted_internal.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* So much of what branches did may be different from what was counted, and it was the same job:
 * bursts begin where time is spent, and see few of them. */
#define OTHERWISE   0.2
#define FEWEST_SEEN 50
#define MISSING     (-1.0)

struct placing {
	const struct counted *c;
	struct evidence *ev;
	uint64_t procedure; /* its start */
	struct evidence_counts *to;
};

static uint64_t last_insn(const struct flow *f, uint32_t block)
{
	return f->insns[f->blocks[block].first + f->blocks[block].count - 1].address;
}

/* The counted block that covers an address, or NULL. */
static const struct counted_row *block_at(const struct placing *p, uint64_t address)
{
	const struct exact_row key = {p->procedure, EXACT_BLOCK, address, UINT64_MAX, 0};
	size_t i = counted_find(p->c, &key);
	const struct counted_row *row = i ? &p->c->rows.p[i - 1] : NULL;

	return row && row->key.procedure == p->procedure && row->key.kind == EXACT_BLOCK &&
			       address - row->key.a < row->key.b
		       ? row
		       : NULL;
}

/* Blocks of this flow may be parts of those that were counted, or several of these that all ran
 * equally often. */
static bool place_block(struct placing *p, uint32_t b)
{
	const struct flow_block *block = &p->ev->flow->blocks[b];
	const struct counted_row *first = block_at(p, block->start);
	const struct counted_row *last = block_at(p, last_insn(p->ev->flow, b));

	if (block->marks & FLOW_PADDING)
		return true;
	if (!first || !last || first->count != last->count)
		return false;
	p->to->block[b] = first->count;
	p->to->doubt[b] += first->doubt;
	return true;
}

static double edge_count(const struct placing *p, struct graph_edge edge)
{
	const struct flow *f = p->ev->flow;
	uint64_t from = last_insn(f, edge.from), to = f->blocks[edge.to].start;
	const struct exact_row key = {p->procedure, EXACT_EDGE, from, to, 0};
	size_t i = counted_find(p->c, &key);

	if (i < p->c->rows.n && !exact_row_compare(&p->c->rows.p[i].key, &key))
		return p->c->rows.p[i].count;
	return block_at(p, from) == block_at(p, to) && to > from ? p->to->block[edge.from]
								 : MISSING;
}

static void place_edges(struct placing *p)
{
	const struct flow *f = p->ev->flow;

	for (uint32_t e = 0; e < f->graph.edges; e++) {
		struct graph_edge edge = f->graph.edge[e];

		p->to->edge[e] = edge.from < f->nblocks && edge.to < f->nblocks
					 ? edge_count(p, edge)
					 : MISSING;
	}
}

/* What is left of a block when the edges that were counted are taken off goes over those that were
 * not: in and out of the procedure, and by tables that several jumps share. */
static void share_rest(struct placing *p, double rest, const uint32_t *edges, uint32_t n, bool out)
{
	const struct flow *f = p->ev->flow;
	double all = 0;
	uint32_t missing = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t other = out ? f->graph.edge[edges[i]].to : f->graph.edge[edges[i]].from;
		double count = p->to->edge[edges[i]];

		rest -= count == MISSING ? 0 : count;
		missing += count == MISSING;
		all += count == MISSING && other < f->nblocks ? p->to->block[other] : 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t other = out ? f->graph.edge[edges[i]].to : f->graph.edge[edges[i]].from;
		double share = all > 0 ? (other < f->nblocks ? p->to->block[other] / all : 0)
				       : 1.0 / missing;

		if (p->to->edge[edges[i]] == MISSING)
			p->to->edge[edges[i]] = fmax(rest, 0) * share;
	}
}

static void place_rest(struct placing *p)
{
	const struct graph *g = &p->ev->flow->graph;

	for (uint32_t b = 0; b < p->ev->flow->nblocks; b++)
		share_rest(p, p->to->block[b], g->out + g->out_first[b],
			g->out_first[b + 1] - g->out_first[b], true);
	for (uint32_t b = 0; b < p->ev->flow->nblocks; b++)
		share_rest(p, p->to->block[b], g->in + g->in_first[b],
			g->in_first[b + 1] - g->in_first[b], false);
}

static bool place_all(struct placing *p)
{
	const struct exact_row key = {p->procedure, EXACT_PROCEDURE, 0, 0, 0};
	const struct flow *f = p->ev->flow;
	size_t i = counted_find(p->c, &key);

	if (i == p->c->rows.n || exact_row_compare(&p->c->rows.p[i].key, &key))
		return false;
	for (uint32_t b = 0; b < f->nblocks; b++) {
		p->to->doubt[b] = p->c->rows.p[i].count;
		if (!place_block(p, b))
			return false;
	}
	place_edges(p);
	place_rest(p);
	return true;
}

/* Whether branches went as they were counted to go. */
static bool goes_the_same(const struct evidence *ev, const struct evidence_counts *c)
{
	const struct graph *g = &ev->flow->graph;
	double seen = 0, other = 0;

	for (uint32_t b = 0; b < ev->flow->nblocks; b++) {
		double all = 0;

		graph_each_out (e, g, b)
			all += (double)ev->edges[*e];
		if (graph_out_degree(g, b) < 2)
			continue;
		seen += all;
		graph_each_out (e, g, b) {
			double share = c->block[b] > 0 ? c->edge[*e] / c->block[b] : 0;

			other += fabs((double)ev->edges[*e] - share * all) / 2;
		}
	}
	return seen < FEWEST_SEEN || other < OTHERWISE * seen;
}

void counted_place(const struct counted *c, struct evidence *ev)
{
	const struct flow *f = ev->flow;
	struct placing p = {.c = c, .ev = ev};

	p.procedure = ev->image->procedures.p[ev->procedure].start;
	p.to = xcalloc(1, sizeof *p.to);
	*p.to = (struct evidence_counts){.tied = c->tied};
	p.to->block = xcalloc(f->nblocks + 1, sizeof *p.to->block);
	p.to->doubt = xcalloc(f->nblocks + 1, sizeof *p.to->doubt);
	p.to->edge = xcalloc(f->graph.edges + 1, sizeof *p.to->edge);
	ev->counts = p.to;
	if (place_all(&p) && (c->tied || goes_the_same(ev, p.to)))
		return;
	evidence_counts_destroy(p.to);
	ev->counts = NULL;
}
