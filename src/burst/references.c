/*
 * The payload of data references. Recording each where it happens would move the cursor each time;
 * instead one point speaks for as many as it can: for those whose registers are the same there as
 * where they happen, and one word for all that differ by a constant, as fields of one object do.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "burst/burst_internal.h"
#include "burst/payload.h"
#include "edit/edit.h"
#include "flow/liveness.h"
#include "isa/form.h"
#include "rt/burst.h"
#include "store/traces.h"

#define SPAN 64 /* instructions between a reference and its point, at most */

/* References that one point speaks for, and between which instructions it may stand. */
struct group {
	struct point point;
	uint32_t low, high;
};

struct recorder {
	struct burst *burst;
	struct edit_function *function;
	const struct liveness *lives;
	uint32_t first, end; /* of the block */
	uint16_t *writes;    /* by instruction of the block: registers */
	struct group group;
	uint32_t room; /* words that were asked for and are left */
};

static uint16_t registers_of(const struct reference *r)
{
	return (uint16_t)((r->base != REG_NONE ? 1u << r->base : 0) |
			  (r->index != REG_NONE ? 1u << r->index : 0));
}

static void find_writes(struct recorder *r)
{
	for (uint32_t i = r->first; i < r->end; i++) {
		struct form form;

		r->writes[i - r->first] =
			edit_form(r->burst->edit, r->function, i, &form) ? REGS_ALL : form.writes;
	}
}

/* Registers that are dead may be in use by what else is inserted. */
static bool are_alive(const struct recorder *r, uint32_t insn, uint16_t regs)
{
	uint32_t live = liveness_before(r->lives, insn) | 1u << REG_RSP;

	return (regs & ~live) == 0;
}

/* Before which instructions its registers are what they are where it happens. */
static void find_range(const struct recorder *r, uint32_t insn, const struct reference *ref,
	uint32_t *low, uint32_t *high)
{
	uint16_t regs = registers_of(ref);

	*low = *high = insn;
	while (*low > r->first && insn - *low < SPAN && !(r->writes[*low - 1 - r->first] & regs))
		--*low;
	while (*high + 1 < r->end && *high - insn < SPAN && !(r->writes[*high - r->first] & regs) &&
		are_alive(r, *high + 1, regs))
		++*high;
}

/* The place where most registers are dead; two are enough. */
static uint32_t best_place(const struct recorder *r)
{
	const struct group *g = &r->group;
	uint32_t best = g->high;
	uint16_t held = 1u << REG_RSP | 1u << REG_RBP;
	int most = -1;

	for (unsigned i = 0; i < g->point.words; i++)
		held |= registers_of(&g->point.word[i]);
	for (uint32_t at = g->high; most < 2; at--) {
		uint32_t live = liveness_before(r->lives, at) | held;
		int dead = __builtin_popcount(REGS_ALL & ~live);

		if (dead > most) {
			best = at;
			most = dead;
		}
		if (at == g->low)
			break;
	}
	return best;
}

static void end_group(struct recorder *r)
{
	uint32_t words = 1 + r->group.point.words, at;

	if (!r->group.point.events.n)
		return;
	at = best_place(r);
	if (words > r->room) {
		point_ask_room(r->burst, r->function, r->room ? at : r->first, at);
		r->room = BURST_BLOCK;
	}
	point_put(r->burst, r->function, at, &r->group.point);
	r->room -= words;
}

static bool is_akin(const struct reference *a, const struct reference *b)
{
	return a->base == b->base && a->index == b->index && a->relative == b->relative &&
	       (a->index == REG_NONE || a->scale == b->scale);
}

/* The word that tells its address, a new one if need be; BURST_WORDS: there is no room. */
static unsigned word_for(struct point *p, const struct reference *ref)
{
	unsigned i = 0;

	while (i < p->words && !is_akin(&p->word[i], ref))
		i++;
	if (i == p->words && i < BURST_WORDS)
		p->word[p->words++] = *ref;
	return i;
}

static bool needs_word(const struct reference *r)
{
	return r->relative || r->base != REG_NONE || r->index != REG_NONE;
}

static bool join_group(struct recorder *r, uint32_t low, uint32_t high, const struct reference *ref,
	unsigned *word)
{
	struct group *g = &r->group;

	if (!g->point.events.n) {
		g->low = low;
		g->high = high;
	}
	if (low > g->high || high < g->low)
		return false;
	*word = needs_word(ref) ? word_for(&g->point, ref) : BURST_NO_WORD;
	if (*word == BURST_WORDS)
		return false;
	g->low = low > g->low ? low : g->low;
	g->high = high < g->high ? high : g->high;
	return true;
}

static void record(struct recorder *r, uint32_t insn, const struct reference *ref)
{
	uint32_t low, high;
	unsigned word;
	uint64_t base;

	find_range(r, insn, ref, &low, &high);
	if (!join_group(r, low, high, ref, &word)) {
		end_group(r);
		join_group(r, low, high, ref, &word);
	}
	base = word == BURST_NO_WORD ? 0 : r->group.point.word[word].displacement;
	*vec_add(&r->group.point.events) =
		(struct burst_event){.at = r->function->flow->insns[insn].address,
			.kind = ref->loads && ref->stores ? TRACE_CHANGE
				: ref->stores             ? TRACE_STORE
							  : TRACE_LOAD,
			.word = (uint8_t)word,
			.thread = ref->thread,
			.by = (int64_t)(ref->displacement - base),
			.size = ref->size};
}

static void record_block(struct recorder *r, const struct flow_block *block)
{
	struct reference list[REFERENCES_MAX];

	r->first = block->first;
	r->end = block->first + block->count;
	r->room = 0;
	find_writes(r);
	for (uint32_t i = r->first; i < r->end; i++) {
		unsigned n = edit_references(r->burst->edit, r->function, i, list);

		for (unsigned k = 0; k < n; k++)
			record(r, i, &list[k]);
	}
	end_group(r);
}

static void put(struct burst *b, struct edit_function *twin, const bool *boring)
{
	const struct flow *flow = twin->flow;
	struct recorder r = {.burst = b,
		.function = twin,
		.lives = edit_liveness(b->edit, twin),
		.writes = xcalloc(flow->ninsns + 1, sizeof *r.writes)};

	for (uint32_t i = 0; i < flow->nblocks; i++)
		if (!boring[i] && !(flow->blocks[i].marks & FLOW_PADDING))
			record_block(&r, &flow->blocks[i]);
	vec_deinit(&r.group.point.events);
	free(r.writes);
}

const struct payload payload_references = {.name = "refs", .words = "references", .put = put};
