/* Paths to frames that were never seen, by callers that were. */
#include "calls/map_internal.h"

#include <string.h>

/* What a guess may take. */
enum { GUESS_FRAMES = 128 };

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

/* A frame that may be on the stack: who it is known to call, and how often that was seen. */
struct reached {
	struct call_frame frame;
	uint64_t weight; /* the least seen of the calls from here to where the search began */
	uint32_t from;   /* the one that it calls */
};

/* Frames in the order in which they were reached, and the best known caller of one of them. */
struct guess {
	enum stack_kind kind;
	struct reached list[GUESS_FRAMES];
	size_t n;
	uint32_t best, node; /* of the list; and the path of who calls it, or CALL_NONE */
	uint64_t weight;
};

/* Callers that are known where they would be; the others are reached. */
static void look_at_callers(const struct call_map *m, struct guess *g, uint32_t number)
{
	const struct reached at = g->list[number];
	struct procedure_key key = {at.frame.image, at.frame.procedure};
	const struct called *c = hmap_get(&m->called, &key);

	for (uint32_t i = c ? c->first : CALL_NONE; i != CALL_NONE; i = m->steps.p[i].next) {
		const struct step *s = &m->steps.p[i];
		struct call_frame up = {
			s->caller.image, s->caller.procedure, at.frame.height - s->down};
		uint64_t weight = s->count < at.weight ? s->count : at.weight;
		uint32_t others, node;

		if (up.height <= 0)
			continue;
		node = call_map_find(m, g->kind, &up, &others);
		if (node == CALL_NONE && g->n < GUESS_FRAMES)
			g->list[g->n++] = (struct reached){up, weight, number};
		if (node == CALL_NONE || weight <= g->weight)
			continue;
		g->weight = weight;
		g->node = node;
		g->best = number;
	}
}

/*
 * The nearest callers first: of the guesses in which one step was taken on trust, more were right
 * than of those with ten, whatever their weights.
 */
uint32_t call_map_guess(struct call_map *m, enum stack_kind kind, const struct call_frame *frame)
{
	struct guess g = {.kind = kind, .node = CALL_NONE, .n = 1};

	g.list[0] = (struct reached){*frame, UINT64_MAX, 0};
	for (uint32_t i = 0, level = 1; i < g.n && g.node == CALL_NONE; level = (uint32_t)g.n)
		for (; i < level; i++)
			look_at_callers(m, &g, i);
	if (g.node == CALL_NONE)
		return CALL_NONE;
	for (; g.best; g.best = g.list[g.best].from)
		g.node = call_map_call(m, g.node, &g.list[g.best].frame);
	return call_map_call(m, g.node, frame);
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
