/*
 * Which return addresses of a stack tell apart the paths that share a place: often not the
 * innermost frame's, since paths that differ far outside may be called alike from there on. So a
 * stack is looked at just far enough (the paper's section 6.4), in a few words.
 */
#include "calls/map_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
	ASK_MOST = 32,   /* paths that are told apart */
	ASK_DEEP = 96,   /* frames */
	ASK_RIVALS = 4,  /* paths whose frames are tried */
	ASK_MORE = 8,    /* the part by which paths become more until they are told apart anew */
	WELL_KNOWN = 32, /* stacks of a place, all with one path */
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

/* A frame of a path, and who called it. */
struct link {
	int64_t height;
	uint32_t caller; /* CALL_NONE */
};

/* The paths that share a place. */
struct rivals {
	uint32_t at[ASK_MOST];
	uint64_t weight[ASK_MOST];
	uint32_t group[ASK_MOST]; /* those that are told alike by what is asked so far */
	size_t n;
	uint64_t all;                          /* weights */
	struct link chain[ASK_MOST][ASK_DEEP]; /* from the innermost frame on */
	size_t nchain[ASK_MOST];
};

/* Who called the frame at a height; CALL_NONE: there is none, so the word says something else. */
static uint32_t caller_at(const struct rivals *r, size_t rival, int64_t height)
{
	const struct link *chain = r->chain[rival];
	size_t low = 0, high = r->nchain[rival];

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (chain[middle].height > height)
			low = middle + 1;
		else
			high = middle;
	}
	return low < r->nchain[rival] && chain[low].height == height ? chain[low].caller
								     : CALL_NONE;
}

static bool is_told_alike(const struct call_map *m, uint32_t a, uint32_t b)
{
	if (a == b || a == CALL_NONE || b == CALL_NONE)
		return a == b;
	return is_same(place_of(m, a), place_of(m, b));
}

/* Groups by what is told of this frame as well; false when that makes no difference. */
static bool group_by(
	const struct call_map *m, const struct rivals *r, int64_t height, uint32_t *group)
{
	uint32_t callers[ASK_MOST];
	bool alike = true;

	for (size_t i = 0; i < r->n; i++) {
		callers[i] = caller_at(r, i, height);
		alike = alike && is_told_alike(m, callers[0], callers[i]);
	}
	if (alike)
		return false;
	for (uint32_t i = 0; i < r->n; i++) {
		group[i] = i;
		for (uint32_t k = 0; k < i && group[i] == i; k++)
			if (r->group[i] == r->group[k] && is_told_alike(m, callers[i], callers[k]))
				group[i] = group[k];
	}
	return true;
}

/* What would be named right: the likeliest of each group. */
static uint64_t weigh(const struct rivals *r, const uint32_t *group)
{
	uint64_t best[ASK_MOST] = {0}, sum = 0;

	for (size_t i = 0; i < r->n; i++)
		if (r->weight[i] > best[group[i]])
			best[group[i]] = r->weight[i];
	for (size_t i = 0; i < r->n; i++)
		sum += best[i];
	return sum;
}

static void list_rivals(const struct call_map *m, const struct place *p, struct rivals *out)
{
	out->n = out->all = 0;
	for (uint32_t i = p->first; i != CALL_NONE && out->n < ASK_MOST;
		i = m->candidates.p[i].next) {
		struct link *chain = out->chain[out->n];
		size_t deep = 0;

		for (uint32_t at = i; at != CALL_NONE && deep < ASK_DEEP; deep++) {
			chain[deep].height = height_of(m, at);
			at = chain[deep].caller = m->candidates.p[at].caller;
		}
		out->nchain[out->n] = deep;
		out->group[out->n] = 0;
		out->at[out->n] = i;
		out->all += out->weight[out->n++] = weight_of(m, i);
	}
}

static bool has_same_root(const struct rivals *r)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct link *first, *last;

		if (!r->nchain[i])
			return false;
		first = &r->chain[0][r->nchain[0] - 1];
		last = &r->chain[i][r->nchain[i] - 1];
		if (last->height != first->height || last->caller != first->caller)
			return false;
	}
	return true;
}

/* Outer frames that all have tell nothing. */
static void leave_out_roots(struct rivals *r)
{
	while (has_same_root(r))
		for (size_t i = 0; i < r->n; i++)
			r->nchain[i]--;
}

/*
 * The frame that tells most; false when nothing tells more than is told already. The frames of a
 * few are tried: those that others differ in are among them.
 */
static bool find_telling(const struct call_map *m, struct rivals *r, int64_t *height)
{
	uint32_t group[ASK_MOST], better[ASK_MOST];
	uint64_t before = weigh(r, r->group), best = before;

	/* When all are told apart there is nothing better. */
	for (size_t i = 0; i < r->n && i < ASK_RIVALS; i++)
		for (size_t deep = 0; deep < r->nchain[i] && best < r->all; deep++) {
			int64_t at = r->chain[i][deep].height;
			uint64_t sum = group_by(m, r, at, group) ? weigh(r, group) : 0;

			if (sum > best) {
				best = sum;
				*height = at;
				memcpy(better, group, sizeof better);
			}
		}
	if (best > before)
		memcpy(r->group, better, sizeof better);
	return best > before;
}

static bool is_among(const int64_t *heights, size_t n, int64_t height)
{
	while (n--)
		if (heights[n] == height)
			return true;
	return false;
}

