/* What was seen least leaves a map that has become too large. */
#include "base/buf.h"
#include "base/mem.h"
#include "calls/map_internal.h"

#include <stdlib.h>

/* Heights that were seen so often, with those that called them: by candidate. */
static bool *choose(const struct call_map *m, uint64_t least)
{
	bool *kept = xcalloc(m->candidates.n + 1, sizeof *kept);

	for (uint32_t i = 0; i < m->candidates.n; i++) {
		const struct candidate *c = &m->candidates.p[i];

		if (call_tree_node(m->tree, c->leaf)->count < least)
			continue;
		for (uint32_t at = i; at != CALL_NONE && !kept[at]; at = m->candidates.p[at].caller)
			kept[at] = true;
	}
	return kept;
}

/* Whether a leaf that tells how far a caller was is of a height that stays. */
static bool is_step_kept(const struct call_map *m, const struct call_node *step, const bool *kept)
{
	const struct call_place *at = &call_tree_node(m->tree, step->parent)->at;
	struct call_frame f = {at->image, at->procedure, (int64_t)step->at.procedure};
	struct place_key key = call_map_key((enum stack_kind)(step->at.site & 3), &f);
	const struct candidate *c = call_map_candidate(m, hmap_get(&m->places, &key), step->parent);

	return c && kept[c - m->candidates.p];
}

/* The same by node of the tree: leaves that stay, verdicts, and all that these are below. */
static bool *choose_nodes(const struct call_map *m, const bool *kept)
{
	uint32_t n = call_tree_size(m->tree);
	bool *nodes = xcalloc(n + 1, sizeof *nodes);

	for (uint32_t i = 0; i < m->candidates.n; i++)
		nodes[m->candidates.p[i].leaf] = kept[i];
	for (uint32_t i = n; i-- > 0;) {
		const struct call_node *node = call_tree_node(m->tree, i);

		if (node->at.image == CALL_MAP_STEP)
			nodes[i] = is_step_kept(m, node, kept);
		else if (node->at.image == CALL_MAP_VERDICT)
			nodes[i] = true;
		if (nodes[i] && node->parent != CALL_NONE)
			nodes[node->parent] = true;
	}
	return nodes;
}

static void pack_nodes(const struct call_map *m, const bool *nodes, struct buf *out)
{
	uint32_t n = call_tree_size(m->tree);
	_cleanup_free_ uint32_t *number = xcalloc(n + 1, sizeof *number);
	struct call_tree *t = call_tree_create(call_tree_metrics(m->tree));

	for (uint32_t i = 0; i < n; i++) {
		const struct call_node *node = call_tree_node(m->tree, i);
		struct call_node *to;

		if (!nodes[i])
			continue;
		number[i] = call_tree_append(
			t, node->parent == CALL_NONE ? CALL_NONE : number[node->parent], &node->at);
		to = call_tree_node(t, number[i]);
		to->count = node->count;
		to->metrics[0] = node->metrics[0];
	}
	call_tree_pack(t, out);
	call_tree_destroy(t);
}

/* Who calls whom, and how far away, is little, and serves guesses of what has gone. */
static void keep_steps(struct call_map *m, struct call_map *whole)
{
	struct hmap called = m->called;
	__typeof__(m->steps) steps = m->steps;

	m->called = whole->called;
	m->steps = whole->steps;
	whole->called = called;
	whole->steps = steps;
}

void call_map_shrink(struct call_map *m, uint64_t least)
{
	_cleanup_free_ bool *kept = choose(m, least), *nodes = choose_nodes(m, kept);
	struct call_map *smaller = call_map_create(), whole = *m;
	struct buf packed = {0};

	pack_nodes(m, nodes, &packed);
	if (call_map_add(smaller, packed.p, packed.n) == 0) {
		*m = *smaller;
		*smaller = whole;
		keep_steps(m, smaller);
	}
	buf_deinit(&packed);
	call_map_destroy(smaller);
}
