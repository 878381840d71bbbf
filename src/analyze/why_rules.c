/*
 * The rules that acquit, each on its own. Cycles are those of today's server cores, rounded up
 * where cores differ: they only bound.
 */
#include "analyze/why_trial.h"

#include "analyze/stays.h"

#include <math.h>

enum cost {
	REFILL = 25,          /* the pipeline, after a mispredicted branch */
	BUBBLE = 1,           /* behind a taken branch */
	CALL = 2,             /* of a call, at the entry of the procedure */
	SLOW_DECODE = 3,      /* of a prefix that changes the length */
	MEMORY = 800,         /* a load from memory, and of page tables there */
	NEAR_CACHE = 16,      /* the second-level cache */
	CODE_MISS = 20,       /* an instruction from the second-level cache, */
	CODE_FAR = 80,        /* and from beyond */
	FAR = 30,             /* a load that goes beyond the second-level cache, often */
	WALK = 60,            /* of page tables, nested ones included */
	BLOCKED = 20,         /* a load that waits until a store has left the buffer */
	ALIASED = 12,         /* a load that is started again */
	CLEAR = 40,           /* the pipeline, for order of memory or code that was changed */
	ASSIST = 200,         /* microcode for a denormal number */
	FORGOTTEN = 10000000, /* after so many cycles no cache holds it any more */
	LINE = 64,
	DATA_LINES = 512,   /* of the first-level cache */
	TABLE_JUMP = 4,     /* instructions from the load out of a table to the end of the jump */
	PER_LINE = 4,       /* cycles in another line of code, before the next, at least */
	PER_PAGE = 16,      /* and in another page */
	NEAR_LINES = 8192,  /* of the second-level cache that code may have */
	CODE_PAGES = 64,    /* of the first-level TLB, at least */
	DECODED_LINES = 96, /* that the cache of micro-ops holds, at least */
};

/* How far the likely number of mispredictions may be off. */
#define LIKELY_LOW  0.6
#define LIKELY_HIGH 1.4

/* ---- how often ---- */

/* All cycles of the program over executions: no more can pass on the average in between. */
static double cycles_between(const struct why_trial *t)
{
	double cycles = t->work->machine->cycles;

	return cycles > 0 && t->count > 0 ? cycles / t->count : INFINITY;
}

/* ---- data ---- */

static double no_load(struct why_trial *t)
{
	t->from = t->insn;
	return t->fact->loads ? INFINITY : 0;
}

static double just_stored(struct why_trial *t)
{
	return t->memory.stored_by != GRAPH_NONE && t->memory.apart <= 0 ? 0 : INFINITY;
}

static double same_data_line(struct why_trial *t)
{
	return t->memory.apart * MEMORY;
}

static double same_place(struct why_trial *t)
{
	return t->place == WHY_PLACE_SAME ? t->front.fresh * MEMORY : INFINITY;
}

static double near_place(struct why_trial *t)
{
	if (t->place == WHY_PLACE_STACK)
		return NEAR_CACHE / 16.0;
	return t->place == WHY_PLACE_FIXED ? NEAR_CACHE / 8.0 : INFINITY;
}

/* Entries of a table by which a jump goes, as many as there are ways: all of them are used again
 * before as many other lines can be as the cache holds. */
static double small_table(struct why_trial *t)
{
	const struct flow *f = t->work->flow;
	uint32_t block = t->work->block_of[t->insn],
		 end = f->blocks[block].first + f->blocks[block].count;
	const struct model_place *p = &t->fact->model.place[0];
	double lines;

	if (f->blocks[block].end != FLOW_TABLE || !t->fact->loads || p->index >= 16 ||
		(p->scale != 4 && p->scale != 8) || t->insn + TABLE_JUMP < end)
		return INFINITY;
	lines = 1 + (double)graph_out_degree(&f->graph, block) * p->scale / LINE;
	return cycles_between(t) * lines < PER_LINE * DATA_LINES ? 0 : INFINITY;
}

