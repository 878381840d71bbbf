/*
 * Where paths part and meet: bounds that a branch gives, and what two states have in common.
 */
#include <string.h>

#include "flow/state.h"

/* As in state.c: variables that stand for what differs where paths meet. */
enum { PART_SLOT = 32, PART_INDEX = 1 << 30 };
#define PLACE_MEET(block) (2 * (block) + 2)

/* ---- facts ---- */

static void drop_fact(struct state *s, uint32_t i)
{
	memmove(&s->facts[i], &s->facts[i + 1], (s->nfacts - i - 1) * sizeof *s->facts);
	s->nfacts--;
}

static void put_fact(struct machine *m, struct state *s, uint32_t e, struct bounds b)
{
	const struct expr *expr = expr_get(&m->exprs, e);

	for (uint32_t i = s->nfacts; i-- > 0;)
		if (s->facts[i].expr == e)
			drop_fact(s, i);
	if (b.min > b.max || expr->op == EXPR_CONST || (!b.min && b.max >= expr->max))
		return;
	if (s->nfacts == STATE_FACTS)
		drop_fact(s, 0);
	s->facts[s->nfacts++] = (struct fact){e, expr->root, b.min, b.max};
}

static struct bounds bounds_in(struct machine *m, const struct state *s, uint32_t e)
{
	return expr_bounds(&m->exprs, s->facts, s->nfacts, e);
}

/* ---- branches ---- */

enum condition {
	BELOW = 2,
	ABOVE_EQUAL = 3,
	EQUAL = 4,
	NOT_EQUAL = 5,
	BELOW_EQUAL = 6,
	ABOVE = 7,
	NEGATIVE = 8,
	NOT_NEGATIVE = 9,
	LESS = 12,
	GREATER_EQUAL = 13,
	LESS_EQUAL = 14,
	GREATER = 15,
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Bounds become empty on paths that cannot be; put_fact ignores those. */
static void refine(enum condition c, struct bounds *a, struct bounds *b)
{
	struct bounds before = *a;

	switch (c) {
	case BELOW:
		a->max = smaller(a->max, b->max ? b->max - 1 : 0);
		b->min = larger(b->min, before.min < UINT64_MAX ? before.min + 1 : before.min);
		return;
	case ABOVE_EQUAL:
		a->min = larger(a->min, b->min);
		b->max = smaller(b->max, before.max);
		return;
	case BELOW_EQUAL:
		a->max = smaller(a->max, b->max);
		b->min = larger(b->min, before.min);
		return;
	case ABOVE:
		a->min = larger(a->min, b->min < UINT64_MAX ? b->min + 1 : b->min);
		b->max = smaller(b->max, before.max ? before.max - 1 : 0);
		return;
	case EQUAL:
		a->min = b->min = larger(a->min, b->min);
		a->max = b->max = smaller(a->max, b->max);
		return;
	case NOT_EQUAL:
		if (b->min != b->max)
			return;
		a->min += a->min == b->min && a->min < a->max;
		a->max -= a->max == b->min && a->max > a->min;
		return;
	default:
		return;
	}
}

/* The unsigned comparison that a signed one is where both sides are not negative. */
static enum condition without_sign(enum condition c)
{
	static const enum condition same[] = {BELOW, ABOVE_EQUAL, BELOW_EQUAL, ABOVE};

