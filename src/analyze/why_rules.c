/*
 * Culprits (the paper's 6.3): every one is guilty of every dynamic stall until a rule acquits it or
 * says how much it can have cost at most. What nobody can have cost is unexplained; what only one
 * can have cost is his.
 *
 * Cycles are those of today's server cores, rounded up where cores differ: they only bound.
 */
#include "analyze/why_internal.h"

#include <math.h>
#include <stdlib.h>

enum cost {
	BUBBLE = 1,         /* behind a taken branch */
	SLOW_DECODE = 8,    /* of a prefix that changes the length */
	MEMORY = 400,       /* a load from memory */
	NEAR_CACHE = 16,    /* the second-level cache */
	CODE_MISS = 80,     /* an instruction that the second-level cache does not have */
	FAR = 30,           /* a load that goes beyond the second-level cache, often */
	WALK = 60,          /* of page tables, nested ones included */
	BLOCKED = 20,       /* a load that waits until a store has left the buffer */
	ALIASED = 12,       /* a load that is started again */
	CLEAR = 40,         /* the pipeline, for order of memory or code that was changed */
	ASSIST = 200,       /* microcode for a denormal number */
	CODE_LINES = 512,   /* of the first-level cache */
	CODE_PAGES = 64,    /* of the first-level TLB, at least */
	DECODED = 16,       /* bytes of code a cycle when they are not in the cache of micro-ops, */
	DECODED_LINES = 96, /* which holds so many lines at least */
};

/* How far the likely number of mispredictions may be off. */
#define LIKELY_LOW  0.6
#define LIKELY_HIGH 1.4

/* A stalled instruction and what is known of it. */
struct trial {
	struct why_work *work;
	uint32_t insn;
	const struct why_fact *fact;
	double count, cpi, stall; /* cycles of each execution */
	double known;             /* what the model knows of a slow operation */
	struct why_front front;
	struct why_memory memory;
	enum why_place place; /* of what it loads or stores */
	int64_t stride;
	uint32_t from; /* whom the rule at work would blame, or GRAPH_NONE */
};

/* The most cycles that the culprit can have cost; INFINITY: no idea. */
typedef double rule_fn(struct trial *t);

struct rule {
	struct why_rule_words words;
	rule_fn *fn;
};

/* ---- data ---- */

static double no_load(struct trial *t)
{
	t->from = t->insn;
	return t->fact->loads ? INFINITY : 0;
}

static double just_stored(struct trial *t)
{
	return t->memory.stored_by == GRAPH_NONE ? INFINITY : 0;
}

static double same_place(struct trial *t)
{
	return t->place == WHY_PLACE_SAME ? t->front.fresh * MEMORY : INFINITY;
}

static double near_place(struct trial *t)
{
	if (t->place == WHY_PLACE_STACK)
		return NEAR_CACHE / 16.0;
	return t->place == WHY_PLACE_FIXED ? NEAR_CACHE / 8.0 : INFINITY;
}

static double held_by_lock(struct trial *t)
{
	return t->fact->hazards & HAZARD_LOCKED ? fmax(0, t->stall - t->known) : INFINITY;
}

static double less_the_branch(struct trial *t)
{
	return t->front.foreseen ? fmax(0, t->stall - LIKELY_LOW * t->front.likely) : INFINITY;
}

static double no_access(struct trial *t)
{
	t->from = t->insn;
	return t->fact->loads || t->fact->stores ? INFINITY : 0;
}

static double known_page(struct trial *t)
{
	switch (t->place) {
	case WHY_PLACE_STACK:
	case WHY_PLACE_FIXED:
		return 0;
	case WHY_PLACE_SAME:
		return t->front.fresh * WALK;
	case WHY_PLACE_STRIDED:
		return fmin(1, fabs((double)t->stride) / 4096) * WALK;
	case WHY_PLACE_ANY:
		break;
	}
	return INFINITY;
}

/* A TLB of the second level answers in seven cycles, which a miss of the cache hides; what it does
 * not hold is so much data that the cache's misses go far. */
static double with_a_miss(struct trial *t)
{
	return t->stall < FAR ? t->stall / 12 : fmin(WALK, t->stall / 6);
}

/* ---- stores ---- */

static double no_store(struct trial *t)
{
	t->from = t->fact->stores ? t->insn : t->memory.next_store;
	return t->from == GRAPH_NONE ? 0 : INFINITY;
}

static double loads_first(struct trial *t)
{
	return t->fact->loads ? 0 : INFINITY;
}

static double stores_hit(struct trial *t)
{
	bool far = t->place != WHY_PLACE_STACK && t->place != WHY_PLACE_FIXED;

	return (far && t->fact->stores) || t->memory.next_store != GRAPH_NONE ? INFINITY : 0;
}

static double no_partial_store(struct trial *t)
{
	t->from = t->memory.stored_by;
	return t->from != GRAPH_NONE && !t->memory.covered ? BLOCKED : 0;
}

