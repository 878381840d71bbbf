/* Call paths that nobody has seen, by what the code allows (calls/derive.h). */
#include "calls/derive.h"
#include "collect/contexts_internal.h"
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

		if (n->at.image == key)
			contexts_name(c, image, n->at.procedure);
		path = n->parent;
	}
}

uint32_t contexts_derive(struct contexts *c, uint32_t program, uint32_t image, enum stack_kind kind,
	const struct call_frame *f)
{
	struct call_map *known = contexts_program(c, contexts_key(c, program))->known;
	uint32_t path;

	if (!f->procedure || !f->height || kind == STACK_OTHER)
		return CALL_NONE;
	read_callers(c, image);
	read_callers(c, program);
	path = call_map_derive(known, c->callers, kind, f);
	name_callers(c, image, known, path);
	name_callers(c, program, known, path);
	return path;
}