	return c >= LESS ? same[c - LESS] : c;
}

static void refine_signed(enum condition c, uint64_t half, struct bounds *a, struct bounds *b)
{
	if (a->max <= half && b->max <= half) {
		refine(without_sign(c), a, b);
	} else if (b->max <= half && (c == GREATER || c == GREATER_EQUAL)) {
		refine(without_sign(c), a, b);
		a->max = smaller(a->max, half);
	} else if (a->max <= half && (c == LESS || c == LESS_EQUAL)) {
		refine(without_sign(c), a, b);
		b->max = smaller(b->max, half);
	}
}

/* A value tested with itself is compared with 0; no carry, no overflow. */
static enum condition tested(enum condition c)
{
	switch (c) {
	case NEGATIVE:
		return LESS;
	case NOT_NEGATIVE:
		return GREATER_EQUAL;
	case BELOW_EQUAL:
		return EQUAL;
	case ABOVE:
		return NOT_EQUAL;
	default:
		return c;
	}
}

void state_branch(struct machine *m, struct state *s, uint8_t condition, bool taken)
{
	const struct comparison *f = &s->flags;
	enum condition c = taken ? condition : condition ^ 1u;
	struct bounds zero = {0, 0};

	if (condition == FORM_NO_CONDITION || f->op == FORM_OTHER)
		return;
	struct bounds a = bounds_in(m, s, f->a);
	struct bounds b = f->op == FORM_TEST ? zero : bounds_in(m, s, f->b);
	uint64_t half = expr_mask(f->width) >> 1;
	if (f->op == FORM_TEST)
		c = tested(c);
	if (c == LESS && f->op == FORM_TEST)
		a.min = larger(a.min, half + 1);
	else if (c >= LESS)
		refine_signed(c, half, &a, &b);
	else
		refine(c, &a, &b);
	put_fact(m, s, f->a, a);
	if (f->op == FORM_COMPARE)
		put_fact(m, s, f->b, b);
}

/* ---- meeting ---- */

/* One variable stands for both values, as wide as the wider of them can be. */
static uint32_t merge_values(
	struct machine *m, uint32_t a, uint32_t b, uint32_t place, uint32_t part)
{
	struct exprs *x = &m->exprs;
	uint64_t max = larger(expr_get(x, a)->max, expr_get(x, b)->max);
	unsigned width = max <= UINT8_MAX ? 1 : max <= UINT16_MAX ? 2 : max <= UINT32_MAX ? 4 : 8;