static double no_alias(struct trial *t)
{
	t->from = t->memory.aliased;
	return t->from == GRAPH_NONE ? 0 : ALIASED;
}

/* ---- operations ---- */

static double no_divide(struct trial *t)
{
	t->from = t->insn;
	return t->fact->hazards & HAZARD_DIVIDES ? INFINITY : 0;
}

static double no_lock(struct trial *t)
{
	t->from = t->insn;
	return t->fact->hazards & HAZARD_LOCKED ? INFINITY : 0;
}

static double no_fence(struct trial *t)
{
	t->from = t->insn;
	return t->fact->hazards & (HAZARD_SERIALISING | HAZARD_PAUSES) ? INFINITY : 0;
}

static double no_float(struct trial *t)
{
	t->from = t->insn;
	return t->fact->hazards & HAZARD_FLOAT ? ASSIST : 0;
}

static double no_call(struct trial *t)
{
	t->from = t->insn;
	switch (t->work->flow->insns[t->insn].kind) {
	case INSN_CALL:
	case INSN_CALL_INDIRECT:
		return INFINITY;
	default:
		return 0;
	}
}

static double no_conflict(struct trial *t)
{
	t->from = t->memory.last_store;
	return t->fact->loads && t->memory.far_stores ? INFINITY : 0;
}

static double seldom_clears(struct trial *t)
{
	(void)t;
	return CLEAR / 1000.0;
}

/* ---- instructions ---- */

static double not_missed(struct trial *t)
{
	t->from = t->front.branch;
	return t->front.missed;
}

static double as_foreseen(struct trial *t)
{
	return t->fact->loads ? LIKELY_HIGH * t->front.likely : INFINITY;
}

static double same_line(struct trial *t)
{
	t->from = t->insn;
	return t->front.fresh_line > 0.01 ? t->front.fresh_line * CODE_MISS : 0;
}

static double same_page(struct trial *t)
{
	t->from = t->insn;
	return t->front.fresh_page > 0.01 ? t->front.fresh_page * WALK : 0;
}

static double lines_fit(struct trial *t)
{
	uint64_t lines = t->work->machine->hot_lines;

	return lines && lines < CODE_LINES * 3 / 4 ? 0 : INFINITY;
}

static double pages_fit(struct trial *t)
{
	uint64_t pages = t->work->machine->hot_pages;

	return pages && pages < CODE_PAGES * 3 / 4 ? 0 : INFINITY;
}

/* All cycles of the program over executions: no more can pass on the average in between. */
static double cycles_between(const struct trial *t)
{
	double cycles = t->work->machine->cycles;

	return cycles > 0 && t->count > 0 ? cycles / t->count : INFINITY;
}

static double lines_back_soon(struct trial *t)
{
	return cycles_between(t) < CODE_LINES ? 0 : t->front.fresh * CODE_MISS;
}

static double pages_back_soon(struct trial *t)
{
	return cycles_between(t) < 16 * CODE_PAGES ? 0 : t->front.fresh * WALK;
}

static double with_a_line(struct trial *t)
{
	return t->stall / 4;
}

static double nothing_to_fetch(struct trial *t)
{
	bool decoded = t->work->machine->hot_lines && t->work->machine->hot_lines <= DECODED_LINES;
	double bound = decoded ? 0 : t->front.taken * BUBBLE;

	t->from = t->insn;
	if (t->fact->hazards & HAZARD_LENGTH)
		bound += SLOW_DECODE;
	if (t->fact->model.flags & MODEL_MICROCODED)
		bound += t->fact->model.uops / 2.0;
	if (!decoded)
		bound += (double)t->work->flow->insns[t->insn].length / DECODED;
	return bound;
}

/* ---- the machine ---- */

static double measured_steal(struct trial *t)
{
	return t->cpi * t->work->machine->steal;
}

