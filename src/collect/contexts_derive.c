/* Call paths that nobody has seen, by what the code allows (calls/derive.h). */
#include "calls/derive.h"
#include "collect/contexts_internal.h"
#include "collect/driver.h"
#include "collect/image_cache.h"

static void read_callers(struct contexts *c, uint32_t image)
{
	uint64_t key = contexts_key(c, image);
	const struct frames *frames;
	struct image *im;

	if (!c->callers)
		c->callers = call_callers_create();
	if (call_callers_has(c->callers, key))
		return;
	frames = contexts_rows(c, image);
	im = frames ? image_cache_functions(c->images, c->processes, image) : NULL;
	if (im)
		call_callers_add(c->callers, key, im, frames);
}

/* Those of the image that the path goes through, for the store. */
static void name_callers(
	struct contexts *c, uint32_t image, const struct call_map *known, uint32_t path)
{
	uint64_t key = contexts_key(c, image);

	while (path != CALL_NONE) {
		const struct call_node *n = call_tree_node(call_map_tree(known), path);
		struct called_procedure seen = {.vaddr = n->at.procedure, .image = image};

		if (n->at.image == key && n->at.procedure)
			hmap_put(&c->procedures, &seen, NULL);
		path = n->parent;
	}
}

uint32_t contexts_derive(
	struct contexts *c, const struct context_sample *s, const struct call_frame *f)
{
	struct call_map *known = contexts_program(c, contexts_key(c, s->program))->known;
	enum stack_kind kind = (enum stack_kind)(s->where >> WHERE_KIND_SHIFT);
	uint32_t path;

	if (!f->procedure || !f->height || kind == STACK_OTHER)
		return CALL_NONE;
	read_callers(c, s->image);
	read_callers(c, s->program);
	path = call_map_derive(known, c->callers, kind, f);
	name_callers(c, s->image, known, path);
	name_callers(c, s->program, known, path);
	return path;
}