static double data_stays(struct why_trial *t)
{
	const struct why_machine *m = t->work->machine;
	struct stays_share gone;

	if (!m->stays || !t->fact->loads ||
		!stays_data(m->stays, t->work->evidence->image,
			why_offset(t->work, t->work->flow->insns[t->insn].address), &gone))
		return INFINITY;
	return gone.most * MEMORY;
}

static double less_the_branch(struct why_trial *t)
{
	return t->front.foreseen ? fmax(0, t->stall - LIKELY_LOW * t->front.likely) : INFINITY;
}

static double no_access(struct why_trial *t)
{
	t->from = t->insn;
	return t->fact->loads || t->fact->stores ? INFINITY : 0;
}

static double known_page(struct why_trial *t)
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
static double with_a_miss(struct why_trial *t)
{
	return t->stall < FAR ? t->stall / 12 : fmin(WALK, t->stall / 8);
}

/* ---- stores ---- */

static double no_store(struct why_trial *t)
{
	t->from = t->fact->stores ? t->insn : t->memory.next_store;
	return t->from == GRAPH_NONE ? 0 : INFINITY;
}

static double loads_first(struct why_trial *t)
{
	return t->fact->loads ? 0 : INFINITY;
}

static double stores_hit(struct why_trial *t)
{
	if (!t->fact->stores)
		return INFINITY; /* the one beside it is far */
	switch (t->place) {
	case WHY_PLACE_STACK:
	case WHY_PLACE_FIXED:
	case WHY_PLACE_SAME:
		return 0;
	default:
		return t->memory.apart * MEMORY;
	}
}

static double no_partial_store(struct why_trial *t)
{
	t->from = t->memory.stored_by;
	if (t->from != GRAPH_NONE && !t->memory.covered)
		return BLOCKED;
	t->from = t->memory.maybe;
	if (t->from == GRAPH_NONE && t->fact->loads && t->place == WHY_PLACE_STACK &&
		t->fact->model.place[0].size >= 16)
		t->from = t->memory.call;
	return t->from == GRAPH_NONE ? 0 : BLOCKED;
}

static double no_alias(struct why_trial *t)
{
	t->from = t->memory.aliased;
	return t->from == GRAPH_NONE ? 0 : ALIASED;
}

/* ---- operations ---- */

static double no_divide(struct why_trial *t)
{
	t->from = t->insn;
	return t->fact->hazards & HAZARD_DIVIDES ? INFINITY : 0;
}

/* Of a kind of slow operations: the instruction itself, or one beside it. */
static double slow_here(struct why_trial *t, unsigned hazards)
{
	uint32_t beside = t->memory.slow;

	t->from = t->insn;
	if (t->fact->hazards & hazards)
		return INFINITY;
	if (beside == GRAPH_NONE || !(why_fact_of(t->work, beside)->hazards & hazards))
		return 0;
	t->from = beside;
	return INFINITY;
}

static double no_lock(struct why_trial *t)
{
	return slow_here(t, HAZARD_LOCKED);
}

static double no_fence(struct why_trial *t)
{
	return slow_here(t, HAZARD_SERIALISING | HAZARD_PAUSES);
}

static double no_float(struct why_trial *t)
{
	t->from = t->insn;
	return t->fact->hazards & HAZARD_FLOAT ? ASSIST : 0;
}

static double too_short(struct why_trial *t)
{
	return t->stall < ASSIST / 16 ? 0 : INFINITY;
}

static double no_call(struct why_trial *t)
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

static double no_conflict(struct why_trial *t)
{
	t->from = t->memory.last_store;
	return t->fact->loads && t->memory.far_stores ? INFINITY : 0;
}

static double seldom_clears(struct why_trial *t)
{
	(void)t;
	return CLEAR / 1000.0;
}

/* ---- instructions ---- */

