/*
 * Samples to where the time was spent. An interrupt waits until the oldest instruction retires and
 * shows the one behind it (the skid, calibrated), so samples are moved back by that, as the flow
 * went: to the instruction before, and at the start of a block to the ends of those before it, by
 * how often each came.
 *
 * A compare and its branch that retire together are one: the compare gets the samples, for it is
 * what may wait for memory. What stands right behind a call is the return of the callee, whose
 * instruction is not here: the call gets it, and stalls there are the callee's. At the entry of the
 * procedure samples stay, for the call before is somebody else's.
 */
#include "analyze/why_internal.h"

#include "base/mem.h"

#include <stdlib.h>

/* How much likelier than a jump the end of a block is to hold up what comes behind it. */
static double weight_of(struct why_work *w, uint32_t block)
{
	uint32_t last = why_last(w, block);
	const struct why_fact *f = why_fact_of(w, last);
	int64_t stride;

	if (f->hazards & (HAZARD_DIVIDES | HAZARD_LOCKED | HAZARD_SERIALISING))
		return 20;
	for (unsigned i = 0; i < f->model.nplaces; i++)
		if (f->model.place[i].loads)
			return why_place_of(w, last, &f->model.place[i], &stride) <= WHY_PLACE_FIXED
				       ? 4
				       : 20;
	return w->flow->blocks[block].end == FLOW_BRANCHES ? 4 : 1;
}

static double weight(struct why_work *w, uint32_t edge)
{
	uint32_t from = w->flow->graph.edge[edge].from;

	return why_edge_count(w, edge) * (from == w->flow->entry_node ? 1 : weight_of(w, from));
}

static void move_back(struct why_work *w, uint32_t block, double samples)
{
	const struct graph *g = &w->flow->graph;
	uint32_t first = w->flow->blocks[block].first;
	double all = 0, ways = graph_in_degree(g, block);

	graph_each_in (e, g, block)
		all += weight(w, *e);
	if (!ways) {
		w->why->insns[first].samples += samples;
		return;
	}
	graph_each_in (e, g, block) {
		uint32_t from = g->edge[*e].from;
		double part = samples * (all > 0 ? weight(w, *e) / all : 1 / ways);

		if (from == w->flow->entry_node) {
			w->why->insns[first].samples += part;
			w->stayed[first] += part;
		} else if (part > 0) {
			w->why->insns[why_last(w, from)].samples += part;
		}
	}
}

/* By one instruction: what `samples` holds, into why_insn.samples. */
static void shift_once(struct why_work *w, const double *samples)
{
	const struct flow *f = w->flow;

	for (uint32_t i = 0; i < f->ninsns; i++)
		w->why->insns[i].samples = 0;
	for (uint32_t b = 0; b < f->nblocks; b++) {
		uint32_t first = f->blocks[b].first;

		if (f->blocks[b].count && samples[first] > 0)
			move_back(w, b, samples[first]);
		for (uint32_t i = first + 1; i < first + f->blocks[b].count; i++)
			w->why->insns[i - 1].samples += samples[i];
	}
}

void why_shift(struct why_work *w)
{
	uint32_t n = w->flow->ninsns;
	double *samples = xcalloc(n + 1, sizeof *samples);

	for (uint32_t i = 0; i < n; i++)
		w->why->insns[i].samples = (double)w->evidence->samples[i];
	for (unsigned k = 0; k < (unsigned)w->machine->skid; k++) {
		for (uint32_t i = 0; i < n; i++)
			samples[i] = w->why->insns[i].samples;
		shift_once(w, samples);
	}
	free(samples);
}
