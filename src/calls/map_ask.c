/*
 * Which return address of a stack tells apart the paths that share a place: often not the innermost
 * frame's, since paths that differ far outside may be called alike from there on. So a stack is
 * looked at just far enough (the paper's section 6.4), in one word.
 */
#include "calls/map_internal.h"

#include <stdlib.h>

enum {
	ASK_MOST = 32, /* paths that are told apart */
	ASK_DEEP = 96, /* frames */
};

static const struct call_place *place_of(const struct call_map *m, uint32_t candidate)
{
	return &call_tree_node(m->tree, m->candidates.p[candidate].node)->at;
}

static int64_t height_of(const struct call_map *m, uint32_t candidate)
{
	return (int64_t)call_tree_node(m->tree, m->candidates.p[candidate].leaf)->at.procedure;
}

static uint64_t weight_of(const struct call_map *m, uint32_t candidate)
{
	const struct call_node *leaf = call_tree_node(m->tree, m->candidates.p[candidate].leaf);

	return leaf->metrics[0] * 256 + leaf->count;
}

static bool is_same(const struct call_place *a, const struct call_place *b)
{
	return a->image == b->image && a->procedure == b->procedure;
}

/* What would be named right if these callers were told, of paths with these weights. */
static uint64_t told_by(
	const struct call_map *m, const uint32_t *callers, const uint64_t *weights, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		bool best = callers[i] != CALL_NONE;

		for (size_t k = 0; k < n && best; k++)
			if (callers[k] != CALL_NONE &&
				is_same(place_of(m, callers[i]), place_of(m, callers[k])))
				best = weights[i] > weights[k] ||
				       (weights[i] == weights[k] && i <= k);
		if (best)
			sum += weights[i];
	}
	return sum;
}

static size_t list_candidates(
	const struct call_map *m, const struct place *p, uint32_t *at, uint64_t *weights)
{
	size_t n = 0;

	for (uint32_t i = p->first; i != CALL_NONE && n < ASK_MOST; i = m->candidates.p[i].next) {
		at[n] = i;
		weights[n++] = weight_of(m, i);
	}
	return n;
}

/* All one frame outwards; false when they are not at one height there. */
static bool climb(const struct call_map *m, uint32_t *at, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		at[i] = m->candidates.p[at[i]].caller;
		if (at[i] == CALL_NONE || height_of(m, at[i]) != height_of(m, at[0]))
			return false;
	}
	return true;
}

bool call_map_ask(const struct call_map *m, enum stack_kind kind, const struct call_frame *frame,
	int64_t *height)
{
	struct place_key key = call_map_key(kind, frame);
	const struct place *p = hmap_get(&m->places, &key);
	uint32_t at[ASK_MOST], callers[ASK_MOST];
	uint64_t weights[ASK_MOST], best = 0;
	size_t n = p && p->n > 1 ? list_candidates(m, p, at, weights) : 0;

	*height = frame->height;
	for (unsigned deep = 0; n && deep < ASK_DEEP; deep++) {
		uint64_t told;

		for (size_t i = 0; i < n; i++)
			callers[i] = m->candidates.p[at[i]].caller;
		told = told_by(m, callers, weights, n);
		if (told > best) {
			best = told;
			*height = height_of(m, at[0]);
		}
		if (!climb(m, at, n))
			break;
	}
	return n;
}

/* Who is below its first caller and not its last in the tree, since it was called again, has that
 * one only if it was seen. */
static bool has_parent(
	const struct call_map *m, const struct candidate *c, const struct call_frame *caller)
{
	uint32_t parent = call_tree_node(m->tree, c->node)->parent;
	const struct call_place at = {.image = caller->image, .procedure = caller->procedure};

	return parent != CALL_NONE && is_same(&call_tree_node(m->tree, parent)->at, &at);
}

