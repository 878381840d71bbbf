#include "flow/expr.h"

#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"

enum { LONG = 40, FIRST_SLOTS = 1024 };

#define NO_SLOT UINT32_MAX

/* ---- the table ---- */

void exprs_init(struct exprs *x)
{
	*x = (struct exprs){.nslots = FIRST_SLOTS};
	x->slots = xmalloc(x->nslots * sizeof *x->slots);
	memset(x->slots, 0xff, x->nslots * sizeof *x->slots);
}

void exprs_deinit(struct exprs *x)
{
	vec_deinit(&x->list);
	free(x->slots);
	x->slots = NULL;
}

static uint32_t hash_of(const struct expr *e)
{
	uint64_t h =
		(e->value ^ (uint64_t)e->op << 56 ^ (uint64_t)e->width << 48) * 0x9e3779b97f4a7c15;

	h ^= ((uint64_t)e->a << 32 | e->b) * 0xff51afd7ed558ccd;
	h ^= h >> 29;
	return (uint32_t)(h * 0xc4ceb9fe1a85ec53 >> 32);
}

static bool is_same(const struct expr *a, const struct expr *b)
{
	return a->op == b->op && a->width == b->width && a->a == b->a && a->b == b->b &&
	       a->value == b->value;
}

static void grow(struct exprs *x)
{
	free(x->slots);
	x->nslots *= 2;
	x->slots = xmalloc(x->nslots * sizeof *x->slots);
	memset(x->slots, 0xff, x->nslots * sizeof *x->slots);
	for (uint32_t i = 0; i < x->list.n; i++) {
		uint32_t at = hash_of(&x->list.p[i]) & (x->nslots - 1);
		while (x->slots[at] != NO_SLOT)
			at = (at + 1) & (x->nslots - 1);
		x->slots[at] = i;
	}
}

static bool is_low_mask(uint64_t mask)
{
	return !(mask & (mask + 1));
}

static uint32_t root_of(const struct exprs *x, const struct expr *e, uint32_t self)
{
	uint32_t inner = e->op == EXPR_AND && is_low_mask(e->value) ? e->a : self;
	const struct expr *i = inner == self ? e : &x->list.p[inner];

	return i->op == EXPR_OFFSET ? i->a : inner;
}

static uint32_t intern(struct exprs *x, struct expr e)
{
	uint32_t at = hash_of(&e) & (x->nslots - 1);

	for (; x->slots[at] != NO_SLOT; at = (at + 1) & (x->nslots - 1))
		if (is_same(&x->list.p[x->slots[at]], &e))
			return x->slots[at];
	x->slots[at] = (uint32_t)x->list.n;
	e.root = root_of(x, &e, (uint32_t)x->list.n);
	*vec_add(&x->list) = e;
	if (x->list.n * 2 > x->nslots)
		grow(x);
	return (uint32_t)x->list.n - 1;
}

static uint16_t above(const struct exprs *x, uint32_t a)
{
	return (uint16_t)(x->list.p[a].size + 1);
}

bool expr_is_long(const struct exprs *x, uint32_t e)
{
	return x->list.p[e].size > LONG;
}

uint64_t expr_mask(unsigned width)
{
	return width >= 8 ? UINT64_MAX : ((uint64_t)1 << (8 * width)) - 1;
}

/* ---- making ---- */

uint32_t expr_const(struct exprs *x, uint64_t value)
{
	return intern(x, (struct expr){.op = EXPR_CONST, .value = value, .max = value});
}

uint32_t expr_variable(struct exprs *x, uint32_t place, uint32_t part)
{
	return intern(
		x, (struct expr){.op = EXPR_VARIABLE, .a = place, .b = part, .max = UINT64_MAX});
}

/* Bits above a mask do not matter to a sum below it. */
static uint32_t without_masks(struct exprs *x, uint32_t a, uint64_t mask)
{
	for (;;) {
		struct expr e = x->list.p[a];
		uint32_t inner = e.op == EXPR_OFFSET ? e.a : a;
		if (x->list.p[inner].op != EXPR_AND || (x->list.p[inner].value & mask) != mask)
			return a;
		inner = x->list.p[inner].a;
		a = e.op == EXPR_OFFSET ? expr_offset(x, inner, e.value) : inner;
	}
}

