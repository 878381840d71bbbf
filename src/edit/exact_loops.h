/*
 * Counters in registers. What is counted in an innermost loop that calls nobody, and that has a
 * register to spare, is added up there and put into memory where the loop is left: in a tight loop
 * each turn would otherwise wait for what the one before has stored.
 */
#ifndef CULPRIT_EDIT_EXACT_LOOPS_H
#define CULPRIT_EDIT_EXACT_LOOPS_H

#include "base/vec.h"
#include "edit/edit.h"
#include "edit/exact_model.h"
#include "edit/exact_turns.h"

#define EXACT_IN_MEMORY 0xff

/* What has to be done on an edge for a counter that is kept in a register. */
struct exact_hold {
	uint32_t edge;
	uint32_t link;    /* whose counter it is */
	uint8_t variable; /* v0, v1, ... */
	bool begins;      /* set to zero; else it is added to the counter */
	bool turns;       /* it is a register of the program's: taken from the counter, not set */
};
typedef VEC(struct exact_hold) exact_holds;

/*
 * By link, the variable that its counter is kept in or EXACT_IN_MEMORY; `out` is replaced. Counted
 * links must be chosen. `taken` says how often links were, or likely are.
 */
uint8_t *exact_hold_loops(struct edit *e, struct edit_function *f, const struct exact_function *m,
	const exact_places *places, const struct exact_alone *alone, const double *taken,
	exact_holds *out);

#endif
