/*
 * Loops in which the variable of paths is in a register although it lies on the stack elsewhere:
 * what calls nobody has one free, or leaves one alone that can be borrowed. The value goes over on
 * the edges into the loop and out of it.
 */
#ifndef CULPRIT_PATHS_FAST_H
#define CULPRIT_PATHS_FAST_H

#include "paths/choose.h"

/* Variables of snippets. */
enum { FAST_VARIABLE = 5, FAST_SAVED = 6 };

/* Of a node. */
enum { FAST_NOT, FAST_FREE, FAST_BORROWED };

/* Marks c->fast for loops that have some of these blocks, where it pays. */
void fast_find(struct choosing *c, const bool *blocks);

/* An edge where a borrowed register is saved (into a loop), or put back (out of one). */
static inline bool fast_borrows(const struct choosing *c, uint32_t edge, bool *into)
{
	struct graph_edge e = c->function->flow->graph.edge[edge];
	uint32_t n = c->function->flow->nblocks;
	bool from = e.from < n && c->fast.p[e.from] == FAST_BORROWED;

	*into = e.to < n && c->fast.p[e.to] == FAST_BORROWED;
	return from != *into;
}

#endif
