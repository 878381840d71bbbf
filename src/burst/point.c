#include <stdlib.h>

#include "burst/burst_internal.h"
#include "edit/edit.h"
#include "edit/snippet.h"
#include "flow/liveness.h"
#include "rt/burst.h"
#include "rt/routines.h"

uint64_t point_add(struct burst *b, const struct edit_function *f, struct point *p)
{
	uint64_t number = b->map.first + b->map.points.n;

	*vec_add(&b->map.points) = (struct burst_point){.procedure = f->procedure->start,
		.first = (uint32_t)b->map.events.n,
		.n = (uint32_t)p->events.n,
		.words = (uint8_t)p->words};
	vec_each (e, &p->events)
		*vec_add(&b->map.events) = *e;
	p->events.n = p->words = 0;
	return number;
}

void point_put(struct burst *b, struct edit_function *f, uint32_t insn, struct point *p)
{
	unsigned words = p->words;
	uint64_t number = point_add(b, f, p);

	if (words)
		edit_before_with(b->edit, f, insn, b->point[words], &number, p->word, words);
	else
		edit_before(b->edit, f, insn, b->point[0], &number);
}

void point_put_event(
	struct burst *b, struct edit_function *f, uint32_t insn, const struct burst_event *event)
{
	struct point p = {0};

	*vec_add(&p.events) = *event;
	point_ask_room(b, f, insn, insn);
	point_put(b, f, insn, &p);
	vec_deinit(&p.events);
}

/* Where flags are dead nothing has to be saved for the comparison. */
void point_ask_room(struct burst *b, struct edit_function *f, uint32_t from, uint32_t insn)
{
	const struct liveness *l = edit_liveness(b->edit, f);
	uint32_t at = insn;

	while (at > from && liveness_before(l, at) & LIVE_FLAGS(FORM_FLAGS))
		at--;
	edit_before(b->edit, f, at, b->room, (uint64_t[]){RT_CALL_BURST_ROOM});
}
