/*
 * Loops that count themselves. Where an innermost loop calls nobody, and a register gains the same
 * number each time that some block runs and is left alone otherwise, that register tells how often
 * the block ran: what it has gained between the ways in and the ways out. Nothing is counted while
 * the loop turns.
 */
#ifndef CULPRIT_EDIT_EXACT_TURNS_H
#define CULPRIT_EDIT_EXACT_TURNS_H

#include "base/vec.h"
#include "edit/edit.h"
#include "flow/loops.h"

/*
 * Loops that have none inside (outer ones are left so seldom that a signal could lose much) and
 * call nobody, with code to be put on all ways in and out, to run then and only then.
 */
struct exact_loop {
	uint32_t number; /* of the loop */
	uint32_t n;
	const uint32_t *blocks;
};
struct exact_alone {
	const struct flow *flow;
	const struct loops *loops;
	VEC(struct exact_loop) list;
	uint32_t *blocks; /* of all of them */
};
void exact_alone_find(
	struct exact_alone *a, const struct edit_function *f, const struct loops *loops);
void exact_alone_deinit(struct exact_alone *a);

/* *e is each edge into or out of a loop; says which. */
#define exact_each_way(e, a, loop) \
	for (struct exact_way e = {.at = 0}; exact_way_next(&e, a, loop);)
struct exact_way {
	uint32_t at; /* in the loop's blocks, and of their edges */
	uint32_t of;
	uint32_t edge;
	bool in;
};
bool exact_way_next(struct exact_way *w, const struct exact_alone *a, const struct exact_loop *l);

struct exact_turn {
	uint32_t block;
	int32_t step;
	uint8_t reg;
	double price; /* how often its loop is entered and left, for each time that the block runs
		       */
};
typedef VEC(struct exact_turn) exact_turns;

/* One for a block at most; `often` is by edge. */
void exact_find_turns(struct edit *e, struct edit_function *f, const struct exact_alone *a,
	const double *often, exact_turns *out);

#endif
