/*
 * Culprits (the paper's 6.3): every one is guilty of every dynamic stall until a rule acquits it or
 * says how much it can have cost at most. What nobody can have cost is unexplained; what only one
 * can have cost is his.
 */
#include "analyze/why_trial.h"

#include <math.h>
#include <stdlib.h>

static void begin_trial(struct why_work *w, uint32_t insn, struct why_trial *t)
{
	uint32_t block = w->block_of[insn];
	const struct why_time *time = &w->time[insn];

	*t = (struct why_trial){
		.work = w, .insn = insn, .place = WHY_PLACE_ANY, .from = GRAPH_NONE};
	t->fact = why_fact_of(w, insn);
	t->count = why_block_count(w, block);
	t->cpi = time->seen / t->count;
	t->stall = (time->seen - time->laid) / t->count;
	t->known = w->why->insns[insn].stopped;
	why_front_at(w, insn, &t->front);
	why_memory_at(w, insn, &t->memory);
	for (unsigned i = 0; i < t->fact->model.nplaces; i++)
		if (i == 0 || t->fact->model.place[i].loads)
			t->place = why_place_of(w, insn, &t->fact->model.place[i], &t->stride);
}

struct verdict {
	double most[CULPRITS];
	uint32_t from[CULPRITS];
};

static double left_over(const struct why_trial *t, const struct verdict *v)
{
	double left = t->stall;

	for (unsigned c = 0; c < CULPRITS; c++)
		left -= c == CULPRIT_FRONTEND ? 0 : v->most[c];
	return fmax(0, left);
}

/* Samples at an entry that may be the caller's say nothing about the instruction's own data. */
static void spare(const struct why_trial *t, struct verdict *v)
{
	static const enum culprit own[] = {CULPRIT_DCACHE, CULPRIT_DTLB, CULPRIT_STORE_BUFFER,
		CULPRIT_FORWARDING, CULPRIT_ALIAS, CULPRIT_DIVIDER, CULPRIT_LOCKED, CULPRIT_CLEAR,
		CULPRIT_ASSIST};
	double stayed = t->work->stayed[t->insn] * t->work->sample / t->count;

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		v->most[own[i]] = fmin(v->most[own[i]], fmax(0, t->stall - stayed));
}

static void apply_rules(struct why_trial *t, struct verdict *v)
{
	for (unsigned c = 0; c < CULPRITS; c++) {
		v->most[c] = t->stall;
		v->from[c] = GRAPH_NONE;
	}
	spare(t, v);
	for (size_t i = 0; why_law(i); i++) {
		enum culprit c = why_law(i)->words.culprit;
		double bound;

		if (!(v->most[c] > 0))
			continue;
		if (c == CULPRIT_FRONTEND)
			t->left = left_over(t, v);
		t->from = GRAPH_NONE;
		bound = why_law(i)->fn(t);
		if (bound < v->most[c])
			v->most[c] = bound;
		if (t->from != GRAPH_NONE)
			v->from[c] = t->from;
	}
}

/* What a slow operation takes in any case is nobody else's. */
static void convict(const struct why_trial *t, struct verdict *v)
{
	static const struct {
		enum hazard hazard;
		enum culprit culprit;
	} slow[] = {{HAZARD_DIVIDES, CULPRIT_DIVIDER}, {HAZARD_LOCKED, CULPRIT_LOCKED},
		{HAZARD_SERIALISING, CULPRIT_SERIALISING}};

	for (size_t i = 0; i < sizeof slow / sizeof *slow; i++)
		for (unsigned c = 0; c < CULPRITS && t->fact->hazards & slow[i].hazard; c++)
			if (c != slow[i].culprit)
				v->most[c] = fmin(v->most[c], fmax(0, t->stall - t->known));
}

/* The likeliest first. */
static int compare_stalls(const void *a, const void *b)
{
	const struct why_stall *x = a, *y = b;
	double likely = y->min + y->max - x->min - x->max;

	if (likely != 0)
		return likely > 0 ? 1 : -1;
	return (int)x->culprit - (int)y->culprit;
}

#define TRIFLE 0.1 /* of a stall: who can have cost no more is not named */

static void pass_sentence(struct why_trial *t, const struct verdict *v)
{
	struct why_work *w = t->work;
	struct why_insn *in = &w->why->insns[t->insn];
	double all = 0;

	for (unsigned c = 0; c < CULPRITS; c++)
		if (v->most[c] > TRIFLE * t->stall)
			all += v->most[c];
	in->stall = t->stall;
	in->unexplained = fmax(0, t->stall - all);
	in->first_stall = (uint32_t)w->stalls.n;
	for (unsigned c = 0; c < CULPRITS; c++) {
		struct why_stall *s;

		if (!(v->most[c] > TRIFLE * t->stall))
			continue;
		s = vec_add(&w->stalls);
		*s = (struct why_stall){c, fmax(0, t->stall - in->unexplained - (all - v->most[c])),
			v->most[c], (uint32_t)w->from.n, v->from[c] != GRAPH_NONE};
		if (v->from[c] != GRAPH_NONE)
			*vec_add(&w->from) = v->from[c];
		in->nstalls++;
	}
	if (in->nstalls)
		qsort(w->stalls.p + in->first_stall, in->nstalls, sizeof *w->stalls.p,
			compare_stalls);
}

void why_accuse(struct why_work *w)
{
	why_find_front(w);
	for (uint32_t i = 0; i < w->flow->ninsns; i++) {
		struct why_trial t;
		struct verdict v;

		if (!w->time[i].significant || !(why_block_count(w, w->block_of[i]) > 0))
			continue;
		begin_trial(w, i, &t);
		apply_rules(&t, &v);
		convict(&t, &v);
		pass_sentence(&t, &v);
	}
}