static double not_missed(struct why_trial *t)
{
	t->from = t->front.branch;
	return t->front.missed;
}

/* Whether it touches memory that need not be in a near cache. */
static bool goes_far(const struct why_trial *t)
{
	return (t->fact->loads || t->fact->stores) && t->place != WHY_PLACE_STACK &&
	       t->place != WHY_PLACE_FIXED;
}

static double as_foreseen(struct why_trial *t)
{
	return goes_far(t) ? LIKELY_HIGH * t->front.likely : INFINITY;
}

/* An instruction that is not in the first cache; what hardly ever runs is in none. */
static double code_miss(const struct why_trial *t)
{
	if (cycles_between(t) > FORGOTTEN)
		return MEMORY;
	return t->work->machine->hot_lines < NEAR_LINES ? CODE_MISS : CODE_FAR;
}

/*
 * Misses of code show where nothing else can be to blame, too; and what is more than the others can
 * have cost is theirs. Where excursions saw how often the line is gone, each of these costs what it
 * does on the chip; else each time that control comes from another line what that costs here.
 */
static double as_elsewhere(struct why_trial *t)
{
	double cost = t->front.leads ? t->work->other_line : t->work->next_line;
	double rest = goes_far(t) ? 0 : t->stall - t->front.missed;

	if (cycles_between(t) > FORGOTTEN || !(goes_far(t) || t->front.missed > 0))
		return INFINITY;
	if (t->front.watched)
		cost = t->front.gone_likely *
		       (why_line_cost(t->work) + fmin(1, t->front.likely / REFILL) * code_miss(t));
	else
		cost *= t->front.fresh_line;
	return fmax(2 * cost, rest);
}

/* The call itself takes some cycles, which show where it leads. */
static double less_the_call(struct why_trial *t)
{
	return t->front.entered > 0 ? fmax(0, t->stall - t->front.entered * CALL) : INFINITY;
}

static double same_line(struct why_trial *t)
{
	t->from = t->insn;
	return t->front.fresh_line > 0.01 ? t->front.fresh_line * code_miss(t) : 0;
}

static double same_page(struct why_trial *t)
{
	t->from = t->insn;
	return t->front.fresh_page > 0.01 ? t->front.fresh_page * WALK : 0;
}

static uint64_t code_lines(const struct why_trial *t)
{
	uint64_t lines = t->work->machine->code_lines;

	return lines ? lines : WHY_CODE_LINES;
}

static double lines_fit(struct why_trial *t)
{
	uint64_t lines = t->work->machine->hot_lines;

	return lines && lines <= code_lines(t) ? 0 : INFINITY;
}

static double pages_fit(struct why_trial *t)
{
	uint64_t pages = t->work->machine->hot_pages;

	return pages && pages < CODE_PAGES * 3 / 4 ? 0 : INFINITY;
}

static double not_gone(struct why_trial *t)
{
	return cycles_between(t) > FORGOTTEN ? INFINITY : t->front.gone_most * code_miss(t);
}

static double lines_back_soon(struct why_trial *t)
{
	if (cycles_between(t) < PER_LINE * (double)code_lines(t))
		return 0;
	return t->front.lines > code_lines(t) ? INFINITY : t->front.fresh * code_miss(t);
}

static double pages_back_soon(struct why_trial *t)
{
	if (cycles_between(t) < PER_PAGE * CODE_PAGES)
		return 0;
	return t->front.pages > CODE_PAGES ? INFINITY : t->front.fresh * WALK;
}

static double with_a_line(struct why_trial *t)
{
	return lines_fit(t) > 0 ? t->stall / 12 : INFINITY;
}

