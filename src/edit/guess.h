/*
 * How often the edges of a procedure are likely taken when it is called once: from its loops, from
 * what is cold, from how compilers lay out code and from what branches ask. Good enough to choose
 * where counters cost least (in the manner of Wu and Larus, MICRO 1994, with fewer rules).
 */
#ifndef CULPRIT_EDIT_GUESS_H
#define CULPRIT_EDIT_GUESS_H

#include "edit/edit.h"

struct loops;

/*
 * By edge of the flow's graph; to be freed. Blocks outside of the first range are cold. The loops
 * are those of the flow, from its entry.
 */
double *guess_edges(const struct edit *e, const struct edit_function *f, const struct loops *loops);

#endif
