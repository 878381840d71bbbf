#include "calls/unfold.h"

#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>

/* Compared as bytes. */
struct spot_key {
	uint64_t path, kind;
	int64_t height;
};

/* The context of a path at a height, or (path CALL_NONE) the first of all at a height. */
struct spot {
	struct spot_key key;
	uint32_t context, pad;
};

/* Of an outermost frame whose address nobody knows, the height is that of all memory. */
#define HEIGHT_MOST (1ll << 40)

struct unfolding {
	const struct call_tree *tree;
	VEC(struct unfolded_context) contexts;
	struct hmap spots;
	uint64_t *step; /* by context: how often the step to the caller was seen */
};

static int by_height(const void *a, const void *b)
{
	const struct unfolded_context *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->height != y->height)
		return x->height < y->height ? -1 : 1;
	return x->path < y->path ? -1 : x->path > y->path;
}

static void list_contexts(struct unfolding *u)
{
	for (uint32_t i = 0; i < call_tree_size(u->tree); i++) {
		const struct call_node *n = call_tree_node(u->tree, i);

		if (n->at.image != CALL_MAP_HEIGHT || n->at.site >= STACK_OTHER ||
			n->at.procedure >= HEIGHT_MOST)
			continue;
		*vec_add(&u->contexts) = (struct unfolded_context){.path = n->parent,
			.caller = CALL_NONE,
			.kind = (enum stack_kind)n->at.site,
			.height = (int64_t)n->at.procedure,
			.seen = n->count,
			.sampled = n->metrics[0]};
	}
	vec_sort(&u->contexts, by_height);
	for (uint32_t i = 0; i < u->contexts.n; i++) {
		const struct unfolded_context *c = &u->contexts.p[i];
		struct spot_key any = {CALL_NONE, c->kind, c->height};
		struct spot_key key = {c->path, c->kind, c->height};
		bool fresh;
		struct spot *s = hmap_put(&u->spots, &any, &fresh);

		if (fresh)
			s->context = i;
		s = hmap_put(&u->spots, &key, NULL);
		s->context = i;
	}
}

static uint32_t find(const struct unfolding *u, uint32_t path, enum stack_kind kind, int64_t height)
{
	const struct spot *s = hmap_get(&u->spots, &(struct spot_key){path, kind, height});

	return s ? s->context : CALL_NONE;
}

static bool is_below(const struct call_tree *t, uint32_t node, uint32_t top)
{
	uint32_t depth = call_tree_node(t, top)->depth;

	while (call_tree_node(t, node)->depth > depth)
		node = call_tree_node(t, node)->parent;
	return node == top;
}

/* Of the paths below the node that end in who it was that called, the one at this height that was
 * seen most. */
static uint32_t find_below(const struct unfolding *u, uint32_t node, uint16_t hash,
	enum stack_kind kind, int64_t height)
{
	uint32_t best = CALL_NONE;

	for (uint32_t i = find(u, CALL_NONE, kind, height); i < u->contexts.n; i++) {
		const struct unfolded_context *c = &u->contexts.p[i];

		if (c->height != height || c->kind != kind)
			break;
		if (call_map_step_hash(&call_tree_node(u->tree, c->path)->at) == hash &&
			is_below(u->tree, c->path, node) &&
			(best == CALL_NONE || c->seen > u->contexts.p[best].seen))
			best = i;
	}
	return best;
}

static void take_step(struct unfolding *u, const struct call_node *step)
{
	enum stack_kind kind = (enum stack_kind)(step->at.site & 3);
	uint16_t folded = (uint16_t)(step->at.site >> 2);
	int64_t height = (int64_t)step->at.procedure, up = height - (int64_t)(step->at.site >> 18);
	uint32_t own = find(u, step->parent, kind, height), caller = CALL_NONE;
	uint32_t parent = call_tree_node(u->tree, step->parent)->parent;

	if (own == CALL_NONE || step->count <= u->step[own] || up >= height)
		return;
	if (folded)
		caller = find_below(u, step->parent, folded, kind, up);
	else if (parent != CALL_NONE)
		caller = find(u, parent, kind, up);
	if (caller == CALL_NONE)
		return;
	u->step[own] = step->count;
	u->contexts.p[own].caller = caller;
}

/* Stacks that were joined to a known path do not tell how far it was: the nearest one above. */
static void join_rest(struct unfolding *u)
{
	uint32_t *last = xcalloc(call_tree_size(u->tree) + 1, sizeof *last);

	for (uint32_t i = 0; i < u->contexts.n; i++) {
		struct unfolded_context *c = &u->contexts.p[i];
		uint32_t parent = call_tree_node(u->tree, c->path)->parent, near;

		near = parent == CALL_NONE ? 0 : last[parent];
		if (c->caller == CALL_NONE && near && u->contexts.p[near - 1].kind == c->kind &&
			u->contexts.p[near - 1].height < c->height)
			c->caller = near - 1;
		last[c->path] = i + 1;
	}
	free(last);
}

size_t call_map_unfold(const struct call_map *m, struct unfolded_context **out)
{
	struct unfolding u = {.tree = call_map_tree(m)};

	hmap_init(&u.spots, sizeof(struct spot), sizeof(struct spot_key));
	list_contexts(&u);
	u.step = xcalloc(u.contexts.n + 1, sizeof *u.step);
	for (uint32_t i = 0; i < call_tree_size(u.tree); i++)
		if (call_tree_node(u.tree, i)->at.image == CALL_MAP_STEP)
			take_step(&u, call_tree_node(u.tree, i));
	join_rest(&u);
	free(u.step);
	hmap_deinit(&u.spots);
	*out = u.contexts.p;
	return u.contexts.n;
}
