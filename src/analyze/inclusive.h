/*
 * Procedures with what they called: for each the weight that is its own, and that of all contexts
 * it is part of. A context counts once for a procedure, however often recursion has it there.
 */
#ifndef CULPRIT_ANALYZE_INCLUSIVE_H
#define CULPRIT_ANALYZE_INCLUSIVE_H

#include "base/vec.h"

#include <stdint.h>

struct context_tree;

struct inclusive_row {
	uint32_t procedure; /* number in the tree */
	double own, all;
};

typedef VEC(struct inclusive_row) inclusive_list;

/* Those that weigh something, by all, then own; the list is the caller's. */
void inclusive_rows(const struct context_tree *t, inclusive_list *out);

#endif