#define RULE(name, culprit, fn, why)               \
	{                                          \
		{name, why, CULPRIT_##culprit}, fn \
	}

static const struct rule rules[] = {
	RULE("no load", DCACHE, no_load, "the instruction loads nothing"),
	RULE("just stored", DCACHE, just_stored,
		"what it loads was stored a moment ago and is in the buffer or the cache"),
	RULE("same place", DCACHE, same_place,
		"the address stays the same in the loop: it misses when the loop is entered, at "
		"most"),
	RULE("near place", DCACHE, near_place,
		"stack and variables are used all the time: misses are few, and end in a near "
		"cache"),
	RULE("held by its lock", DCACHE, held_by_lock,
		"what a locked operation takes in any case is no miss"),
	RULE("less the branch", DCACHE, less_the_branch,
		"of a load that is fused with a branch, what a predictor would get wrong is no "
		"miss"),
	RULE("no access", DTLB, no_access, "the instruction does not touch memory"),
	RULE("just stored", DTLB, just_stored, "the page was used a moment ago"),
	RULE("known page", DTLB, known_page,
		"stack and variables are on pages in use, strides leave a page as often as they "
		"are "
		"long"),
	RULE("with a miss", DTLB, with_a_miss,
		"pages that the TLB does not hold are more data than the cache holds: a miss of "
		"the "
		"cache comes with it, and takes longer"),
	RULE("no branch before", MISPREDICT, not_missed,
		"the pipeline is refilled between a branch and its target, and a branch that "
		"nearly "
		"always goes the same way is seldom mispredicted; behind that only the "
		"instruction's "
		"own latency can show"),
	RULE("as foreseen", MISPREDICT, as_foreseen,
		"where a load may as well be to blame, the branch is blamed for what a predictor "
		"would "
		"get wrong in the walks that were seen"),
	RULE("same line", ICACHE, same_line,
		"it is in the same line as all that often comes before it"),
	RULE("code fits", ICACHE, lines_fit, "all hot code fits into the first-level cache"),
	RULE("back soon", ICACHE, lines_back_soon,
		"it runs again before enough else can have run to displace it, but for the first "
		"time "
		"in a loop"),
	RULE("same page", ITLB, same_page,
		"it is in the same page as all that often comes before it"),
	RULE("pages fit", ITLB, pages_fit, "the TLB holds all pages of hot code"),
	RULE("back soon", ITLB, pages_back_soon,
		"it runs again before enough other pages can have been used, but for the first "
		"time "
		"in a loop"),
	RULE("with a line", ITLB, with_a_line,
		"code that needs more pages than the TLB holds misses the cache, which takes "
		"longer"),
	RULE("nothing to fetch", FRONTEND, nothing_to_fetch,
		"a taken branch costs a bubble, decoding some cycles by the length"),
	RULE("no store", STORE_BUFFER, no_store,
		"only a store waits for room in the buffer, and what enters the window with it"),
	RULE("loads first", STORE_BUFFER, loads_first,
		"a load holds up itself; what it brought, the store behind it finds in the cache"),
	RULE("stores hit", STORE_BUFFER, stores_hit,
		"stores to stack and variables leave the buffer at once"),
	RULE("no partial store", FORWARDING, no_partial_store,
		"no store before it overlaps what it loads without covering it"),
	RULE("no alias", ALIAS, no_alias,
		"no store before it is a multiple of 4096 bytes away, as the code shows"),
	RULE("no division", DIVIDER, no_divide, "it neither divides nor takes a root"),
	RULE("no lock", LOCKED, no_lock, "it is not locked"),
	RULE("no fence", SERIALISING, no_fence, "it does not wait for all before it"),
	RULE("no conflict", CLEAR, no_conflict,
		"no load that a store to an unknown address comes before"),
	RULE("seldom", CLEAR, seldom_clears, "predictors of conflicts learn: one in a thousand"),
	RULE("no arithmetic", ASSIST, no_float, "it does not compute with floating point"),
	RULE("no call", CALLEE, no_call, "nothing returns to behind it"),
	RULE("measured", STEAL, measured_steal, "the hypervisor took no more of the time"),
};
#define RULES (sizeof rules / sizeof *rules)

const struct why_rule_words *why_rule(size_t i)
{
	return i < RULES ? &rules[i].words : NULL;
}

/* ---- trials ---- */

static void begin_trial(struct why_work *w, uint32_t insn, struct trial *t)
{
	uint32_t block = w->block_of[insn];
	const struct why_time *time = &w->time[insn];

	*t = (struct trial){.work = w, .insn = insn, .place = WHY_PLACE_ANY, .from = GRAPH_NONE};
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

static void apply_rules(struct trial *t, struct verdict *v)
{
	for (unsigned c = 0; c < CULPRITS; c++) {
		v->most[c] = t->stall;
		v->from[c] = GRAPH_NONE;
	}
	for (size_t i = 0; i < RULES; i++) {
		enum culprit c = rules[i].words.culprit;
		double bound;

		if (!(v->most[c] > 0))
			continue;
		t->from = GRAPH_NONE;
		bound = rules[i].fn(t);
		if (bound < v->most[c])
			v->most[c] = bound;
		if (t->from != GRAPH_NONE)
			v->from[c] = t->from;
	}
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

static void pass_sentence(struct trial *t, const struct verdict *v)
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
	qsort(w->stalls.p + in->first_stall, in->nstalls, sizeof *w->stalls.p, compare_stalls);
}

void why_accuse(struct why_work *w)
{
	why_find_missed(w);
	for (uint32_t i = 0; i < w->flow->ninsns; i++) {
		struct trial t;
		struct verdict v;

		if (!w->time[i].significant || !(why_block_count(w, w->block_of[i]) > 0))
			continue;
		begin_trial(w, i, &t);
		apply_rules(&t, &v);
		pass_sentence(&t, &v);
	}
}
