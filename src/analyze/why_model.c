/*
 * The best case: the scoreboard runs the most frequent way to a block and the block behind it, so
 * that what overlaps with older instructions does, and loops are in steady state. What counts is
 * retirement, as in the samples: the cycles from one instruction's to the next one's.
 */
#include "analyze/why_internal.h"

#include "base/err.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define LEAD   256  /* instructions before a block */
#define PIECE  1024 /* of a block that are run at once */
#define CALLER 12   /* cycles that work from before the procedure is still under way at its entry */

/* A way as the scoreboard takes it. */
struct run {
	uint32_t number[1 + LEAD + PIECE]; /* in the flow; GRAPH_NONE: what was under way */
	struct model_insn insn[1 + LEAD + PIECE];
	struct scoreboard_insn out[1 + LEAD + PIECE];
	size_t n;
};

static void add_step(struct why_work *w, struct run *r, uint32_t insn)
{
	r->number[r->n] = insn;
	r->insn[r->n++] = why_fact_of(w, insn)->model;
}

static void make_run(struct why_work *w, uint32_t first, uint32_t count, struct run *r)
{
	uint32_t way[LEAD];
	size_t n = why_way_to(w, first, way, LEAD);

	r->n = 1;
	r->number[0] = GRAPH_NONE;
	memset(&r->insn[0], 0, sizeof r->insn[0]);
	r->insn[0].length = r->insn[0].uops = 1;
	r->insn[0].latency = CALLER;
	r->insn[0].moved = MODEL_NO_REGISTER;
	for (size_t i = 0; i < n; i++)
		add_step(w, r, way[i]);
	for (uint32_t i = 0; i < count; i++)
		add_step(w, r, first + i);
}

static enum why_cause cause_of(const struct scoreboard_insn *s)
{
	switch (s->wait) {
	case SCOREBOARD_OPERAND:
		return WHY_OPERAND;
	case SCOREBOARD_STORE:
		return WHY_STORED;
	case SCOREBOARD_UNIT:
		return WHY_UNIT;
	case SCOREBOARD_FRONT:
		return WHY_FRONT;
	case SCOREBOARD_WINDOW:
	case SCOREBOARD_REGISTERS:
	case SCOREBOARD_QUEUE:
	case SCOREBOARD_MEMORY:
		return WHY_WINDOW;
	case SCOREBOARD_ORDER:
		return WHY_ORDER;
	case SCOREBOARD_NOTHING:
		break;
	}
	return WHY_LATENCY;
}

/*
 * One taken transfer a cycle is fetched: where that is what binds a whole way, each of its taken
 * transfers waits for its share. The scoreboard knows nothing of fetching.
 */
static double wait_of_transfers(const struct run *r)
{
	double taken = 0, cycles = 0;

	for (size_t i = r->n / 2; i < r->n; i++) {
		cycles += r->out[i].stall;
		if (i + 1 < r->n && r->number[i + 1] != r->number[i] + 1)
			taken++;
	}
	return taken > cycles ? (taken - cycles) / taken : 0;
}

/* Means over the times that the way comes through the piece, the first ones apart: they fill the
 * pipeline. The reason is that of the longest wait. */
static void take_means(struct why_work *w, const struct run *r, uint32_t first, uint32_t count)
{
	uint32_t *times = xcalloc(count, sizeof *times), *longest = xcalloc(count, sizeof *longest);
	size_t begin = r->n - count < r->n / 2 ? r->n - count : r->n / 2;

	for (size_t i = begin; i < r->n; i++) {
		uint32_t at = r->number[i] - first;
		const struct scoreboard_insn *s = &r->out[i];
		struct why_insn *in;

		if (r->number[i] == GRAPH_NONE || r->number[i] < first || at >= count)
			continue;
		in = &w->why->insns[first + at];
		in->min_cpi += s->stall;
		times[at]++;
		if (s->stall < longest[at] || !s->stall)
			continue;
		longest[at] = s->stall;
		in->cause = cause_of(s);
		in->on = s->on >= 0 ? r->number[s->on] : GRAPH_NONE;
		in->group = s->group;
	}
	for (uint32_t i = 0; i < count; i++)
		if (times[i])
			w->why->insns[first + i].min_cpi /= times[i];
	free(longest);
	free(times);
}

/* Executions of a block that a taken transfer ends, as a share. */
static double share_taken(const struct why_work *w, uint32_t block)
{
	double all = 0, taken = 0;

	graph_each_out (e, &w->flow->graph, block) {
		all += why_edge_count(w, *e);
		if (w->flow->edge_kind[*e] != FLOW_EDGE_FALL)
			taken += why_edge_count(w, *e);
	}
	return all > 0 ? taken / all : 0;
}

static void add_wait(struct why_work *w, uint32_t block, double wait)
{
	struct why_insn *in = &w->why->insns[why_last(w, block)];

	wait *= share_taken(w, block);
	if (wait > in->min_cpi)
		in->cause = WHY_FRONT;
	in->min_cpi += wait;
}

/* What it takes of the width of the core. */
static double slots(struct why_work *w, uint32_t insn)
{
	unsigned uops = why_fact_of(w, insn)->model.uops;

	if (uops && why_fuses(w, insn))
		uops--;
	return (double)uops / model_limits(w->machine->model)->width;
}

/* The first of those that retire in one cycle stands for all of them; what it takes beyond their
 * work is its stall. */
static void find_static(struct why_work *w, uint32_t block)
{
	const struct flow_block *b = &w->flow->blocks[block];
	double work = 0;

	for (uint32_t i = b->first + b->count; i-- > b->first;) {
		struct why_insn *in = &w->why->insns[i];

		in->execution = slots(w, i);
		work += in->execution;
		if (in->min_cpi <= 0)
			continue;
		in->stopped = in->min_cpi > work ? in->min_cpi - work : 0;
		work = in->min_cpi < work ? work - in->min_cpi : 0;
	}
}

/* A block that hardly ever runs and was never seen needs no schedule. */
static bool matters(const struct why_work *w, uint32_t block)
{
	const struct flow_block *b = &w->flow->blocks[block];
	double width = model_limits(w->machine->model)->width;

	if (b->marks & FLOW_PADDING || !b->count)
		return false;
	if (why_block_count(w, block) * b->count / width > w->sample / 4)
		return true;
	for (uint32_t i = 0; i < b->count; i++)
		if (w->why->insns[b->first + i].samples > 0)
			return true;
	return false;
}

int why_schedule(struct why_work *w, struct err *e)
{
	struct run *r = xmalloc(sizeof *r);
	int rc = 0;

	for (uint32_t b = 0; b < w->flow->nblocks && !rc; b++) {
		const struct flow_block *block = &w->flow->blocks[b];
		bool runs = matters(w, b);

		for (uint32_t at = 0; runs && at < block->count && !rc; at += PIECE) {
			uint32_t count = block->count - at < PIECE ? block->count - at : PIECE;

			make_run(w, block->first + at, count, r);
			rc = scoreboard_block(w->board, r->insn, r->n, r->out, NULL);
			if (rc)
				break;
			take_means(w, r, block->first + at, count);
			if (at + count == block->count)
				add_wait(w, b, wait_of_transfers(r));
		}
		if (runs)
			find_static(w, b);
	}
	free(r);
	return rc ? err_set(e, rc, "the code of a block cannot be scheduled") : 0;
}
