#include "analyze/things_internal.h"

#include "base/buf.h"

#include <inttypes.h>
#include <string.h>

void things_group_text(const struct things *t, uint32_t group, struct buf *out)
{
	const struct thing_group *g = &t->groups.p[group];

	buf_printf(out, "%s", g->name);
	if (g->kind == THING_STACK)
		buf_printf(out, "'s frame");
	if (*g->where)
		buf_printf(out, " (%s)", g->where);
}

static void put_heap(struct things *t, const struct thing *x, struct buf *out)
{
	const struct thing_group *g = &t->groups.p[x->group];
	uint64_t offset;
	const struct type *type = thing_type(t, x, &offset);

	buf_printf(out, "%s: ", g->name);
	if (!type) {
		buf_printf(out, "+%" PRIu64, x->offset);
		return;
	}
	buf_printf(out, "%s", *type->name ? type->name : "struct");
	if (g->size > type->size && g->size % type->size == 0)
		buf_printf(out, "[%" PRIu64 "]", x->offset / type->size);
	type_field(type, offset, out);
}

static void put_frame(struct things *t, const struct thing *x, struct buf *out)
{
	const struct thing_group *g = &t->groups.p[x->group];
	struct thing_file *f = g->image ? things_file(t, g->image) : NULL;
	struct type_variable v;

	buf_printf(out, "%s's frame", g->name);
	if (!g->procedure)
		return;
	if (f && f->types && types_local_at(f->types, g->procedure, (int64_t)x->offset, &v)) {
		buf_printf(out, ": %s", v.name);
		type_field(v.type, x->offset - v.address, out);
		return;
	}
	buf_printf(out, " -%" PRIu64, -x->offset);
}

void things_text(struct things *t, const struct thing *x, struct buf *out)
{
	const struct thing_group *g = x->group == OBJECT_NONE ? NULL : &t->groups.p[x->group];

	if (x->kind == THING_THREAD) {
		buf_printf(out, "thread-local");
	} else if (!g) {
		buf_printf(
			out, x->kind == THING_HEAP ? "an allocation: +%" PRIu64 : "?", x->offset);
	} else if (x->kind == THING_HEAP) {
		put_heap(t, x, out);
	} else if (x->kind == THING_STACK) {
		put_frame(t, x, out);
	} else {
		buf_printf(out, "%s", g->name);
		if (g->type)
			type_field(g->type, x->offset, out);
		else if (x->offset)
			buf_printf(out, "+0x%" PRIx64, x->offset);
	}
}

void things_path_text(struct things *t, uint32_t path, struct buf *out)
{
	const struct object_path *p;

	if (path == OBJECT_NONE)
		return;
	p = &t->set.paths.p[path];
	for (uint32_t i = p->n; i--;) {
		const struct object_frame *f = &t->set.frames.p[p->first + i];
		const char *name = things_frame_name(t, f);

		/* What every program begins with says nothing. */
		if (strncmp(name, "__libc_start", 12) && strcmp(name, "_start"))
			buf_printf(out, "%s%s", out->n ? " > " : "", name);
	}
}
