#include "analyze/touches.h"

#include "analyze/streams.h"

struct walk {
	struct things *things;
	touch_fn *fn;
	void *arg;
	uint64_t number, burst;
};

/* A struct in a struct is looked at by itself if it is an array's element, or larger than a line.
 */
static const struct type *inner_struct(const struct type *type, uint64_t *offset)
{
	const struct type_member *m = type_member_at(type, *offset);
	const struct type *inner = m && !type->is_union ? m->type : NULL;
	uint64_t at = m ? *offset - m->offset : 0;
	bool element = false;

	while (inner && inner->kind == TYPE_ARRAY && inner->element && inner->element->size) {
		inner = inner->element;
		at %= inner->size;
		element = true;
	}
	if (!inner || inner->kind != TYPE_STRUCT || (!element && inner->size <= TOUCH_LINE))
		return NULL;
	*offset = at;
	return inner;
}

static void find_instance(const struct walk *w, struct touch *t)
{
	const struct type *type = thing_type(w->things, &t->thing, &t->offset), *inner;

	if (type && type->kind == TYPE_STRUCT)
		while ((inner = inner_struct(type, &t->offset)))
			type = inner;
	t->type = type && type->kind == TYPE_STRUCT ? type : NULL;
	t->instance = t->address - t->offset;
}

static int take_burst(
	void *arg, const struct trace_site *sites, uint32_t part, const struct trace_burst *b)
{
	struct walk *w = arg;

	(void)part;
	things_begin(w->things, b);
	for (size_t i = 0; i < b->n; i++) {
		struct touch t = {.site = &sites[b->references[i].site],
			.address = b->references[i].address,
			.number = w->number++,
			.burst = w->burst};

		if (!trace_is_reference(t.site->kind))
			continue;
		things_at(w->things, t.site, t.address, &t.thing);
		if (t.thing.kind != THING_HEAP && t.thing.kind != THING_GLOBAL)
			continue;
		find_instance(w, &t);
		w->fn(w->arg, &t);
	}
	w->burst++;
	w->number += TOUCH_WINDOW; /* bursts are never joined */
	return 0;
}

int touches_each(
	struct selection *sel, struct things *things, touch_fn *fn, void *arg, struct err *e)
{
	struct walk w = {.things = things, .fn = fn, .arg = arg};
	uint64_t lost;

	return streams_each_burst(sel, take_burst, &w, &lost, e);
}