bool call_map_is_called_by(
	const struct call_map *m, uint32_t candidate, const struct call_frame *caller)
{
	const struct call_place at = {.image = caller->image, .procedure = caller->procedure};
	uint32_t up = candidate;

	for (unsigned deep = 0; deep < ASK_DEEP && up != CALL_NONE; deep++) {
		uint32_t above = m->candidates.p[up].caller;

		if (!caller->height || !((height_of(m, up) - caller->height) % CALL_HEIGHT_TOLD))
			return above != CALL_NONE ? is_same(place_of(m, above), &at)
						  : has_parent(m, &m->candidates.p[up], caller);
		up = above;
	}
	return false;
}

bool call_map_has_caller(const struct call_map *m, enum stack_kind kind,
	const struct call_frame *frame, const struct call_frame *caller)
{
	struct place_key key = call_map_key(kind, frame);
	const struct place *p = hmap_get(&m->places, &key);

	for (uint32_t i = p ? p->first : CALL_NONE; i != CALL_NONE; i = m->candidates.p[i].next)
		if (call_map_is_called_by(m, i, caller))
			return true;
	return false;
}

/* ---- from a profile ---- */

void call_map_name(struct call_map *m, const struct call_place *at)
{
	struct procedure_key key = {at->image, at->procedure};
	uint64_t hash = call_map_step_hash(at);
	bool fresh;
	struct hashed *h = hmap_put(&m->hashed, &hash, &fresh);

	if (fresh)
		h->first = CALL_NONE;
	for (uint32_t i = h->first; i != CALL_NONE; i = m->namesakes.p[i].next)
		if (m->namesakes.p[i].key.image == key.image &&
			m->namesakes.p[i].key.procedure == key.procedure)
			return;
	*vec_add(&m->namesakes) = (struct namesake){.key = key, .next = h->first};
	h->first = (uint32_t)m->namesakes.n - 1;
}

static bool is_below(const struct call_tree *t, uint32_t node, uint32_t top)
{
	uint32_t depth = call_tree_node(t, top)->depth;

	while (call_tree_node(t, node)->depth > depth)
		node = call_tree_node(t, node)->parent;
	return node == top;
}

/* The candidate of this procedure there whose path is `node`, or (folded) is below it. */
static uint32_t find_caller(const struct call_map *m, enum stack_kind kind,
	const struct call_frame *f, uint32_t node, bool folded)
{
	struct place_key key = call_map_key(kind, f);
	const struct place *p = hmap_get(&m->places, &key);

	for (uint32_t i = p ? p->first : CALL_NONE; i != CALL_NONE; i = m->candidates.p[i].next)
		if (folded ? is_below(m->tree, m->candidates.p[i].node, node)
			   : m->candidates.p[i].node == node)
			return i;
	return CALL_NONE;
}

void call_map_take_step(struct call_map *m, uint32_t number)
{
	const struct call_node *step = call_tree_node(m->tree, number);
	const struct call_node *node = call_tree_node(m->tree, step->parent);
	enum stack_kind kind = (enum stack_kind)(step->at.site & 3);
	uint16_t hash = (uint16_t)(step->at.site >> 2);
	struct call_frame own = {node->at.image, node->at.procedure, (int64_t)step->at.procedure};
	struct call_frame up = {.height = own.height - (int64_t)(step->at.site >> 18)};
	struct place_key key = call_map_key(kind, &own);
	struct candidate *c = call_map_candidate(m, hmap_get(&m->places, &key), step->parent);
	uint32_t caller = CALL_NONE;

	if (!hash && node->parent != CALL_NONE) {
		up.image = call_tree_node(m->tree, node->parent)->at.image;
		up.procedure = call_tree_node(m->tree, node->parent)->at.procedure;
		caller = find_caller(m, kind, &up, node->parent, false);
	} else if (hash) {
		const struct hashed *h = hmap_get(&m->hashed, &(uint64_t){hash});

		for (uint32_t i = h ? h->first : CALL_NONE; i != CALL_NONE && caller == CALL_NONE;
			i = m->namesakes.p[i].next) {
			up.image = m->namesakes.p[i].key.image;
			up.procedure = m->namesakes.p[i].key.procedure;
			caller = find_caller(m, kind, &up, step->parent, true);
		}
	}
	if (!c || caller == CALL_NONE || up.height >= own.height)
		return;
	c->caller = caller;
	call_map_learn_step(m, &own, &up, step->count);
}