uint32_t expr_and(struct exprs *x, uint32_t a, uint64_t mask)
{
	if (is_low_mask(mask))
		a = without_masks(x, a, mask);
	struct expr e = x->list.p[a];
	if (e.op == EXPR_CONST)
		return expr_const(x, e.value & mask);
	if (e.op == EXPR_AND)
		return expr_and(x, e.a, e.value & mask);
	if (is_low_mask(mask) && e.max <= mask)
		return a;
	if (!mask)
		return expr_const(x, 0);
	return intern(x, (struct expr){.op = EXPR_AND,
				 .a = a,
				 .value = mask,
				 .size = above(x, a),
				 .max = e.max < mask ? e.max : mask});
}

uint32_t expr_narrow(struct exprs *x, uint32_t a, unsigned width)
{
	return width >= 8 ? a : expr_and(x, a, expr_mask(width));
}

static uint64_t sign_extend(uint64_t value, unsigned width)
{
	unsigned shift = 64 - 8 * width;

	return (uint64_t)((int64_t)(value << shift) >> shift);
}

uint32_t expr_signed(struct exprs *x, uint32_t a, unsigned width)
{
	if (width >= 8)
		return a;
	struct expr e = x->list.p[a];
	if (e.op == EXPR_CONST)
		return expr_const(x, sign_extend(e.value, width));
	if (e.max <= expr_mask(width) >> 1)
		return a;
	return intern(x, (struct expr){.op = EXPR_SIGNED,
				 .width = (uint8_t)width,
				 .a = a,
				 .size = above(x, a),
				 .max = UINT64_MAX});
}

