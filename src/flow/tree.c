#include "flow/tree.h"

#include <stdlib.h>

#include "base/mem.h"

/* Sizes of what is below, from the children up; then each child takes its part of the parent's. */
static void number(struct tree *t, const uint32_t *order, uint32_t members)
{
	uint32_t next = 0;

	for (uint32_t i = members; i-- > 0;) {
		uint32_t a = order[i], up = t->parent[a];

		t->end[a]++;
		if (up != GRAPH_NONE)
			t->end[up] += t->end[a];
	}
	for (uint32_t i = 0; i < members; i++) {
		uint32_t a = order[i], up = t->parent[a];
		uint32_t *place = up == GRAPH_NONE ? &next : &t->jump[up];

		t->first[a] = *place;
		*place = t->end[a] += t->first[a];
		t->jump[a] = t->first[a] + 1;
	}
}

/*
 * Jumps of the lengths of skew binary numbers (Myers, "An applicative random-access stack", 1983):
 * any place above is a logarithmic number of jumps and steps away. Roots jump to themselves.
 */
static void lay_jumps(struct tree *t, const uint32_t *order, uint32_t members)
{
	for (uint32_t i = 0; i < members; i++) {
		uint32_t a = order[i], up = t->parent[a];

		if (up == GRAPH_NONE) {
			t->jump[a] = a;
			continue;
		}
		uint32_t over = t->jump[up], far = t->jump[over];

		t->depth[a] = t->depth[up] + 1;
		t->jump[a] =
			t->depth[up] - t->depth[over] == t->depth[over] - t->depth[far] ? far : up;
	}
}

void tree_init(
	struct tree *t, uint32_t n, const uint32_t *parent, const uint32_t *order, uint32_t members)
{
	size_t space = (size_t)n + 1;

	*t = (struct tree){
		.parent = xmemdup(parent, n * sizeof *parent),
		.depth = xcalloc(space, sizeof *t->depth),
		.first = xmalloc(space * sizeof *t->first),
		.end = xcalloc(space, sizeof *t->end),
		.jump = xcalloc(space, sizeof *t->jump),
	};
	for (uint32_t a = 0; a < n; a++)
		t->first[a] = GRAPH_NONE;
	number(t, order, members);
	lay_jumps(t, order, members);
}

void tree_deinit(struct tree *t)
{
	free(t->parent);
	free(t->depth);
	free(t->first);
	free(t->end);
	free(t->jump);
	*t = (struct tree){0};
}

uint32_t tree_climb(const struct tree *t, uint32_t a, uint32_t b)
{
	while (a != GRAPH_NONE && !tree_contains(t, a, b)) {
		if (t->first[a] == GRAPH_NONE)
			return GRAPH_NONE;
		a = tree_contains(t, t->jump[a], b) || t->jump[a] == a ? t->parent[a] : t->jump[a];
	}
	return a;
}
