#include "calls/separate_internal.h"

#include "base/hmap.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- places ---- */

static uint32_t hash_of(const struct place *p)
{
	uint64_t h = ((uint64_t)p->function << 32 | p->stack) * 0x9e3779b97f4a7c15u;

	h = (h ^ h >> 29 ^ (uint64_t)p->height) * 0xbf58476d1ce4e5b9u;
	return (uint32_t)(h >> 32);
}

static bool is_same(const struct place *a, const struct place *b)
{
	return a->function == b->function && a->stack == b->stack && a->height == b->height;
}

/* The number of the place that is like this one; made when it is not there. */
static uint32_t find_place(struct separation *s, struct place *like)
{
	uint32_t i, number;

	like->hash = hash_of(like);
	for (i = like->hash & s->mask; s->slots[i].place; i = (i + 1) & s->mask)
		if (s->slots[i].hash == like->hash &&
			is_same(&s->places[s->slots[i].place - 1], like))
			return s->slots[i].place - 1;
	number = s->free != SEPARATE_NONE ? s->free : s->nplaces++;
	if (s->free != SEPARATE_NONE)
		s->free = s->places[number].first;
	s->places[number] = *like;
	s->slots[i] = (struct slot){like->hash, number + 1};
	return number;
}

/* What lies behind moves up, so that every search still ends at a free slot. */
static void free_place(struct separation *s, uint32_t number)
{
	uint32_t i = s->places[number].hash & s->mask, next;

	while (s->slots[i].place != number + 1)
		i = (i + 1) & s->mask;
	for (next = (i + 1) & s->mask; s->slots[next].place; next = (next + 1) & s->mask) {
		uint32_t home = s->slots[next].hash & s->mask;

		if (((next - home) & s->mask) < ((next - i) & s->mask))
			continue;
		s->slots[i] = s->slots[next];
		i = next;
	}
	s->slots[i] = (struct slot){0, 0};
	s->places[number].first = s->free;
	s->free = number;
}

/* Takes what is alone at a place out of the sums, or puts it in. */
static void account(struct separation *s, const struct place *p, int sign)
{
	if (!p->alone)
		return;
	s->samples += sign * p->weight;
	s->paths += (uint32_t)(sign * (int)p->n);
}

static bool is_alone(const struct separation *s, const struct place *p)
{
	uint32_t path = s->spots[p->first].path;

	for (uint32_t i = p->first; i != SEPARATE_NONE; i = s->spots[i].next)
		if (s->spots[i].path != path)
			return false;
	return true;
}

static void put(struct separation *s, uint32_t number)
{
	struct spot *spot = &s->spots[number];
	struct place like = {.function = 2 * spot->function + spot->copy,
		.stack = spot->stack,
		.height = spot->height + spot->extra};
	struct place *p;

	spot->place = find_place(s, &like);
	p = &s->places[spot->place];
	account(s, p, -1);
	p->alone = !p->n || (p->alone && s->spots[p->first].path == spot->path);
	spot->next = p->n ? p->first : SEPARATE_NONE;
	spot->last = SEPARATE_NONE;
	if (p->n)
		s->spots[p->first].last = number;
	p->first = number;
	p->n++;
	p->weight += spot->weight;
	account(s, p, 1);
}

static void take(struct separation *s, uint32_t number)
{
	struct spot *spot = &s->spots[number];
	struct place *p = &s->places[spot->place];

	account(s, p, -1);
	if (spot->next != SEPARATE_NONE)
		s->spots[spot->next].last = spot->last;
	if (spot->last != SEPARATE_NONE)
		s->spots[spot->last].next = spot->next;
	else
		p->first = spot->next;
	p->weight -= spot->weight;
	if (!--p->n) {
		free_place(s, spot->place);
		return;
	}
	p->alone = p->alone || is_alone(s, p);
	account(s, p, 1);
}

/* ---- setting up ---- */

struct order {
	uint32_t *first, *next; /* contexts by caller: those without one last */
};

static void list_callees(const struct separate_input *in, struct order *o)
{
	o->first = xmalloc((in->n + 1) * sizeof *o->first);
	o->next = xmalloc((in->n + 1) * sizeof *o->next);
	memset(o->first, 0xff, (in->n + 1) * sizeof *o->first);
	for (uint32_t i = in->n; i-- > 0;) {
		uint32_t caller = in->contexts[i].caller;
		uint32_t *first = &o->first[caller == SEPARATE_NONE ? in->n : caller];

		o->next[i] = *first;
		*first = i;
	}
}

