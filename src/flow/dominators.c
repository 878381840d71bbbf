#include "flow/dominators.h"

#include <stdlib.h>

#include "base/mem.h"

/* All by depth-first number. */
struct lengauer_tarjan {
	const struct graph *g;
	const struct graph_walk *w;
	uint32_t *semi;  /* semidominator */
	uint32_t *label; /* of the path to the top of the linked forest, the node of least semi */
	uint32_t *ancestor; /* in that forest, GRAPH_NONE at the top */
	uint32_t *dom;
	uint32_t *bucket, *next; /* lists: whose semidominator this is */
	uint32_t *stack;
};

static uint32_t parent_of(const struct lengauer_tarjan *l, uint32_t v)
{
	return l->w->pre[l->g->edge[l->w->parent[l->w->preorder[v]]].from];
}

/* The node of least semidominator between v and the top, which is left out; compresses the path. */
static uint32_t evaluate(struct lengauer_tarjan *l, uint32_t v)
{
	uint32_t depth = 0;

	if (l->ancestor[v] == GRAPH_NONE)
		return l->label[v];
	for (uint32_t u = v; l->ancestor[l->ancestor[u]] != GRAPH_NONE; u = l->ancestor[u])
		l->stack[depth++] = u;
	while (depth--) {
		uint32_t u = l->stack[depth], up = l->ancestor[u];

		if (l->semi[l->label[up]] < l->semi[l->label[u]])
			l->label[u] = l->label[up];
		l->ancestor[u] = l->ancestor[up];
	}
	return l->label[v];
}

static void find_semidominator(struct lengauer_tarjan *l, uint32_t v)
{
	graph_each_in (e, l->g, l->w->preorder[v]) {
		uint32_t from = l->w->pre[l->g->edge[*e].from];

		if (from == GRAPH_NONE)
			continue;
		uint32_t u = evaluate(l, from);

		if (l->semi[u] < l->semi[v])
			l->semi[v] = l->semi[u];
	}
	l->next[v] = l->bucket[l->semi[v]];
	l->bucket[l->semi[v]] = v;
}

/* The simple version of Lengauer and Tarjan (1979), section 3: O(m log n), with path compression.
 */
static void find_dominators(struct lengauer_tarjan *l)
{
	for (uint32_t v = l->w->reached; v-- > 1;) {
		uint32_t up = parent_of(l, v);

		find_semidominator(l, v);
		l->ancestor[v] = up;
		for (uint32_t u = l->bucket[up]; u != GRAPH_NONE; u = l->next[u]) {
			uint32_t least = evaluate(l, u);

			l->dom[u] = l->semi[least] < l->semi[u] ? least : up;
		}
		l->bucket[up] = GRAPH_NONE;
	}
	for (uint32_t v = 1; v < l->w->reached; v++)
		if (l->dom[v] != l->semi[v])
			l->dom[v] = l->dom[l->dom[v]];
}

static void plant(struct dominators *d, const struct lengauer_tarjan *l)
{
	_cleanup_free_ uint32_t *parent = graph_numbers(l->g->nodes, GRAPH_NONE);

	for (uint32_t v = 1; v < l->w->reached; v++)
		parent[l->w->preorder[v]] = l->w->preorder[l->dom[v]];
	tree_init(&d->tree, l->g->nodes, parent, l->w->preorder, l->w->reached);
}

void dominators_init(struct dominators *d, const struct graph *g, uint32_t root)
{
	struct graph_walk w;

	graph_walk_init(&w, g, root);
	size_t n = w.reached;
	_cleanup_free_ uint32_t *space = xmalloc(7 * n * sizeof *space);
	struct lengauer_tarjan l = {
		.g = g,
		.w = &w,
		.semi = space,
		.label = space + n,
		.ancestor = space + 2 * n,
		.dom = space + 3 * n,
		.bucket = space + 4 * n,
		.next = space + 5 * n,
		.stack = space + 6 * n,
	};
	for (uint32_t v = 0; v < n; v++) {
		l.semi[v] = l.label[v] = v;
		l.ancestor[v] = l.bucket[v] = GRAPH_NONE;
	}
	find_dominators(&l);
	plant(d, &l);
	graph_walk_deinit(&w);
}

void dominators_deinit(struct dominators *d)
{
	tree_deinit(&d->tree);
}
