/*
 * What registers hold, as expressions: equal expressions have the same number, so that a bound that
 * was found for one register holds for every other that has the same value.
 *
 * A variable is a value that nothing is known about, named by where it comes from. Numbers are good
 * until exprs_deinit.
 */
#ifndef CULPRIT_FLOW_EXPR_H
#define CULPRIT_FLOW_EXPR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

enum expr_op {
	EXPR_CONST,
	EXPR_VARIABLE,
	EXPR_AND,    /* a & value */
	EXPR_SIGNED, /* the lowest `width` bytes of a, sign-extended */
	EXPR_SUM,    /* a + b */
	EXPR_OFFSET, /* a + value */
	EXPR_LEFT,   /* a << value */
	EXPR_RIGHT,  /* a >> value, logical */
	EXPR_TIMES,  /* a * value */
	EXPR_LOAD,   /* `width` bytes of read-only memory at a, zero-extended */
};

struct expr {
	uint8_t op, width;
	uint16_t size; /* how many operations it has */
	uint32_t a, b;
	uint64_t value;
	uint64_t max;  /* it is never more, whatever its variables are */
	uint32_t root; /* without a mask and then an offset around it */
};

struct exprs {
	VEC(struct expr) list;
	uint32_t *slots;
	uint32_t nslots;
};

/* A value lies between min and max, unsigned. */
struct fact {
	uint32_t expr, root; /* root: that of the expression */
	uint64_t min, max;
};

struct bounds {
	uint64_t min, max;
};

void exprs_init(struct exprs *x);
void exprs_deinit(struct exprs *x);

uint32_t expr_const(struct exprs *x, uint64_t value);
uint32_t expr_variable(struct exprs *x, uint32_t place, uint32_t part);
uint32_t expr_and(struct exprs *x, uint32_t a, uint64_t mask);
uint32_t expr_narrow(struct exprs *x, uint32_t a, unsigned width); /* the lowest bytes */
uint32_t expr_signed(struct exprs *x, uint32_t a, unsigned width);
uint32_t expr_sum(struct exprs *x, uint32_t a, uint32_t b);
uint32_t expr_offset(struct exprs *x, uint32_t a, uint64_t value);
uint32_t expr_times(struct exprs *x, uint32_t a, uint64_t factor);
uint32_t expr_left(struct exprs *x, uint32_t a, unsigned count);
uint32_t expr_right(struct exprs *x, uint32_t a, unsigned count);
uint32_t expr_load(struct exprs *x, uint32_t a, unsigned width);

/* The same operation on something else, for those with one operand. */
uint32_t expr_with(struct exprs *x, uint32_t e, uint32_t a);

static inline const struct expr *expr_get(const struct exprs *x, uint32_t e)
{
	return &x->list.p[e];
}

static inline bool expr_is_const(const struct exprs *x, uint32_t e)
{
	return expr_get(x, e)->op == EXPR_CONST;
}

/* Too long to be worth keeping: a variable should stand for it. */
bool expr_is_long(const struct exprs *x, uint32_t e);

/* The lowest `width` bytes set; 8 and more: all. */
uint64_t expr_mask(unsigned width);

/* What an expression lies between, given facts. */
struct bounds expr_bounds(const struct exprs *x, const struct fact *facts, uint32_t n, uint32_t e);

/*
 * The value of e when the part `index` has a value; false when it depends on anything else, or
 * memory cannot be read.
 */
typedef int expr_reader(void *arg, uint64_t address, void *out, size_t size);
bool expr_value(const struct exprs *x, uint32_t e, uint32_t index, uint64_t value,
	expr_reader *read, void *arg, uint64_t *out);

/* Whether e depends on nothing but `index`. */
bool expr_closed(const struct exprs *x, uint32_t e, uint32_t index);

#endif
