/*
 * What the interpreter did, as plug-ins see it: struct interp is private to culprit and changes,
 * struct culprit_step (values/plugin.h) does not.
 *
 * A struct steps is one burst. It is fed after each instruction, and needs to have seen the state
 * before it; the first step of a burst whose beginning nobody showed has no registers. Nothing
 * allocates, all of it is async-signal-safe.
 */
#ifndef CULPRIT_VALUES_STEP_H
#define CULPRIT_VALUES_STEP_H

#include "isa/interp.h"
#include "values/plugin.h"

#include <stdbool.h>

#define STEPS_MAX 512

struct steps {
	size_t n;
	bool seen; /* the state before the next step is this: */
	uint64_t registers[16], xmm[16][2];
	uint32_t unknown, known_xmm;
	uint64_t position; /* instructions so far, those without room too */
	struct culprit_step step[STEPS_MAX];
};

void steps_begin(struct steps *s);                        /* a new burst */
void steps_look(struct steps *s, const struct interp *m); /* the state that it begins with */

/* An instruction was interpreted: m->effect and m->insn tell which. NULL when there is no room. */
struct culprit_step *steps_add(struct steps *s, const struct interp *m);

/*
 * Fills in the return addresses. Calls inside the burst tell those of the procedures they enter; a
 * return tells that of the procedure it leaves, for all that came before it there.
 */
void steps_contexts(struct steps *s);

#endif
