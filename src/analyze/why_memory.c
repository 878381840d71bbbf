/*
 * Loads and the stores before them, as far as the code shows: addresses are compared as they are
 * written, with registers followed over constants that are added to them.
 */
#include "analyze/why_internal.h"

#include "base/mem.h"

#define WAY        128 /* instructions that are looked back */
#define ACCESSES   96
#define AFTER_CALL 8 /* instructions that a callee's stores are still in the buffer */

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

struct access {
	struct address at;
	uint32_t insn;
	bool loads, stores;
};

/* What a way says of a place. */
struct sight {
	uint32_t apart; /* bytes that it reaches beyond what an older load had; 64: too far */
	bool stored;    /* some of it was stored */
};

struct tracker {
	struct symbol reg[16];
	uint32_t unknowns;
	struct access done[ACCESSES];
	uint32_t ndone;
	uint32_t call, called, steps; /* the last call, when it was, and how far we are */
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
		t->done[t->ndone++ % ACCESSES] = (struct access){
			address_of(t, &f->model.place[i], w->flow->insns[insn].address), insn,
			f->model.place[i].loads, f->model.place[i].stores};
	if (!first && !call)
		follow(t, &f->model);
	if (call) {
		forget_at_call(t);
		t->call = insn;
		t->called = t->steps;
	}
	t->steps++;
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

static const struct access *back(const struct tracker *t, uint32_t i)
{
	return &t->done[(t->ndone - i) % ACCESSES];
}

static uint32_t kept(const struct tracker *t)
{
	return t->ndone < ACCESSES ? t->ndone : ACCESSES;
}

static void count_stores(struct why_work *w, const struct tracker *t, struct why_memory *out)
{
	for (uint32_t i = 1; i <= kept(t); i++)
		if (back(t, i)->stores && stores_far(w, back(t, i)->insn) && !out->far_stores++)
			out->last_store = back(t, i)->insn;
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

/* Samples around what waits for all others are smeared over its neighbours. */
static uint32_t slow_beside(struct why_work *w, uint32_t insn, const uint32_t *way, size_t n)
{
	const struct flow_block *b = &w->flow->blocks[w->block_of[insn]];
	const unsigned slow = HAZARD_LOCKED | HAZARD_SERIALISING;

	for (uint32_t i = insn + 1; i <= insn + 2 && i < b->first + b->count; i++)
		if (why_fact_of(w, i)->hazards & slow)
			return i;
	for (size_t i = n; i > 0 && i + 2 > n; i--)
		if (why_fact_of(w, way[i - 1])->hazards & slow)
			return way[i - 1];
	return GRAPH_NONE;
}

#define LINE 64

/* Bytes that reach beyond what the older one had: as many in 64 are in another line. */
static void note_touched(const struct access *old, const struct address *a, struct sight *out)
{
	int64_t start = (int64_t)(a->base.plus - old->at.base.plus);
	int64_t end = start + a->size - old->at.size;
	uint64_t beyond;

	if (start <= -LINE || end >= LINE)
		return;
	beyond = (uint64_t)(start < 0 ? -start : 0) + (uint64_t)(end > 0 ? end : 0);
	if (beyond < out->apart)
		out->apart = (uint32_t)beyond;
}

static bool overlaps(const struct address *a, const struct address *b)
{
	uint64_t apart = a->base.plus - b->base.plus;

	return apart < b->size || -apart < a->size;
}

static void compare(const struct access *old, const struct address *a, struct why_memory *out)
{
	uint64_t apart = a->base.plus - old->at.base.plus;
	bool hit = overlaps(a, &old->at);

	if (hit && out->stored_by == GRAPH_NONE) {
		out->stored_by = old->insn;
		out->covered = apart < old->at.size && apart + a->size <= old->at.size;
	}
	if (!hit && out->aliased == GRAPH_NONE &&
		((apart & 4095) < old->at.size || (-apart & 4095) < a->size))
		out->aliased = old->insn;
}

#define SOON 24 /* accesses after which a store has left the buffer, usually */

/* An element of an array that is loaded in larger pieces, as far as one can see. */
static bool may_hit(const struct access *old, const struct address *a)
{
	return old->stores && old->at.base.unknown == a->base.unknown && old->at.index &&
	       old->at.index != a->index && old->at.size < a->size && !a->segment;
}

static void look_back(const struct tracker *t, const struct address *a, struct why_memory *out)
{
	for (uint32_t i = 1; i <= kept(t); i++) {
		const struct access *old = back(t, i);

		if (i <= SOON && out->maybe == GRAPH_NONE && may_hit(old, a))
			out->maybe = old->insn;
		if (old->stores && comparable(a, &old->at))
			compare(old, a, out);
	}
}

static void look_around(
	const struct tracker *t, const struct address *a, bool loads, struct sight *out)
{
	for (uint32_t i = 1; i <= kept(t); i++) {
		const struct access *old = back(t, i);

		if (!comparable(a, &old->at))
			continue;
		if (old->loads) /* a store does not wait until the line is there */
			note_touched(old, a, out);
		out->stored |= old->stores && loads && overlaps(a, &old->at);
	}
}

static void follow_way(struct why_work *w, const uint32_t *way, size_t n, struct tracker *t)
{
	*t = (struct tracker){.call = GRAPH_NONE};
	for (unsigned i = 0; i < 16; i++)
		t->reg[i].unknown = ++t->unknowns;
	for (size_t i = 0; i < n; i++)
		track(w, t, way[i]);
}

/* ---- all ways ---- */

struct survey {
	struct why_work *work;
	uint32_t insn;
	double apart;
};

static void survey_way(void *arg, const uint32_t *way, size_t n, double share)
{
	struct survey *s = arg;
	const struct model_insn *in = &why_fact_of(s->work, s->insn)->model;
	struct sight sight = {.apart = LINE};
	struct tracker t;

	follow_way(s->work, way, n, &t);
	for (unsigned i = 0; i < in->nplaces; i++) {
		struct address a =
			address_of(&t, &in->place[i], s->work->flow->insns[s->insn].address);

		look_around(&t, &a, in->place[i].loads, &sight);
	}
	s->apart += sight.stored ? 0 : share * sight.apart / LINE;
}

void why_memory_at(struct why_work *w, uint32_t insn, struct why_memory *out)
{
	const struct why_fact *f = why_fact_of(w, insn);
	struct survey survey = {.work = w, .insn = insn};
	struct tracker t;
	uint32_t way[WAY];
	size_t n = why_way_to(w, insn, way, WAY);

	*out = (struct why_memory){.stored_by = GRAPH_NONE,
		.maybe = GRAPH_NONE,
		.aliased = GRAPH_NONE,
		.call = GRAPH_NONE,
		.last_store = GRAPH_NONE,
		.next_store = store_beside(w, insn)};
	follow_way(w, way, n, &t);
	out->slow = slow_beside(w, insn, way, n);
	count_stores(w, &t, out);
	if (t.call != GRAPH_NONE && t.steps - t.called <= AFTER_CALL)
		out->call = t.call;
	for (unsigned i = 0; i < f->model.nplaces; i++) {
		struct address a = address_of(&t, &f->model.place[i], w->flow->insns[insn].address);

		if (f->model.place[i].loads)
			look_back(&t, &a, out);
	}
	if (f->model.nplaces)
		why_ways_to(w, insn, WAY, survey_way, &survey);
	out->apart = f->model.nplaces ? survey.apart : 1;
}
