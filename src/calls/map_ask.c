/*
 * Which return address of a stack tells apart the paths that share a place: often not the innermost
 * frame's, since paths that differ far outside may be called alike from there on. So a stack is
 * looked at just far enough (the paper's section 6.4), in one word.
 */
#include "calls/map_internal.h"

#include <stdlib.h>

enum {
	ASK_MOST = 32,  /* paths that are told apart */
	ASK_DEEP = 96,  /* frames */
	ASK_RIVALS = 4, /* paths whose frames are tried */
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

/* The candidate's frame at a height, from itself outwards; CALL_NONE. */
static uint32_t frame_at(const struct call_map *m, uint32_t candidate, int64_t height)
{
	for (unsigned deep = 0; deep < ASK_DEEP && candidate != CALL_NONE; deep++) {
		int64_t at = height_of(m, candidate);

		if (at <= height)
			return at == height ? candidate : CALL_NONE;
		candidate = m->candidates.p[candidate].caller;
	}
	return CALL_NONE;
}

/* Who called the frame at a height; CALL_NONE: there is none, so the word says something else. */
static uint32_t caller_at(const struct call_map *m, uint32_t candidate, int64_t height)
{
	uint32_t frame = frame_at(m, candidate, height);

	return frame == CALL_NONE ? CALL_NONE : m->candidates.p[frame].caller;
}

static bool is_told_alike(const struct call_map *m, uint32_t a, uint32_t b)
{
	if (a == CALL_NONE || b == CALL_NONE)
		return a == b;
	return is_same(place_of(m, a), place_of(m, b));
}

/* The paths that share a place. */
struct rivals {
	uint32_t at[ASK_MOST];
	uint64_t weight[ASK_MOST];
	size_t n;
};

/* What would be named right if the word at this height were told. */
static uint64_t told_by(const struct call_map *m, const struct rivals *r, int64_t height)
{
	uint32_t callers[ASK_MOST];
	uint64_t sum = 0;

	for (size_t i = 0; i < r->n; i++)
		callers[i] = caller_at(m, r->at[i], height);
	for (size_t i = 0; i < r->n; i++) {
		bool best = true;

		for (size_t k = 0; k < r->n && best; k++)
			if (is_told_alike(m, callers[i], callers[k]))
				best = r->weight[i] > r->weight[k] ||
				       (r->weight[i] == r->weight[k] && i <= k);
		if (best)
			sum += r->weight[i];
	}
	return sum;
}

static void list_rivals(const struct call_map *m, const struct place *p, struct rivals *out)
{
	out->n = 0;
	for (uint32_t i = p->first; i != CALL_NONE && out->n < ASK_MOST;
		i = m->candidates.p[i].next) {
		out->at[out->n] = i;
		out->weight[out->n++] = weight_of(m, i);
	}
}

/* The frames of a few are tried: those that others differ in are among them. */
bool call_map_ask(const struct call_map *m, enum stack_kind kind, const struct call_frame *frame,
	int64_t *height)
{
	struct place_key key = call_map_key(kind, frame);
	const struct place *p = hmap_get(&m->places, &key);
	struct rivals r = {.n = 0};
	uint64_t best = 0;

	*height = frame->height;
	if (!p || p->n < 2)
		return false;
	list_rivals(m, p, &r);
	for (size_t i = 0; i < r.n && i < ASK_RIVALS; i++) {
		uint32_t at = r.at[i];

		for (unsigned deep = 0; deep < ASK_DEEP && at != CALL_NONE; deep++) {
			uint64_t told = told_by(m, &r, height_of(m, at));

			if (told > best) {
				best = told;
				*height = height_of(m, at);
			}
			at = m->candidates.p[at].caller;
		}
	}
	return true;
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

enum call_match call_map_match(
	const struct call_map *m, uint32_t candidate, const struct call_frame *caller)
{
	const struct call_place at = {.image = caller->image, .procedure = caller->procedure};
	int64_t height = height_of(m, candidate);
	uint32_t frame = candidate, above;

	if (caller->height)
		height -= ((height - caller->height) % CALL_HEIGHT_TOLD + CALL_HEIGHT_TOLD) %
			  CALL_HEIGHT_TOLD;
	frame = frame_at(m, candidate, height);
	if (frame == CALL_NONE)
		return CALL_MATCH_SILENT;
	above = m->candidates.p[frame].caller;
	if (above != CALL_NONE ? is_same(place_of(m, above), &at)
			       : has_parent(m, &m->candidates.p[frame], caller))
		return CALL_MATCH;
	return CALL_MATCH_NOT;
}

bool call_map_has_caller(const struct call_map *m, enum stack_kind kind,
	const struct call_frame *frame, const struct call_frame *caller)
{
	struct place_key key = call_map_key(kind, frame);
	const struct place *p = hmap_get(&m->places, &key);

	for (uint32_t i = p ? p->first : CALL_NONE; i != CALL_NONE; i = m->candidates.p[i].next)
		if (call_map_match(m, i, caller) == CALL_MATCH)
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