static double nothing_to_fetch(struct why_trial *t)
{
	uint64_t lines = t->work->machine->hot_lines;
	bool decoded = lines && lines <= DECODED_LINES;
	double bound = fmin(BUBBLE + t->front.entered * CALL, t->left);

	t->from = t->insn;
	if (t->fact->hazards & HAZARD_LENGTH && !decoded)
		bound += SLOW_DECODE;
	if (t->fact->model.flags & MODEL_MICROCODED)
		bound += t->fact->model.uops / 2.0;
	return bound;
}

/* ---- events ---- */

/* Samples of the event here and where they may have slipped to, with what chance may hide. */
static double by_event(const struct why_trial *t, enum culprit c, double cost)
{
	const struct why_work *w = t->work;
	size_t number = w->machine->event[c].number;
	double seen = 0;

	if (number >= w->evidence->nevents)
		return INFINITY;
	for (uint32_t i = t->insn; i < w->flow->ninsns && i <= t->insn + 2; i++)
		if (w->evidence->events[number])
			seen += (double)w->evidence->events[number][i];
	seen += 2 * sqrt(seen) + 3;
	return seen * w->machine->event[c].period / t->count * cost;
}

static double data_misses(struct why_trial *t)
{
	return by_event(t, CULPRIT_DCACHE, MEMORY);
}

static double data_walks(struct why_trial *t)
{
	return by_event(t, CULPRIT_DTLB, WALK);
}

static double code_misses(struct why_trial *t)
{
	return by_event(t, CULPRIT_ICACHE, MEMORY);
}

static double code_walks(struct why_trial *t)
{
	return by_event(t, CULPRIT_ITLB, WALK);
}

static double branch_misses(struct why_trial *t)
{
	return by_event(t, CULPRIT_MISPREDICT, REFILL);
}

/* ---- the machine ---- */

static double measured_steal(struct why_trial *t)
{
	return t->cpi * t->work->machine->steal;
}

