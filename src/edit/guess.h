/*
 * How often the edges of a procedure are likely taken when it is called once: from its loops, from
 * what is cold, and from how compilers lay out code. Good enough to choose where counters cost
 * least (in the manner of Wu and Larus, MICRO 1994, with fewer rules).
 */
#ifndef CULPRIT_EDIT_GUESS_H
#define CULPRIT_EDIT_GUESS_H

#include "flow/cfg.h"
#include "image/image.h"

/* By edge of the flow's graph; to be freed. Blocks outside of the first range are cold. */
double *guess_edges(const struct flow *f, const struct procedure *p);

#endif
