/*
 * The best case against what was seen. The scoreboard is right about a stretch of code, not about
 * which of its instructions shows the cycles: those that retire together show them in one place,
 * and behind a long stall a whole window of instructions is done at once and shows none. So best
 * cycles that were not seen at their instruction are looked for near it, as far as the window
 * reaches, and only what is seen beyond them is a dynamic stall. What is found nowhere near went
 * faster than the best case. Cycles that a branch likely lost are kept for it: else they would be
 * laid on by the best case of what is near, or not, by which of two ways is a little more frequent.
 */
#include "analyze/why_internal.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

#define REACH 96   /* instructions */
#define SIGMA 1.64 /* one-sided, 95% */

/* ---- laying out ---- */

/* A place in the flow that walks along the most frequent edges. */
struct walker {
	uint32_t block, insn;
	bool ended;
};

static void step_back(const struct why_work *w, struct walker *at)
{
	const struct flow *f = w->flow;

	if (at->insn > f->blocks[at->block].first) {
		at->insn--;
		return;
	}
	uint32_t edge = why_edge_in(w, at->block);
	at->ended = edge == GRAPH_NONE || f->graph.edge[edge].from == f->entry_node;
	if (at->ended)
		return;
	at->block = f->graph.edge[edge].from;
	at->insn = f->blocks[at->block].first + f->blocks[at->block].count - 1;
}

static void step_on(const struct why_work *w, struct walker *at)
{
	const struct flow *f = w->flow;

	if (++at->insn < f->blocks[at->block].first + f->blocks[at->block].count)
		return;
	uint32_t edge = why_edge_out(w, at->block);
	at->ended = edge == GRAPH_NONE || f->graph.edge[edge].to == f->exit_node;
	if (at->ended)
		return;
	at->block = f->graph.edge[edge].to;
	at->insn = f->blocks[at->block].first;
}

static void give(struct why_time *from, struct why_time *to)
{
	double room = to->seen - to->laid - to->kept, part = fmin(from->hidden, room);

	if (part <= 0)
		return;
	to->laid += part;
	from->hidden -= part;
}

static void look_near(struct why_work *w, uint32_t insn)
{
	struct why_time *own = &w->time[insn];
	struct walker back = {w->block_of[insn], insn, false}, on = back;

	for (unsigned i = 0; i < REACH && own->hidden > 0 && !(back.ended && on.ended); i++) {
		if (!back.ended)
			step_back(w, &back);
		if (!back.ended)
			give(own, &w->time[back.insn]);
		if (!on.ended)
			step_on(w, &on);
		if (!on.ended)
			give(own, &w->time[on.insn]);
	}
}

/* What a divider, lock or fence takes is a stall that has its culprit, not part of the best case.
 */
static double best_of(struct why_work *w, uint32_t insn)
{
	const struct why_insn *in = &w->why->insns[insn];

	if (in->stopped > 0 && why_fact_of(w, insn)->hazards &
				       (HAZARD_DIVIDES | HAZARD_LOCKED | HAZARD_SERIALISING))
		return in->min_cpi - in->stopped;
	return in->min_cpi;
}

/* ---- chance ---- */

/* Differences, in samples. */
struct differences {
	double sum, expected;
	double spread; /* square of how far the latter may be off because frequencies are */
};

static bool more_than_chance(const struct differences *d)
{
	return d->sum > SIGMA * sqrt(d->expected + 1 + d->spread);
}

/* How far the frequency of a block may be off, as a share (one standard deviation). */
static double uncertainty(const struct estimate *e)
{
	if (!(e->count > 0) || !(e->high >= e->low))
		return 1;
	return fmin(1, (e->high - e->low) / (2 * SIGMA * e->count));
}

static double square(double x)
{
	return x * x;
}

/*
 * Small differences that together are no chance (a block in which each instruction takes a little
 * longer) are stalls after all. Those that are not are left to the procedure.
 */
static void judge_block(struct why_work *w, uint32_t block, struct differences *left)
{
	const struct flow_block *b = &w->flow->blocks[block];
	double relative = uncertainty(&w->frequency->block[block]), hidden = 0;
	struct differences small = {0};

	for (uint32_t i = b->first; i < b->first + b->count; i++) {
		struct why_time *t = &w->time[i];
		double expected = t->laid / w->sample;
		struct differences own = {
			(t->seen - t->laid) / w->sample, expected, square(expected * relative)};

		t->significant = more_than_chance(&own);
		small.expected += expected;
		small.sum += t->significant ? 0 : own.sum;
		hidden += t->hidden / w->sample;
	}
	small.spread = square(small.expected * relative);
	if (more_than_chance(&small)) {
		for (uint32_t i = b->first; i < b->first + b->count; i++)
			w->time[i].significant = w->time[i].seen > w->time[i].laid;
		small.sum = 0;
	}
	left->sum += small.sum - hidden;
	left->expected += small.expected + hidden;
	left->spread += (small.expected + hidden) * relative; /* not yet its square */
}

/*
 * Code that is spread thin has less than a sample for each instruction, and few in a block. What is
 * seen beyond the best case in all blocks, less what was expected and not seen, tells. Blocks are
 * as frequent as their neighbours, so that frequencies that are off are all off to one side.
 */
static void judge(struct why_work *w)
{
	struct differences left = {0};

	for (uint32_t b = 0; b < w->flow->nblocks; b++)
		judge_block(w, b, &left);
	left.spread = square(left.spread);
	if (!more_than_chance(&left))
		return;
	for (uint32_t i = 0; i < w->flow->ninsns; i++)
		w->time[i].significant |= w->time[i].seen > w->time[i].laid;
}

/*
 * A load through a pointer that a caller passed or a callee returned shows its latency when that
 * comes late, and nobody knows when it does: what was seen of it is not blamed on anybody.
 */
static void admit_late(struct why_work *w)
{
	for (uint32_t i = 0; i < w->flow->ninsns; i++) {
		struct why_time *t = &w->time[i];
		struct why_insn *in = &w->why->insns[i];
		double count = why_block_count(w, w->block_of[i]);
		double part = 0;

		if (w->late[i] > 0 && t->seen > t->laid)
			part = fmin(t->seen - t->laid,
				w->late[i] * count * why_fresh(w, w->block_of[i]));
		if (!(part > 0))
			continue;
		t->laid += part;
		t->best += part;
		if (in->stopped <= 0) {
			in->cause = WHY_OPERAND;
			in->on = GRAPH_NONE;
		}
		in->stopped += part / count;
		in->min_cpi += part / count;
	}
}

void why_lay_out(struct why_work *w)
{
	for (uint32_t b = 0; b < w->flow->nblocks; b++) {
		const struct flow_block *block = &w->flow->blocks[b];
		double count = why_block_count(w, b);

		for (uint32_t i = block->first; i < block->first + block->count; i++) {
			struct why_time *t = &w->time[i];

			t->seen = w->why->insns[i].samples * w->sample;
			t->best = best_of(w, i) * count;
			t->laid = fmin(t->seen, t->best);
			t->hidden = t->best - t->laid;
			t->kept = 0;
		}
	}
	why_keep_refills(w);
	for (uint32_t i = 0; i < w->flow->ninsns; i++)
		if (w->time[i].hidden > 0)
			look_near(w, i);
	if (w->admits)
		admit_late(w);
	judge(w);
}