static void fill_spot(struct separation *s, uint32_t number, uint32_t context, uint32_t caller)
{
	const struct separate_context *c = &s->in->contexts[context];

	s->spots[number] = (struct spot){.path = c->path,
		.function = c->function,
		.caller = caller,
		.stack = c->stack,
		.number = context,
		.call = SEPARATE_NONE,
		.height = c->height,
		.weight = c->weight};
	s->all += c->weight;
}

/* In preorder: one that has no more callees ends where the next begins. */
static void order_spots(struct separation *s)
{
	const struct separate_input *in = s->in;
	struct order o;
	uint32_t at = SEPARATE_NONE, n = 0, next;

	list_callees(in, &o);
	next = o.first[in->n];
	while (true) {
		if (next != SEPARATE_NONE) {
			fill_spot(s, n, next, at);
			at = n++;
			next = o.first[s->spots[at].number];
		} else if (at != SEPARATE_NONE) {
			s->spots[at].end = n;
			next = o.next[s->spots[at].number];
			at = s->spots[at].caller;
		} else {
			break;
		}
	}
	free(o.first);
	free(o.next);
}

/* Compared as bytes. */
struct pair {
	uint32_t caller, callee;
	uint32_t call, pad;
};

static void find_calls(struct separation *s)
{
	const struct separate_input *in = s->in;
	struct hmap pairs;

	hmap_init(&pairs, sizeof(struct pair), offsetof(struct pair, call));
	for (uint32_t i = 0; i < in->ncalls; i++) {
		struct pair key = {in->calls[i].caller, in->calls[i].callee, 0, 0};
		struct pair *p = hmap_put(&pairs, &key, NULL);

		p->call = i;
	}
	for (uint32_t i = 0; i < in->n; i++) {
		struct spot *spot = &s->spots[i];
		const struct pair *p;

		if (spot->caller == SEPARATE_NONE)
			continue;
		p = hmap_get(&pairs,
			&(struct pair){s->spots[spot->caller].function, spot->function, 0, 0});
		if (p)
			spot->call = p->call;
	}
	hmap_deinit(&pairs);
}

static uint32_t group_of(const struct spot *s, bool by_call)
{
	return by_call ? s->call : s->function;
}

static void list_occurrences(
	const struct separation *s, bool by_call, uint32_t n, struct occurrences *o)
{
	_cleanup_free_ uint32_t *at = xcalloc(n + 1, sizeof *at);

	o->first = xcalloc(n + 1, sizeof *o->first);
	o->list = xcalloc(s->in->n + 1, sizeof *o->list);
	for (uint32_t i = 0; i < s->in->n; i++)
		if (group_of(&s->spots[i], by_call) != SEPARATE_NONE)
			o->first[group_of(&s->spots[i], by_call) + 1]++;
	for (uint32_t k = 0; k < n; k++)
		at[k + 1] = o->first[k + 1] += o->first[k];
	for (uint32_t i = 0; i < s->in->n; i++)
		if (group_of(&s->spots[i], by_call) != SEPARATE_NONE)
			o->list[at[group_of(&s->spots[i], by_call)]++] = i;
}

void separation_init(struct separation *s, const struct separate_input *in)
{
	*s = (struct separation){.in = in,
		.spots = xcalloc(in->n + 1, sizeof *s->spots),
		.pad = xcalloc(in->functions + 1, sizeof *s->pad),
		.pad_copy = xcalloc(in->functions + 1, sizeof *s->pad_copy),
		.wrap = xcalloc(in->ncalls + 1, sizeof *s->wrap),
		.cloned = xcalloc(in->ncalls + 1, sizeof *s->cloned),
		.limit = INT64_MAX};
	s->mask = 15;
	while (s->mask < 3 * in->n)
		s->mask = 2 * s->mask + 1;
	s->slots = xcalloc((size_t)s->mask + 1, sizeof *s->slots);
	s->places = xcalloc(in->n + 1, sizeof *s->places);
	s->free = SEPARATE_NONE;
	order_spots(s);
	find_calls(s);
	list_occurrences(s, false, in->functions, &s->of_function);
	list_occurrences(s, true, in->ncalls, &s->of_call);
	for (uint32_t i = 0; i < in->n; i++)
		put(s, i);
}

