#include "calls/derive.h"

/* Frames between a frame and one that is known, and callers looked at for each number of them. */
enum { DERIVE_DEEP = 5, DERIVE_STEPS = 800 };

struct derivation {
	struct call_map *map;
	const struct call_callers *callers;
	enum stack_kind kind;
	unsigned steps;
	uint64_t weight; /* of the best so far */
};

static uint64_t weight_of(const struct derivation *d, const struct call_frame *f, uint32_t node)
{
	uint32_t number = call_map_number(d->map, d->kind, f, node);
	struct call_height h;

	call_map_height(d->map, number, &h);
	return h.count;
}

/* The path to a frame whose caller, so many frames above, is known; better than those before. */
static uint32_t derive(struct derivation *d, const struct call_frame *f, unsigned between)
{
	uint32_t lists[2], best = CALL_NONE;

	call_callers_of(d->callers, f->image, f->procedure, lists);
	for (unsigned k = 0; k < 2; k++)
		for (uint32_t i = lists[k]; i != CALLERS_NONE && d->steps < DERIVE_STEPS;
			i = call_callers_get(d->callers, i)->next) {
			const struct call_caller *c = call_callers_get(d->callers, i);
			struct call_frame up = {c->image, c->procedure, f->height - c->down};
			uint32_t node, others;

			d->steps++;
			if (up.height <= 0)
				continue;
			node = between ? derive(d, &up, between - 1)
				       : call_map_find(d->map, d->kind, &up, &others);
			if (node == CALL_NONE)
				continue;
			if (!between && weight_of(d, &up, node) <= d->weight)
				continue;
			if (!between)
				d->weight = weight_of(d, &up, node);
			best = call_map_call(d->map, node, f);
		}
	return best;
}

uint32_t call_map_derive(struct call_map *m, const struct call_callers *callers,
	enum stack_kind kind, const struct call_frame *frame)
{
	for (unsigned between = 0; between < DERIVE_DEEP; between++) {
		struct derivation d = {.map = m, .callers = callers, .kind = kind};
		uint32_t found = derive(&d, frame, between);

		if (found != CALL_NONE)
			return found;
	}
	return CALL_NONE;
}
