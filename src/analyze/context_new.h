/*
 * Contexts that an earlier profile does not have: what a program never did before (the paper's
 * section 10, anomalous behaviour).
 */
#ifndef CULPRIT_ANALYZE_CONTEXT_NEW_H
#define CULPRIT_ANALYZE_CONTEXT_NEW_H

#include "analyze/context_tree.h"

#include <stdbool.h>

struct err;

/*
 * For each of context_tree_nodes whether nothing in the other selection has its path: no contexts,
 * sampled or counted, and no path map. Call sites do not count, and what is unknown is not new. To
 * be freed. -ENOENT when the other has none at all.
 */
int context_new(const struct context_tree *t, struct selection *old, bool **out, struct err *e);

#endif