void separation_deinit(struct separation *s)
{
	free(s->spots);
	free(s->pad);
	free(s->pad_copy);
	free(s->wrap);
	free(s->cloned);
	free(s->of_function.first);
	free(s->of_function.list);
	free(s->of_call.first);
	free(s->of_call.list);
	free(s->slots);
	free(s->places);
}

/* ---- changing ---- */

/*
 * Some spots' frames change by so many bytes: all that they call move, and they themselves if the
 * change is before their frame.
 */
struct shift {
	int64_t by;
	bool self;   /* they move, too */
	bool turns;  /* they go to the other copy */
	bool chosen; /* only those of one copy: */
	bool copy;
};

static void move(struct separation *s, uint32_t number, int64_t by)
{
	struct spot *spot = &s->spots[number];

	s->looks++;
	if (!by && !spot->turns)
		return;
	take(s, number);
	spot->extra += by;
	spot->copy ^= spot->turns;
	spot->turns = false;
	put(s, number);
	if (spot->height + spot->extra > s->limit)
		s->too_deep = true;
}

static void shift(
	struct separation *s, const struct occurrences *of, uint32_t k, const struct shift *how)
{
	uint32_t end = 0;
	int64_t sum = 0;

	for (uint32_t i = of->first[k]; i < of->first[k + 1]; i++) {
		struct spot *spot = &s->spots[of->list[i]];

		if (how->chosen && spot->copy != how->copy)
			continue;
		spot->turns = how->turns;
		spot[!how->self].moves += how->by; /* one behind the last is there */
		s->spots[spot->end].moves -= how->by;
	}
	for (uint32_t i = of->first[k]; i < of->first[k + 1]; i++) {
		uint32_t at = of->list[i];

		if (at < end)
			continue; /* inside the one before */
		end = s->spots[at].end;
		for (; at < end; at++) {
			sum += s->spots[at].moves;
			s->spots[at].moves = 0;
			move(s, at, sum);
		}
		s->spots[end].moves += sum; /* 0 then, unless the next begins here */
		sum = 0;
	}
}

uint32_t separation_get(const struct separation *s, const struct knob *k)
{
	if (k->method == SEPARATE_PAD)
		return s->pad[k->number];
	if (k->method == SEPARATE_WRAP)
		return s->wrap[k->number];
	return k->own ? s->pad_copy[k->number] : s->cloned[k->number];
}

void separation_set(struct separation *s, const struct knob *k)
{
	int64_t by = (int64_t)k->value - separation_get(s, k);
	bool frame = k->method == SEPARATE_PAD || k->own;
	uint32_t callee = frame ? k->number : s->in->calls[k->number].callee;
	struct shift how = {.by = by, .chosen = frame, .copy = k->own};

	s->too_deep = false;
	if (!by)
		return;
	if (k->method == SEPARATE_PAD)
		s->pad[k->number] = k->value;
	else if (k->own)
		s->pad_copy[k->number] = k->value;
	else if (k->method == SEPARATE_WRAP)
		s->wrap[k->number] = k->value;
	else
		s->cloned[k->number] = k->value;
	how.self = k->method == SEPARATE_WRAP;
	if (k->method == SEPARATE_CLONE && !k->own) {
		how.turns = true;
		how.by = by * ((int64_t)s->pad_copy[callee] - s->pad[callee]);
	}
	shift(s, frame ? &s->of_function : &s->of_call, k->number, &how);
}

/* ---- what it is worth ---- */

double separation_score(const struct separation *s)
{
	return (s->all > 0 ? s->samples / s->all : 0) +
	       (double)s->paths / (s->in->n ? s->in->n : 1);
}

void separation_state(const struct separation *s, struct separate_state *out)
{
	double extra = 0;

	*out = (struct separate_state){.samples = s->all > 0 ? s->samples / s->all : 1,
		.paths = s->in->n ? (double)s->paths / s->in->n : 1};
	for (uint32_t i = 0; i < s->in->n; i++) {
		const struct spot *spot = &s->spots[i];

		if (spot->height + spot->extra > out->deepest)
			out->deepest = spot->height + spot->extra;
		extra += spot->weight * (double)spot->extra;
	}
	out->mean = s->all > 0 ? extra / s->all : 0;
}
