/*
 * Where fetching may have had to begin anew before an instruction: behind transfers that may be
 * mispredicted, in other lines and pages of code.
 */
#include "analyze/why_internal.h"

#include "base/mem.h"

#include <math.h>

#define LINE   64
#define PAGE   4096
#define SHADOW 24 /* instructions whose own latency shows after the pipeline was emptied */

/* ---- branches ---- */

/*
 * The share of the times that control goes this way in which the predictor may have expected
 * another. Whoever always expects the usual way is wrong as often as the others come; predictors do
 * better, so that is a bound.
 */
static double surprise(const struct why_work *w, uint32_t edge)
{
	const struct graph *g = &w->flow->graph;
	uint32_t from = g->edge[edge].from;
	double count = why_edge_count(w, edge), all = 0;

	if (from == w->flow->entry_node)
		return 0;
	switch (w->flow->blocks[from].end) {
	case FLOW_BRANCHES:
	case FLOW_TABLE:
	case FLOW_UNRESOLVED:
		break;
	default:
		return 0;
	}
	graph_each_out (e, g, from)
		all += why_edge_count(w, *e);
	if (!(count > 0))
		return 1;
	return fmin(1, (all - count) / count);
}

void why_find_missed(struct why_work *w)
{
	const struct graph *g = &w->flow->graph;

	for (uint32_t b = 0; b < w->flow->nblocks; b++) {
		double all = 0, missed = 0;

		graph_each_in (e, g, b) {
			all += why_edge_count(w, *e);
			missed += why_edge_count(w, *e) * surprise(w, *e);
		}
		w->missed[b] = all > 0 ? missed / all : 0;
	}
}

/* The branch before a block that most of its surprises come from. */
static uint32_t worst_branch(struct why_work *w, uint32_t block)
{
	const struct graph *g = &w->flow->graph;
	uint32_t worst = GRAPH_NONE;
	double most = 0;

	graph_each_in (e, g, block) {
		double missed = why_edge_count(w, *e) * surprise(w, *e);

		if (missed > most) {
			const struct flow_block *b = &w->flow->blocks[g->edge[*e].from];

			most = missed;
			worst = b->first + b->count - 1;
		}
	}
	return worst;
}

/* The same, of the starts of blocks a few instructions before on the usual way. */
static double shadow_at(struct why_work *w, uint32_t insn, uint32_t *branch)
{
	uint32_t way[SHADOW], worst = GRAPH_NONE;
	size_t n = why_way_to(w, insn, way, SHADOW);
	double most = 0, count = why_block_count(w, w->block_of[insn]);

	for (size_t i = n; i-- > 0;) {
		uint32_t b = w->block_of[way[i]];
		double missed = w->missed[b];

		if (way[i] != w->flow->blocks[b].first)
			continue;
		if (count > 0)
			missed *= fmin(1, why_block_count(w, b) / count);
		if (missed > most) {
			most = missed;
			worst = b;
		}
	}
	*branch = worst == GRAPH_NONE ? GRAPH_NONE : worst_branch(w, worst);
	return most;
}

/* ---- lines and pages ---- */

static bool apart(const struct flow_insn *a, const struct flow_insn *b, uint64_t unit)
{
	return (a->address + a->length - 1) / unit != (b->address + b->length - 1) / unit;
}

/* Whether control comes to the block by a transfer that is taken. */
static bool is_taken(const struct why_work *w, uint32_t edge)
{
	uint32_t from = w->flow->graph.edge[edge].from;

	return w->flow->edge_kind[edge] != FLOW_EDGE_FALL ||
	       w->flow->blocks[from].end == FLOW_CALLS;
}

static void look_at_edges(struct why_work *w, uint32_t block, struct why_front *out)
{
	const struct graph *g = &w->flow->graph;
	const struct flow_insn *first = &w->flow->insns[w->flow->blocks[block].first];
	double all = 0, line = 0, page = 0, taken = 0;

	graph_each_in (e, g, block) {
		uint32_t from = g->edge[*e].from;
		double count = why_edge_count(w, *e);
		bool outside =
			from == w->flow->entry_node || w->flow->blocks[from].end == FLOW_CALLS;

		all += count;
		taken += is_taken(w, *e) ? count : 0;
		if (!outside) {
			const struct flow_block *b = &w->flow->blocks[from];
			const struct flow_insn *last = &w->flow->insns[b->first + b->count - 1];

			line += apart(first, last, LINE) ? count : 0;
			page += apart(first, last, PAGE) ? count : 0;
		} else {
			line += count;
			page += count;
		}
	}
	if (!(all > 0))
		return;
	out->taken = taken / all;
	out->fresh_line = line / all;
	out->fresh_page = page / all;
}

/* How often its innermost loop is entered, for each execution. */
static double freshness(struct why_work *w, uint32_t block)
{
	const struct graph *g = &w->flow->graph;
	uint32_t loop = w->loops.of[block];
	double count = why_block_count(w, block), entered = 0;

	if (loop == GRAPH_NONE || !(count > 0) || why_loop_of(w, loop)->calls)
		return 1;
	graph_each_in (e, g, w->loops.loop[loop].header)
		if (!(w->loops.edge[*e] & LOOP_BACK))
			entered += why_edge_count(w, *e);
	return fmin(1, entered / count);
}

void why_front_at(struct why_work *w, uint32_t insn, struct why_front *out)
{
	uint32_t block = w->block_of[insn], first = w->flow->blocks[block].first;

	*out = (struct why_front){.branch = GRAPH_NONE};
	out->leads = insn == first;
	out->fresh = freshness(w, block);
	if (out->leads) {
		out->missed = w->missed[block];
		out->branch = worst_branch(w, block);
		look_at_edges(w, block, out);
		return;
	}
	out->shadow = shadow_at(w, insn, &out->branch);
	out->fresh_line = apart(&w->flow->insns[insn], &w->flow->insns[insn - 1], LINE);
	out->fresh_page = apart(&w->flow->insns[insn], &w->flow->insns[insn - 1], PAGE);
}