#define RULE(name, culprit, fn, why)               \
	{                                          \
		{name, why, CULPRIT_##culprit}, fn \
	}

#define COUNTED "where the event itself was sampled, each can have cost so much and no more"

static const struct why_law rules[] = {
	RULE("no load", DCACHE, no_load, "the instruction loads nothing"),
	RULE("just stored", DCACHE, just_stored,
		"what it loads was stored a moment ago and is in the buffer or the cache"),
	RULE("same line", DCACHE, same_data_line,
		"an older load was in the same line, or in the one before with the probability "
		"that the distance says"),
	RULE("same place", DCACHE, same_place,
		"the address stays the same in the loop: it misses when the loop is entered, at "
		"most"),
	RULE("near place", DCACHE, near_place,
		"stack and variables are used all the time: misses are few, and end in a near "
		"cache"),
	RULE("small table", DCACHE, small_table,
		"the table of a jump is used again before enough else can be to displace it"),
	RULE("stays", DCACHE, data_stays,
		"excursions found what it loads in the cache but for a share"),
	RULE("less the branch", DCACHE, less_the_branch,
		"what a predictor would get wrong before it is no miss: neither the refill, nor "
		"the latency that shows where nothing older is under way"),
	RULE("no access", DTLB, no_access, "the instruction does not touch memory"),
	RULE("just stored", DTLB, just_stored, "the page was used a moment ago"),
	RULE("known page", DTLB, known_page,
		"stack and variables are on pages in use, strides leave a page as often as they "
		"are long"),
	RULE("with a miss", DTLB, with_a_miss,
		"pages that the TLB does not hold are more data than the cache holds: a miss of "
		"the cache comes with it, and takes longer"),
	RULE("no branch before", MISPREDICT, not_missed,
		"the pipeline is refilled between a branch and its target, and a branch that "
		"nearly always goes the same way is seldom mispredicted; behind that only the "
		"instruction's own latency can show"),
	RULE("as foreseen", MISPREDICT, as_foreseen,
		"where memory may as well be to blame, the branch is blamed for what a predictor "
		"would get wrong in the walks that were seen"),
	RULE("same line", ICACHE, same_line,
		"it is in the same line as all that often comes before it"),
	RULE("code fits", ICACHE, lines_fit, "all hot code fits into the first-level cache"),
	RULE("back soon", ICACHE, lines_back_soon,
		"it runs again before enough else can have run to displace it, but for the first "
		"time in a loop"),
	RULE("stays", ICACHE, not_gone,
		"as often as it comes back in the walks that were seen, or as excursions found it, "
		"it is still in the cache but for a share"),
	RULE("as elsewhere", ICACHE, as_elsewhere,
		"where memory may as well be to blame, the line costs what lines cost where it is "
		"not, or on this chip as often as excursions found it gone"),
	RULE("less the call", ICACHE, less_the_call, "the call that leads here takes some cycles"),
	RULE("less the call", ITLB, less_the_call, "the call that leads here takes some cycles"),
	RULE("less the call", MISPREDICT, less_the_call,
		"the call that leads here takes some cycles"),
	RULE("same page", ITLB, same_page,
		"it is in the same page as all that often comes before it"),
	RULE("pages fit", ITLB, pages_fit, "the TLB holds all pages of hot code"),
	RULE("back soon", ITLB, pages_back_soon,
		"it runs again before enough other pages can have been used, but for the first "
		"time in a loop"),
	RULE("with a line", ITLB, with_a_line,
		"code that needs more pages than the TLB holds misses the cache, which takes "
		"longer"),
	RULE("no store", STORE_BUFFER, no_store,
		"only a store waits for room in the buffer, and what enters the window with it"),
	RULE("loads first", STORE_BUFFER, loads_first,
		"a load holds up itself; what it brought, the store behind it finds in the cache"),
	RULE("stores hit", STORE_BUFFER, stores_hit,
		"stores to the stack, to variables and to lines just used leave the buffer at "
		"once"),
	RULE("less the branch", STORE_BUFFER, less_the_branch,
		"what a predictor would get wrong is no wait for the buffer"),
	RULE("no partial store", FORWARDING, no_partial_store,
		"no store before it overlaps what it loads without covering it, or may do so in an "
		"array there"),
	RULE("no alias", ALIAS, no_alias,
		"no store before it is a multiple of 4096 bytes away, as the code shows"),
	RULE("no division", DIVIDER, no_divide, "it neither divides nor takes a root"),
	RULE("no lock", LOCKED, no_lock, "neither it nor its neighbours are locked"),
	RULE("no fence", SERIALISING, no_fence,
		"neither it nor its neighbours wait for all before them"),
	RULE("no conflict", CLEAR, no_conflict,
		"no load that a store to an unknown address comes before"),
	RULE("seldom", CLEAR, seldom_clears, "predictors of conflicts learn: one in a thousand"),
	RULE("no arithmetic", ASSIST, no_float, "it does not compute with floating point"),
	RULE("too short", ASSIST, too_short,
		"an operation meets denormal numbers again and again, and each takes long"),
	RULE("no call", CALLEE, no_call, "nothing returns to behind it"),
	RULE("events", DCACHE, data_misses, COUNTED),
	RULE("events", DTLB, data_walks, COUNTED),
	RULE("events", ICACHE, code_misses, COUNTED),
	RULE("events", ITLB, code_walks, COUNTED),
	RULE("events", MISPREDICT, branch_misses, COUNTED),
	RULE("measured", STEAL, measured_steal, "the hypervisor took no more of the time"),
	/* After all others. */
	RULE("nothing to fetch", FRONTEND, nothing_to_fetch,
		"fetching in pieces costs a bubble, which shows where nothing else can be to "
		"blame; some prefixes and microcode cost more"),
};
#define RULES (sizeof rules / sizeof *rules)

const struct why_law *why_law(size_t i)
{
	return i < RULES ? &rules[i] : NULL;
}

const struct why_rule_words *why_rule(size_t i)
{
	return i < RULES ? &rules[i].words : NULL;
}
