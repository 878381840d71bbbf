/*
 * Where checks stand in code that exists twice (Hirzel and Chilimbi 2001, section 4): at entries
 * and loop back-edges, but for those that bound nothing.
 */
#ifndef CULPRIT_BURST_CHECKS_H
#define CULPRIT_BURST_CHECKS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "edit/edit.h"
#include "flow/loops.h"

enum checks_entries {
	CHECKS_ALL,       /* at all entries */
	CHECKS_NO_LEAVES, /* but those of procedures that call nobody */
	CHECKS_CYCLES,    /* and only where recursion, pointers or strangers come in (4.1) */
	CHECKS_NONE,      /* bounds nothing: to see what the others cost */
};

#define CHECKS_NO_LOOPS UINT_MAX /* as k: no check at any back-edge, for the same purpose */

/* By function, as edit_functions lists them: whether its entry has a check; to be freed. */
bool *checks_at_entries(struct edit *e, enum checks_entries kind);

/* Of one function. */
struct checks_loops {
	struct loops loops;
	bool *back;   /* by edge: a back-edge that has a check */
	bool *boring; /* by block: in a loop without calls and with at most k references (4.2) */
};
void checks_loops_init(
	struct checks_loops *c, const struct edit *e, const struct edit_function *f, unsigned k);
void checks_loops_deinit(struct checks_loops *c);

#endif
