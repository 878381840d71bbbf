/*
 * Dominators: a dominates b when every path from the root to b goes through a. For post-dominators
 * take the reversed graph and the exit as root; a graph with several exits needs a virtual one.
 */
#ifndef CULPRIT_FLOW_DOMINATORS_H
#define CULPRIT_FLOW_DOMINATORS_H

#include "flow/graph.h"
#include "flow/tree.h"

struct dominators {
	/* tree.parent[n] is the immediate dominator; the root and what is not reached have none. */
	struct tree tree;
};

void dominators_init(struct dominators *d, const struct graph *g, uint32_t root);
void dominators_deinit(struct dominators *d);

/* Every node that is reached dominates itself; one that is not neither dominates nor is dominated.
 */
static inline bool dominates(const struct dominators *d, uint32_t a, uint32_t b)
{
	return tree_contains(&d->tree, a, b);
}

#endif