	return expr_narrow(x, expr_variable(x, PLACE_MEET(place), part), width);
}

/*
 * Compilers may share one jump among several that read the same table by different indices. Then
 * only the index differs: *a and *b become that of each, and path the operations around it.
 */
enum { PATH_MAX = 12 };

static uint32_t find_indices(
	const struct exprs *x, uint32_t *a, uint32_t *b, uint32_t path[static PATH_MAX])
{
	uint32_t n = 0, i = *a, j = *b;
	bool loads = false;

	while (i != j && n < PATH_MAX) {
		const struct expr *p = expr_get(x, i), *q = expr_get(x, j);
		if (p->op != q->op || p->width != q->width || p->value != q->value ||
			p->op == EXPR_CONST || p->op == EXPR_VARIABLE || p->op == EXPR_SUM)
			break;
		path[n++] = i;
		loads |= p->op == EXPR_LOAD;
		i = p->a;
		j = q->a;
	}
	if (!loads)
		return 0;
	*a = i;
	*b = j;
	return n;
}

struct meeting {
	struct machine *m;
	struct state *s; /* becomes what both have in common */
	const struct state *before, *t;
	uint32_t place;
	bool widen;
};

static void merge_fact(const struct meeting *w, uint32_t e, uint32_t in_s, uint32_t in_t)
{
	struct bounds b = bounds_in(w->m, w->t, in_t), hull = {0, UINT64_MAX};

	if (b.min || b.max < expr_get(&w->m->exprs, e)->max) {
		struct bounds a = bounds_in(w->m, w->before, in_s);
		if (!w->widen || (b.min >= a.min && b.max <= a.max))
			hull = (struct bounds){smaller(a.min, b.min), larger(a.max, b.max)};
	}
	put_fact(w->m, w->s, e, hull);
}

/* The expression for what is a in s and b in t, with what is known of it. */
static uint32_t merge(const struct meeting *w, uint32_t a, uint32_t b, uint32_t part)
{
	struct exprs *x = &w->m->exprs;
	uint32_t path[PATH_MAX], n;

	if (a == b)
		return a;
	n = find_indices(x, &a, &b, path);
	uint32_t e = merge_values(w->m, a, b, w->place, n ? part | PART_INDEX : part);
	merge_fact(w, e, a, b);
	while (n-- > 0)
		e = expr_with(x, path[n], e);
	return e;
}

static void meet_facts(const struct meeting *w)
{
	w->s->nfacts = 0;
	for (uint32_t i = 0; i < w->before->nfacts; i++) {
		uint32_t e = w->before->facts[i].expr;
		merge_fact(w, e, e, e);
	}
}

static void meet_registers(const struct meeting *w)
{
	for (uint32_t r = 0; r < 16; r++) {
		uint32_t a = w->before->reg[r], b = w->t->reg[r];
		w->s->reg[r] = merge(w, a, b, r);
	}
	w->s->weak |= w->t->weak;
}

static const struct slot *find_slot(const struct state *s, uint32_t address, unsigned width)
{
	for (uint32_t i = s->nslots; i-- > 0;)
		if (s->slots[i].address == address && s->slots[i].width == width)
			return &s->slots[i];
	return NULL;
}

/* Each is there once, and most often where the other state has it. */
static const struct slot *find_same(const struct state *s, const struct slot *slot, uint32_t near)
{
	if (near < s->nslots && s->slots[near].address == slot->address &&
		s->slots[near].width == slot->width)
		return &s->slots[near];
	return find_slot(s, slot->address, slot->width);
}

/* How far an address lies from a value that both are relative to; false when they are not. */
static bool distance(const struct exprs *x, uint32_t value, uint32_t address, uint64_t *out)
{
	const struct expr *v = expr_get(x, value), *a = expr_get(x, address);
	uint32_t from = v->op == EXPR_OFFSET ? v->a : value;
	uint32_t to = a->op == EXPR_OFFSET ? a->a : address;

	*out = (a->op == EXPR_OFFSET ? a->value : 0) - (v->op == EXPR_OFFSET ? v->value : 0);
	return from == to;
}

/*
 * A place that a register points to may be known on both sides although the register differs: what
 * was compared through it then holds for where it points now.
 */
static const struct slot *find_pointed(const struct meeting *w, uint32_t *address, unsigned width)
{
	struct exprs *x = &w->m->exprs;

	for (unsigned r = 0; r < 16; r++) {
		uint32_t a = w->before->reg[r], b = w->t->reg[r];
		uint64_t away;
		if (a == b || !distance(x, a, *address, &away))
			continue;
		const struct slot *slot = find_slot(w->t, expr_offset(x, b, away), width);
		if (!slot)
			continue;
		*address = expr_offset(x, w->s->reg[r], away);
		return slot;
	}
	return NULL;
}

static void meet_slots(const struct meeting *w)
{
	struct state *s = w->s;

	s->nslots = 0;
	for (uint32_t i = 0; i < w->before->nslots; i++) {
		struct slot slot = w->before->slots[i];
		const struct slot *other = find_same(w->t, &slot, i);
		if (!other)
			other = find_pointed(w, &slot.address, slot.width);
		if (!other)
			continue;
		slot.value = merge(w, slot.value, other->value, PART_SLOT + slot.address);
		slot.weak |= other->weak;
		s->slots[s->nslots++] = slot;
	}
}

bool state_equal(const struct state *a, const struct state *b)
{
	if (memcmp(a->reg, b->reg, sizeof a->reg) || a->weak != b->weak ||
		a->flags.op != b->flags.op || a->flags.a != b->flags.a ||
		a->flags.b != b->flags.b || a->nslots != b->nslots || a->nfacts != b->nfacts)
		return false;
	for (uint32_t i = 0; i < a->nslots; i++)
		if (a->slots[i].value != b->slots[i].value ||
			a->slots[i].weak != b->slots[i].weak ||
			a->slots[i].address != b->slots[i].address)
			return false;
	for (uint32_t i = 0; i < a->nfacts; i++)
		if (a->facts[i].expr != b->facts[i].expr || a->facts[i].min != b->facts[i].min ||
			a->facts[i].max != b->facts[i].max)
			return false;
	return true;
}

bool state_join(
	struct machine *m, struct state *s, const struct state *t, uint32_t place, bool widen)
{
	struct state before = *s;
	struct meeting w = {m, s, &before, t, place, widen};

	meet_facts(&w);
	meet_registers(&w);
	meet_slots(&w);
	if (s->flags.op != t->flags.op || s->flags.width != t->flags.width ||
		s->flags.a != t->flags.a || s->flags.b != t->flags.b)
		s->flags = (struct comparison){.op = FORM_OTHER};
	return !state_equal(&before, s);
}
