/*
 * The graph of a function as it is counted: its flow, with one node for all that is outside, with
 * nodes for jump tables that several jumps share and for ways out of blocks that are loops, and
 * with calls taken apart that come back several times or never. Says for every link where in the
 * code it can be counted, and how often it is likely taken.
 */
#ifndef CULPRIT_EDIT_EXACT_MODEL_H
#define CULPRIT_EDIT_EXACT_MODEL_H

#include "base/vec.h"
#include "edit/edit.h"
#include "edit/exact_map.h"
#include "flow/loops.h"

enum exact_how {
	EXACT_NOWHERE, /* it cannot be counted */
	EXACT_AT_ENTRY,
	EXACT_ON_EDGE,
	EXACT_BEFORE, /* an instruction */
};

struct exact_place {
	enum exact_how how;
	uint32_t where;
	double weight; /* how often it runs and what counting costs there, roughly */
	double price;  /* the latter, by that of code in line */
	int32_t step;  /* not 0: each time, this register of a loop (exact_turns.h) gains so much */
	uint8_t reg;
};

/* What is known of all functions of an edit. */
struct exact_scene {
	struct edit *edit;
	struct edit_function **functions;
	size_t n;
	bool *never;      /* by function: a call of it does not come back (endings.h) */
	bool has_library; /* as the function below says; where nobody asks who comes back, false */
};

/* Whether it brings functions of the C library along, which may do anything. */
bool exact_has_library(const struct exact_scene *s);

/*
 * `out` and `places` are used again; places are by link. The loops are those of the flow, from its
 * entry; those alone (exact_turns.h) count by their own registers where they can, unless NULL.
 */
struct exact_alone;
typedef VEC(struct exact_place) exact_places;
void exact_model(const struct exact_scene *s, struct edit_function *f, struct exact_function *out,
	exact_places *places, const struct loops *loops, const struct exact_alone *alone);

#endif
