/*
 * Rooted forests over numbered things: who lies below whom in constant time, and the lowest place
 * that two things share in logarithmic time. Stands under depth-first trees, dominator trees and
 * loop nests.
 */
#ifndef CULPRIT_FLOW_TREE_H
#define CULPRIT_FLOW_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "flow/graph.h"

struct tree {
	uint32_t *parent;      /* GRAPH_NONE for roots and for what is in no tree */
	uint32_t *depth;       /* 0 for roots */
	uint32_t *first, *end; /* [first[a], end[a]) has first[b] for all b below a, a included */
	uint32_t *jump;        /* private to tree_climb */
};

/*
 * Copies parent, of n things. order has those that are in a tree (`members` of them), parents
 * before children.
 */
void tree_init(struct tree *t, uint32_t n, const uint32_t *parent, const uint32_t *order,
	uint32_t members);
void tree_deinit(struct tree *t);

/* Whether b is a or lies below it; no for what is in no tree. */
static inline bool tree_contains(const struct tree *t, uint32_t a, uint32_t b)
{
	return t->first[b] >= t->first[a] && t->first[b] < t->end[a];
}

/* The lowest of a and those above it that contains b; GRAPH_NONE when none does. */
uint32_t tree_climb(const struct tree *t, uint32_t a, uint32_t b);

#endif
