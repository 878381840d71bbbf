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
 * Whether a loop has none inside (outer ones are left so seldom that a signal could lose much) and
 * calls nobody, and code can be put on all ways in and out, to run then and only then. Says by
 * block which are in it.
 */
bool exact_turns_alone(
	const struct edit_function *f, const struct loops *l, uint32_t loop, bool *blocks);

struct exact_turn {
	uint32_t block;
	int32_t step;
	uint8_t reg;
	double price; /* how often its loop is entered and left, for each time that the block runs
		       */
};
typedef VEC(struct exact_turn) exact_turns;

/* One for a block at most; `often` is by edge. */
void exact_find_turns(
	struct edit *e, const struct edit_function *f, const double *often, exact_turns *out);

#endif
