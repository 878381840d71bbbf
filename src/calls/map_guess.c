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
	const struct call_frame *by; /* who called the first of them; NULL: nobody knows */
	struct reached list[GUESS_FRAMES];
	size_t n;
	uint32_t best, node; /* of the list; and the path of who calls it, or CALL_NONE */
	uint64_t weight;
};

static bool is_procedure(const struct step *s, const struct call_frame *f)
{
	return s->caller.image == f->image && s->caller.procedure == f->procedure;
}

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

		if (up.height <= 0 || (!number && g->by && !is_procedure(s, g->by)))
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
static uint32_t guess(struct call_map *m, enum stack_kind kind, const struct call_frame *frame,
	const struct call_frame *by)
{
	struct guess g = {.kind = kind, .by = by, .node = CALL_NONE, .n = 1};

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

uint32_t call_map_guess(struct call_map *m, enum stack_kind kind, const struct call_frame *frame)
{
	return guess(m, kind, frame, NULL);
}

/* The frames that were told of, the sample's first, and those callers that were told further out.
 */
struct near {
	struct call_frame frames[CALL_TOLD];
	size_t n;
};

static struct near frames_told(const struct call_frame *frame, const struct call_told *told)
{
	struct near near = {.frames = {*frame}, .n = 1};

	for (; near.n < told->n; near.n++) {
		near.frames[near.n] = told->callers[near.n - 1];
		near.frames[near.n].height = told->callers[near.n].height;
	}
	return near;
}

/* What was told of the callers from one on. */
static struct call_told told_from(const struct call_told *told, size_t first)
{
	struct call_told rest = {.near = true};

	while (first + rest.n < told->n) {
		rest.callers[rest.n] = told->callers[first + rest.n];
		rest.n++;
	}
	return rest;
}

uint32_t call_map_guess_near(struct call_map *m, enum stack_kind kind,
	const struct call_frame *frame, const struct call_told *told)
{
	struct near near = frames_told(frame, told);
	uint32_t node = CALL_NONE, others;
	size_t i;

	if (!told->n)
		return CALL_NONE;
	for (i = 1; i < near.n && node == CALL_NONE; i++) {
		struct call_told rest = told_from(told, i);

		if (call_map_has_callers(m, kind, &near.frames[i], &rest))
			node = call_map_find_called(m, kind, &near.frames[i], &rest, &others);
	}
	i--;
	if (node == CALL_NONE)
		node = guess(m, kind, &near.frames[i = near.n - 1], &told->callers[told->n - 1]);
	while (node != CALL_NONE && i--)
		node = call_map_call(m, node, &near.frames[i]);
	return node;
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
