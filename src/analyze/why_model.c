/*
 * The best case: the scoreboard runs the most frequent way to a block and the block behind it, so
 * that what overlaps with older instructions does, and loops are in steady state. What counts is
 * retirement, as in the samples: the cycles from one instruction's to the next one's.
 *
 * When what callers and callees leave in registers is there, nobody knows: long before, or only
 * when all that is older is done. The best case takes the first; a second run takes the other, and
 * says how much more may show of latencies that wait for it (why_work.late).
 */
#include "analyze/why_internal.h"

#include "base/err.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAD   256  /* instructions before a block */
#define PIECE  1024 /* of a block that are run at once */
#define CALLER 12   /* cycles that work from before the procedure is still under way at its entry */
#define HEADS  4    /* what was under way: so many can write all registers */

/* A way as the scoreboard takes it. */
struct run {
	uint32_t number[HEADS + LEAD + PIECE]; /* in the flow; GRAPH_NONE: what was under way */
	struct model_insn insn[HEADS + LEAD + PIECE];
	struct scoreboard_insn out[HEADS + LEAD + PIECE];
	size_t n;
};

static void add_step(struct why_work *w, struct run *r, uint32_t insn)
{
	r->number[r->n] = insn;
	r->insn[r->n++] = why_fact_of(w, insn)->model;
}

static struct model_insn *add_head(struct run *r)
{
	struct model_insn *in = &r->insn[r->n];

	memset(in, 0, sizeof *in);
	in->length = in->uops = 1;
	in->latency = CALLER;
	in->moved = MODEL_NO_REGISTER;
	r->number[r->n++] = GRAPH_NONE;
	return in;
}

static void make_run(struct why_work *w, uint32_t first, uint32_t count, struct run *r)
{
	uint32_t way[LEAD];
	size_t n = why_way_to(w, first, way, LEAD);

	r->n = 0;
	add_head(r);
	for (size_t i = 0; i < n; i++)
		add_step(w, r, way[i]);
	for (uint32_t i = 0; i < count; i++)
		add_step(w, r, first + i);
}

/* ---- what comes from elsewhere ---- */

static void write_late(struct model_insn *in, unsigned reg)
{
	if (reg != MODEL_RSP && in->nwrites < MODEL_WRITES)
		in->write[in->nwrites++] = (struct model_write){(uint8_t)reg, CALLER};
}

/* What a call leaves is not there before the callee is done. */
static bool return_late(struct model_insn *in)
{
	if (in->kind != INSN_CALL && in->kind != INSN_CALL_INDIRECT)
		return false;
	in->latency = in->latency < CALLER ? CALLER : in->latency;
	write_late(in, MODEL_RAX);
	write_late(in, MODEL_RDX);
	write_late(in, MODEL_VECTOR);
	return true;
}

/*
 * The same with all that comes from callers and callees as late as it can: not before everything
 * older is done. false: nothing on the way comes from elsewhere.
 */
static bool make_late(struct why_work *w, uint32_t first, uint32_t count, struct run *r)
{
	uint32_t way[LEAD];
	size_t n = why_way_to(w, first, way, LEAD);
	bool late = n < LEAD;

	r->n = 0;
	for (unsigned k = 0; k < HEADS; k++) {
		struct model_insn *in = add_head(r);

		for (unsigned i = k % 2 * 8; late && i < k % 2 * 8 + 8; i++)
			write_late(in, k < 2 ? i : MODEL_VECTOR + i);
	}
	for (size_t i = 0; i < n; i++) {
		add_step(w, r, way[i]);
		late |= return_late(&r->insn[r->n - 1]);
	}
	for (uint32_t i = 0; i < count; i++)
		add_step(w, r, first + i);
	return late;
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

/* Where the times that the way comes through the piece are as ever: the first ones fill the
 * pipeline. */
static size_t steady(const struct run *r, uint32_t count)
{
	return r->n - count < r->n / 2 ? r->n - count : r->n / 2;
}

/* Means over these times. The reason is that of the longest wait. */
static void take_means(struct why_work *w, const struct run *r, uint32_t first, uint32_t count)
{
	uint32_t *times = xcalloc(count, sizeof *times), *longest = xcalloc(count, sizeof *longest);

	for (size_t i = steady(r, count); i < r->n; i++) {
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

/* Beyond the best case. */
static void take_late(struct why_work *w, const struct run *r, uint32_t first, uint32_t count)
{
	uint32_t *times = xcalloc(count, sizeof *times);
	double *sum = xcalloc(count, sizeof *sum);

	for (size_t i = steady(r, count); i < r->n; i++) {
		uint32_t at = r->number[i] - first;

		if (r->number[i] == GRAPH_NONE || r->number[i] < first || at >= count)
			continue;
		sum[at] += r->out[i].stall;
		times[at]++;
	}
	for (uint32_t i = 0; i < count; i++)
		if (times[i])
			w->late[first + i] =
				fmax(0, sum[i] / times[i] - w->why->insns[first + i].min_cpi);
	free(sum);
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

static int run_piece(struct why_work *w, uint32_t block, uint32_t at, struct run *r)
{
	const struct flow_block *b = &w->flow->blocks[block];
	uint32_t first = b->first + at, count = b->count - at < PIECE ? b->count - at : PIECE;
	double wait;
	int rc;

	make_run(w, first, count, r);
	rc = scoreboard_block(w->board, r->insn, r->n, r->out, NULL);
	if (rc)
		return rc;
	take_means(w, r, first, count);
	wait = wait_of_transfers(r);
	if (make_late(w, first, count, r)) {
		rc = scoreboard_block(w->board, r->insn, r->n, r->out, NULL);
		if (!rc)
			take_late(w, r, first, count);
	}
	if (!rc && at + count == b->count)
		add_wait(w, block, wait);
	return rc;
}

int why_schedule(struct why_work *w, struct err *e)
{
	struct run *r = xmalloc(sizeof *r);
	int rc = 0;

	for (uint32_t b = 0; b < w->flow->nblocks && !rc; b++) {
		const struct flow_block *block = &w->flow->blocks[b];
		bool runs = matters(w, b);

		for (uint32_t at = 0; runs && at < block->count && !rc; at += PIECE)
			rc = run_piece(w, b, at, r);
		if (runs)
			find_static(w, b);
	}
	free(r);
	return rc ? err_set(e, rc, "the code of a block cannot be scheduled") : 0;
}