/*
 * Outer frames are those of many paths. A doubt stays: if it was of who is taken for the caller
 * now, it is of who was before.
 */
static bool is_doubtful(const struct call_map *m, enum stack_kind kind, struct candidate *c)
{
	bool stays = c->doubtful && c->doubted_caller;

	if (!stays && (!c->doubted_size || call_map_has_grown(m, c->doubted_size))) {
		c->doubtful = call_map_is_doubtful(m, kind, c);
		c->doubted_caller = c->caller != CALL_NONE;
		c->doubted_size = (uint32_t)m->candidates.n;
	}
	return c->doubtful;
}

/* Where the likeliest path may have a rival that nobody has seen, from the innermost frame on. */
static size_t add_doubts(const struct call_map *m, enum stack_kind kind, uint32_t at,
	int64_t heights[CALL_TOLD], size_t n)
{
	for (unsigned deep = 0; deep < ASK_DEEP && at != CALL_NONE && n < CALL_TOLD; deep++) {
		struct candidate *c = &m->candidates.p[at];

		if (is_doubtful(m, kind, c) && !is_among(heights, n, height_of(m, at)))
			heights[n++] = height_of(m, at);
		at = c->caller;
	}
	return n;
}

static size_t ask(const struct call_map *m, enum stack_kind kind, const struct place *p,
	int64_t heights[CALL_TOLD])
{
	struct rivals r;
	size_t n = 0, first = 0;

	if (p->n == 1)
		return add_doubts(m, kind, p->first, heights, 0);
	list_rivals(m, p, &r);
	leave_out_roots(&r);
	while (n < CALL_TOLD && find_telling(m, &r, &heights[n]))
		n++;
	for (size_t i = 1; i < r.n; i++)
		first = r.weight[i] > r.weight[first] ? i : first;
	return add_doubts(m, kind, r.at[first], heights, n);
}

/* Where there are many paths, one more is no reason to ask again. */
static bool has_other_paths(const struct place *p)
{
	return p->n - p->asked_paths > p->asked_paths / ASK_MORE;
}

/* The answer stays until there are other paths, or the map has grown. */
size_t call_map_ask(const struct call_map *m, enum stack_kind kind, const struct call_frame *frame,
	int64_t heights[CALL_TOLD])
{
	struct place_key key = call_map_key(kind, frame);
	struct place *p = hmap_get(&m->places, &key);

	if (!p)
		return 0;
	if (has_other_paths(p) || call_map_has_grown(m, p->asked_size)) {
		p->asks = (uint32_t)ask(m, kind, p, p->ask);
		p->asked_paths = p->n;
		p->asked_size = (uint32_t)m->candidates.n;
	}
	memcpy(heights, p->ask, sizeof p->ask);
	return p->asks;
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

static enum call_match match_one(
	const struct call_map *m, uint32_t candidate, const struct call_frame *caller)
{
	const struct call_place at = {.image = caller->image, .procedure = caller->procedure};
	uint32_t frame = frame_at(m, candidate, caller->height), above;

	if (frame == CALL_NONE)
		return CALL_MATCH_SILENT;
	above = m->candidates.p[frame].caller;
	if (above != CALL_NONE ? is_same(place_of(m, above), &at)
			       : has_parent(m, &m->candidates.p[frame], caller))
		return CALL_MATCH;
	return CALL_MATCH_NOT;
}

enum call_match call_map_match(
	const struct call_map *m, uint32_t candidate, const struct call_told *told)
{
	enum call_match match = CALL_MATCH_SILENT;

	for (size_t i = 0; i < told->n && match != CALL_MATCH_NOT; i++) {
		enum call_match one = match_one(m, candidate, &told->callers[i]);

		if (one != CALL_MATCH_SILENT)
			match = one;
	}
	return match;
}

bool call_map_has_callers(const struct call_map *m, enum stack_kind kind,
	const struct call_frame *frame, const struct call_told *told)
{
	struct place_key key = call_map_key(kind, frame);
	const struct place *p = hmap_get(&m->places, &key);

	for (uint32_t i = p ? p->first : CALL_NONE; i != CALL_NONE; i = m->candidates.p[i].next)
		if (call_map_match(m, i, told) == CALL_MATCH)
			return true;
	return false;
}

static bool has_told(const struct call_told *told, int64_t height)
{
	for (size_t i = 0; i < told->n; i++)
		if (told->callers[i].height == height)
			return true;
	return false;
}

/* So many stacks were looked at there that another path would have been among them. */
static bool is_well_known(
	const struct call_map *m, enum stack_kind kind, const struct call_frame *frame)
{
	struct place_key key = call_map_key(kind, frame);
	const struct place *p = hmap_get(&m->places, &key);

	return p && p->n == 1 &&
	       call_tree_node(m->tree, m->candidates.p[p->first].leaf)->metrics[0] >= WELL_KNOWN;
}

bool call_map_wants_told(const struct call_map *m, enum stack_kind kind,
	const struct call_frame *frame, const struct call_told *told)
{
	int64_t heights[CALL_TOLD];
	size_t n = call_map_ask(m, kind, frame, heights);

	if (n && is_well_known(m, kind, frame))
		return false;
	while (n && has_told(told, heights[n - 1]))
		n--;
	return n;
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