static uint64_t add_max(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* An offset stands outermost, so that equal addresses look the same. */
uint32_t expr_offset(struct exprs *x, uint32_t a, uint64_t value)
{
	struct expr e = x->list.p[a];

	if (e.op == EXPR_CONST)
		return expr_const(x, e.value + value);
	if (e.op == EXPR_OFFSET) {
		a = e.a;
		value += e.value;
		e = x->list.p[a];
	}
	if (!value)
		return a;
	return intern(x, (struct expr){.op = EXPR_OFFSET,
				 .a = a,
				 .value = value,
				 .size = above(x, a),
				 .max = add_max(e.max, value)});
}

uint32_t expr_sum(struct exprs *x, uint32_t a, uint32_t b)
{
	struct expr ea = x->list.p[a], eb = x->list.p[b];

	if (ea.op == EXPR_CONST)
		return expr_offset(x, b, ea.value);
	if (eb.op == EXPR_CONST)
		return expr_offset(x, a, eb.value);
	if (ea.op == EXPR_OFFSET)
		return expr_offset(x, expr_sum(x, ea.a, b), ea.value);
	if (eb.op == EXPR_OFFSET)
		return expr_offset(x, expr_sum(x, a, eb.a), eb.value);
	if (a == b)
		return expr_left(x, a, 1);
	return intern(x, (struct expr){.op = EXPR_SUM,
				 .a = a < b ? a : b,
				 .b = a < b ? b : a,
				 .size = (uint16_t)(ea.size + eb.size + 1),
				 .max = add_max(ea.max, eb.max)});
}

uint32_t expr_left(struct exprs *x, uint32_t a, unsigned count)
{
	struct expr e = x->list.p[a];

	count &= 63;
	if (!count)
		return a;
	if (e.op == EXPR_CONST)
		return expr_const(x, e.value << count);
	if (e.op == EXPR_LEFT && e.value + count < 64)
		return expr_left(x, e.a, (unsigned)e.value + count);
	return intern(x, (struct expr){.op = EXPR_LEFT,
				 .a = a,
				 .value = count,
				 .size = above(x, a),
				 .max = e.max > UINT64_MAX >> count ? UINT64_MAX : e.max << count});
}

uint32_t expr_right(struct exprs *x, uint32_t a, unsigned count)
{
	struct expr e = x->list.p[a];

	count &= 63;
	if (!count)
		return a;
	if (e.op == EXPR_CONST)
		return expr_const(x, e.value >> count);
	return intern(x, (struct expr){.op = EXPR_RIGHT,
				 .a = a,
				 .value = count,
				 .size = above(x, a),
				 .max = e.max >> count});
}

uint32_t expr_times(struct exprs *x, uint32_t a, uint64_t factor)
{
	struct expr e = x->list.p[a];

	if (factor && !(factor & (factor - 1)))
		return expr_left(x, a, (unsigned)__builtin_ctzll(factor));
	if (e.op == EXPR_CONST || !factor)
		return expr_const(x, e.value * factor);
	return intern(x, (struct expr){.op = EXPR_TIMES,
				 .a = a,
				 .value = factor,
				 .size = above(x, a),
				 .max = e.max > UINT64_MAX / factor ? UINT64_MAX : e.max * factor});
}

uint32_t expr_load(struct exprs *x, uint32_t a, unsigned width)
{
	return intern(x, (struct expr){.op = EXPR_LOAD,
				 .width = (uint8_t)width,
				 .a = a,
				 .size = above(x, a),
				 .max = expr_mask(width)});
}

uint32_t expr_with(struct exprs *x, uint32_t e, uint32_t a)
{
	struct expr expr = x->list.p[e];

	switch ((enum expr_op)expr.op) {
	case EXPR_AND:
		return expr_and(x, a, expr.value);
	case EXPR_SIGNED:
		return expr_signed(x, a, expr.width);
	case EXPR_OFFSET:
		return expr_offset(x, a, expr.value);
	case EXPR_LEFT:
		return expr_left(x, a, (unsigned)expr.value);
	case EXPR_RIGHT:
		return expr_right(x, a, (unsigned)expr.value);
	case EXPR_TIMES:
		return expr_times(x, a, expr.value);
	case EXPR_LOAD:
		return expr_load(x, a, expr.width);
	default:
		return e;
	}
}

/* ---- bounds ---- */

static struct bounds meet(struct bounds a, struct bounds b)
{
	struct bounds m = {a.min > b.min ? a.min : b.min, a.max < b.max ? a.max : b.max};

	return m.min <= m.max ? m : a; /* nothing gets here */
}

static struct bounds add_bounds(struct bounds a, struct bounds b)
{
	if (a.min == a.max && (int64_t)a.min < 0) /* a constant that is subtracted */
		return b.min >= -a.min ? (struct bounds){b.min + a.min, b.max + a.min}
				       : (struct bounds){0, UINT64_MAX};
	if (a.max + b.max < a.max)
		return (struct bounds){0, UINT64_MAX};
	return (struct bounds){a.min + b.min, a.max + b.max};
}

static struct bounds shift_left(struct bounds a, unsigned count)
{
	if (a.max > UINT64_MAX >> count)
		return (struct bounds){0, UINT64_MAX};
	return (struct bounds){a.min << count, a.max << count};
}

static struct bounds structural(
	const struct exprs *x, const struct fact *facts, uint32_t n, const struct expr *e)
{
	struct bounds a, all = {0, e->max};

	switch ((enum expr_op)e->op) {
	case EXPR_CONST:
		return (struct bounds){e->value, e->value};
	case EXPR_VARIABLE:
	case EXPR_LOAD:
		return all;
	case EXPR_AND:
		a = expr_bounds(x, facts, n, e->a);
		if (is_low_mask(e->value) && a.max <= e->value)
			return a;
		return (struct bounds){0, a.max < e->value ? a.max : e->value};
	case EXPR_SIGNED:
		a = expr_bounds(x, facts, n, e->a);
		return a.max <= expr_mask(e->width) >> 1 ? a : all;
	case EXPR_SUM:
		return add_bounds(expr_bounds(x, facts, n, e->a), expr_bounds(x, facts, n, e->b));
	case EXPR_OFFSET:
		return add_bounds(
			(struct bounds){e->value, e->value}, expr_bounds(x, facts, n, e->a));
	case EXPR_LEFT:
		return shift_left(expr_bounds(x, facts, n, e->a), (unsigned)e->value);
	case EXPR_RIGHT:
		a = expr_bounds(x, facts, n, e->a);
		return (struct bounds){a.min >> e->value, a.max >> e->value};
	case EXPR_TIMES:
		a = expr_bounds(x, facts, n, e->a);
		if (a.max > UINT64_MAX / e->value)
			return all;
		return (struct bounds){a.min * e->value, a.max * e->value};
	}
	return all;
}

/* What is added to the root, under the mask if there is one. */
static uint64_t offset_of(const struct exprs *x, const struct expr *e)
{
	const struct expr *i = e->op == EXPR_AND ? &x->list.p[e->a] : e;

	return i->op == EXPR_OFFSET ? i->value : 0;
}

/*
 * What a fact says about (value & mask), where it is about the same value under the same mask, a
 * wider one or none, and perhaps with something added.
 */
static struct bounds related(
	const struct exprs *x, const struct fact *f, const struct expr *e, const struct expr *about)
{
	uint64_t mask = e->op == EXPR_AND ? e->value : UINT64_MAX;
	uint64_t other_mask = about->op == EXPR_AND ? about->value : UINT64_MAX;
	struct bounds all = {0, UINT64_MAX};

	if (f->max > mask || !is_low_mask(mask) || !is_low_mask(other_mask) || other_mask < mask)
		return all;
	uint64_t ahead = (offset_of(x, about) - offset_of(x, e)) & mask;
	if (f->min >= ahead)
		return (struct bounds){f->min - ahead, f->max - ahead};
	if (f->max >= ahead)
		return all;
	return (struct bounds){f->min - ahead + mask + 1, f->max - ahead + mask + 1};
}

struct bounds expr_bounds(const struct exprs *x, const struct fact *facts, uint32_t n, uint32_t e)
{
	const struct expr *expr = &x->list.p[e];
	struct bounds b = structural(x, facts, n, expr);

	if (expr->op == EXPR_CONST)
		return b;
	for (uint32_t i = 0; i < n; i++) {
		if (facts[i].root != expr->root)
			continue;
		if (facts[i].expr == e)
			b = meet(b, (struct bounds){facts[i].min, facts[i].max});
		else
			b = meet(b, related(x, &facts[i], expr, &x->list.p[facts[i].expr]));
	}
	return b;
}

/* ---- values ---- */

bool expr_closed(const struct exprs *x, uint32_t e, uint32_t index)
{
	const struct expr *expr = &x->list.p[e];

	if (e == index || expr->op == EXPR_CONST)
		return true;
	if (expr->op == EXPR_VARIABLE)
		return false;
	return expr_closed(x, expr->a, index) &&
	       (expr->op != EXPR_SUM || expr_closed(x, expr->b, index));
}

bool expr_value(const struct exprs *x, uint32_t e, uint32_t index, uint64_t value,
	expr_reader *read, void *arg, uint64_t *out)
{
	const struct expr *expr = &x->list.p[e];
	uint64_t a, b = 0;

	if (e == index || expr->op == EXPR_CONST) {
		*out = e == index ? value : expr->value;
		return true;
	}
	if (expr->op == EXPR_VARIABLE || !expr_value(x, expr->a, index, value, read, arg, &a) ||
		(expr->op == EXPR_SUM && !expr_value(x, expr->b, index, value, read, arg, &b)))
		return false;
	switch ((enum expr_op)expr->op) {
	case EXPR_AND:
		*out = a & expr->value;
		return true;
	case EXPR_SIGNED:
		*out = sign_extend(a, expr->width);
		return true;
	case EXPR_SUM:
		*out = a + b;
		return true;
	case EXPR_OFFSET:
		*out = a + expr->value;
		return true;
	case EXPR_LEFT:
		*out = a << expr->value;
		return true;
	case EXPR_RIGHT:
		*out = a >> expr->value;
		return true;
	case EXPR_TIMES:
		*out = a * expr->value;
		return true;
	case EXPR_LOAD:
		*out = 0;
		return read && read(arg, a, out, expr->width) == 0;
	default:
		return false;
	}
}
