/*
 * Loads and the stores before them, as far as the code shows: addresses are compared as they are
 * written, with registers followed over constants that are added to them.
 */
#include "analyze/why_internal.h"

#include "base/mem.h"

#define WAY    128 /* instructions that are looked back */
#define STORES 48

/* A general register as a sum: something unknown, by number, and a constant. */
struct symbol {
	uint32_t unknown;
	uint64_t plus;
};

struct address {
	struct symbol base;
	uint32_t index;
	uint8_t scale, segment;
	uint16_t size;
};

struct stored {
	struct address at;
	uint32_t insn;
};

struct tracker {
	struct symbol reg[16];
	uint32_t unknowns;
	struct stored stored[STORES];
	uint32_t nstored;
};

static struct address address_of(
	const struct tracker *t, const struct model_place *p, uint64_t position)
{
	struct address a = {.segment = p->segment, .size = p->size};

	a.base.plus = (uint64_t)p->displacement;
	if (p->base < 16) {
		a.base.unknown = t->reg[p->base].unknown;
		a.base.plus += t->reg[p->base].plus;
	} else {
		a.base.plus += position;
	}
	if (p->index < 16) {
		a.index = t->reg[p->index].unknown;
		a.scale = p->scale;
		a.base.plus += t->reg[p->index].plus * p->scale;
	}
	return a;
}

static bool comparable(const struct address *a, const struct address *b)
{
	return a->base.unknown == b->base.unknown && a->index == b->index && a->scale == b->scale &&
	       a->segment == b->segment;
}

/* What registers hold after the instruction. */
static void follow(struct tracker *t, const struct model_insn *in)
{
	for (unsigned i = 0; i < in->nwrites; i++)
		if (in->write[i].reg < 16 && in->write[i].reg != in->moved)
			t->reg[in->write[i].reg] = (struct symbol){++t->unknowns, 0};
	if (in->moved < 16)
		t->reg[in->moved].plus += (uint64_t)in->by;
}

/* push and call store at the new top, pop loads from the old one. */
static bool moves_first(const struct model_insn *in)
{
	return in->moved < 16 && in->by < 0 && in->nplaces && in->place[0].stores;
}

static void forget_at_call(struct tracker *t)
{
	for (unsigned i = 0; i < 16; i++)
		if (!(REGS_KEPT >> i & 1))
			t->reg[i] = (struct symbol){++t->unknowns, 0};
}

static void track(struct why_work *w, struct tracker *t, uint32_t insn)
{
	const struct why_fact *f = why_fact_of(w, insn);
	bool call = f->model.kind == INSN_CALL || f->model.kind == INSN_CALL_INDIRECT;
	bool first = moves_first(&f->model) && !call;

	if (first)
		follow(t, &f->model);
	for (unsigned i = 0; i < f->model.nplaces && !call; i++)
		if (f->model.place[i].stores)
			t->stored[t->nstored++ % STORES] = (struct stored){
				address_of(t, &f->model.place[i], w->flow->insns[insn].address),
				insn};
	if (!first && !call)
		follow(t, &f->model);
	if (call)
		forget_at_call(t);
}

/* Whether it stores to a place that need not be in a near cache. */
static bool stores_far(struct why_work *w, uint32_t insn)
{
	const struct model_insn *in = &why_fact_of(w, insn)->model;
	enum why_place place = WHY_PLACE_STACK;
	int64_t stride;

	if (in->kind == INSN_CALL || in->kind == INSN_CALL_INDIRECT)
		return false;
	for (unsigned k = 0; k < in->nplaces; k++)
		if (in->place[k].stores)
			place = why_place_of(w, insn, &in->place[k], &stride);
	return place != WHY_PLACE_STACK && place != WHY_PLACE_FIXED;
}

static void count_stores(struct why_work *w, const struct tracker *t, struct why_memory *out)
{
	uint32_t n = t->nstored < STORES ? t->nstored : STORES;

	out->stores = n;
	for (uint32_t i = 1; i <= n; i++) {
		uint32_t insn = t->stored[(t->nstored - i) % STORES].insn;

		if (stores_far(w, insn) && !out->far_stores++)
			out->last_store = insn;
	}
}

/* Instructions enter the window by the width of the core, all or none. */
static uint32_t store_beside(struct why_work *w, uint32_t insn)
{
	const struct flow_block *b = &w->flow->blocks[w->block_of[insn]];
	unsigned left = model_limits(w->machine->model)->width;

	for (uint32_t i = insn; i < b->first + b->count; i++) {
		unsigned uops = why_fact_of(w, i)->model.uops;

		if (i > insn && stores_far(w, i))
			return i;
		if (uops >= left)
			break;
		left -= uops;
	}
	return GRAPH_NONE;
}

static void compare(const struct tracker *t, const struct address *a, struct why_memory *out)
{
	uint32_t n = t->nstored < STORES ? t->nstored : STORES;

	for (uint32_t i = 1; i <= n; i++) {
		const struct stored *s = &t->stored[(t->nstored - i) % STORES];
		uint64_t apart = a->base.plus - s->at.base.plus;
		bool overlaps = apart < s->at.size || -apart < a->size;

		if (!comparable(a, &s->at))
			continue;
		if (overlaps && out->stored_by == GRAPH_NONE) {
			out->stored_by = s->insn;
			out->covered = apart < s->at.size && apart + a->size <= s->at.size;
		}
		if (!overlaps && out->aliased == GRAPH_NONE &&
			((apart & 4095) < s->at.size || (-apart & 4095) < a->size))
			out->aliased = s->insn;
	}
}

void why_memory_at(struct why_work *w, uint32_t insn, struct why_memory *out)
{
	const struct why_fact *f = why_fact_of(w, insn);
	struct tracker t = {0};
	uint32_t way[WAY];
	size_t n = why_way_to(w, insn, way, WAY);

	*out = (struct why_memory){.stored_by = GRAPH_NONE,
		.aliased = GRAPH_NONE,
		.last_store = GRAPH_NONE,
		.next_store = store_beside(w, insn)};
	for (unsigned i = 0; i < 16; i++)
		t.reg[i].unknown = ++t.unknowns;
	for (size_t i = 0; i < n; i++)
		track(w, &t, way[i]);
	count_stores(w, &t, out);
	for (unsigned i = 0; i < f->model.nplaces; i++)
		if (f->model.place[i].loads) {
			struct address a =
				address_of(&t, &f->model.place[i], w->flow->insns[insn].address);

			compare(&t, &a, out);
		}
}
