/* Paths to frames that were never seen, by callers that were. */
#include "calls/map_internal.h"

#include <string.h>

/* What a guess may take: levels of callers, and steps looked at in all. */
enum { GUESS_DEEP = 40, GUESS_STEPS = 400 };

uint32_t call_map_learn_step(struct call_map *m, const struct call_frame *callee,
	const struct call_frame *caller, uint64_t count)
{
	struct procedure_key key = {callee->image, callee->procedure};
	struct procedure_key by = {caller->image, caller->procedure};
	int64_t down = callee->height - caller->height;
	bool fresh;
	struct called *c = hmap_put(&m->called, &key, &fresh);

	if (fresh)
		c->first = CALL_NONE;
	for (uint32_t i = c->first; i != CALL_NONE; i = m->steps.p[i].next) {
		struct step *s = &m->steps.p[i];

		if (s->down == down && !memcmp(&s->caller, &by, sizeof by)) {
			s->count += count;
			return i;
		}
	}
	*vec_add(&m->steps) =
		(struct step){.caller = by, .down = down, .count = count, .next = c->first};
	return c->first = (uint32_t)m->steps.n - 1;
}

/* The best so far is the one whose steps were seen most, the least of them counting. */
struct guess {
	enum stack_kind kind;
	unsigned steps;
};

/* The likeliest path to a frame, and how often what it is made of was seen. */
static uint32_t guess_path(struct call_map *m, struct guess *g, const struct call_frame *f,
	unsigned depth, uint64_t *weight)
{
	struct procedure_key key = {f->image, f->procedure};
	const struct called *c = hmap_get(&m->called, &key);
	uint32_t best = CALL_NONE;

	*weight = 0;
	for (uint32_t i = c ? c->first : CALL_NONE; i != CALL_NONE; i = m->steps.p[i].next) {
		const struct step s = m->steps.p[i];
		struct call_frame up = {s.caller.image, s.caller.procedure, f->height - s.down};
		uint64_t found = UINT64_MAX;
		uint32_t others, node;

		if (s.count <= *weight || up.height <= 0 || ++g->steps > GUESS_STEPS)
			continue;
		node = call_map_find(m, g->kind, &up, &others);
		if (node == CALL_NONE && depth)
			node = guess_path(m, g, &up, depth - 1, &found);
		if (node == CALL_NONE || (found < s.count ? found : s.count) <= *weight)
			continue;
		*weight = found < s.count ? found : s.count;
		best = call_map_call(m, node, f);
	}
	return best;
}

uint32_t call_map_guess(struct call_map *m, enum stack_kind kind, const struct call_frame *frame)
{
	struct guess g = {.kind = kind};
	uint64_t weight;

	return guess_path(m, &g, frame, GUESS_DEEP, &weight);
}

int64_t call_map_usual_step(const struct call_map *m, uint64_t image, uint64_t procedure)
{
	int64_t down = 0;

	vec_each (s, &m->steps) {
		if (s->caller.image != image || s->caller.procedure != procedure)
			continue;
		if (down && down != s->down)
			return 0;
		down = s->down;
	}
	return down;
}

bool call_map_is_doubtful(const struct call_map *m, enum stack_kind kind, const struct candidate *c)
{
	const struct call_place *at = &call_tree_node(m->tree, c->node)->at;
	int64_t height = (int64_t)call_tree_node(m->tree, c->leaf)->at.procedure;
	struct procedure_key key = {at->image, at->procedure};
	const struct called *called = hmap_get(&m->called, &key);
	struct call_height by = {.node = CALL_NONE};

	if (c->caller != CALL_NONE)
		call_map_height(m, c->caller, &by);
	for (uint32_t i = called ? called->first : CALL_NONE; i != CALL_NONE;
		i = m->steps.p[i].next) {
		const struct step *s = &m->steps.p[i];
		struct place_key up = {
			s->caller.image, s->caller.procedure, height - s->down, kind};

		if (up.height == by.frame.height && up.image == by.frame.image &&
			up.procedure == by.frame.procedure)
			continue;
		if (hmap_get(&m->places, &up))
			return true;
	}
	return false;
}
