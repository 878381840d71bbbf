/*
 * Who allocates: of the calls that led to an allocation the innermost that is no wrapper's. A
 * wrapper is known by its name, or by what it does: several callers have objects of different sizes
 * from the same call.
 */
#include "analyze/things_internal.h"

#include <stdlib.h>
#include <string.h>

#define LEVELS 3 /* wrappers around wrappers */

/* What came by a call. */
struct allocator_key {
	uint64_t image, at;
};

struct allocator {
	struct allocator_key key;
	uint64_t caller, size; /* of the first object */
	bool callers, sizes;   /* others came, too */
};

const char *things_frame_name(struct things *t, const struct object_frame *f)
{
	return f->image ? things_procedure_name(t, f->image, f->procedure)
			: t->set.names.strings[f->name];
}

/* Functions that hand on memory, and containers that grow. */
static bool is_named_so(const char *name)
{
	static const char *const parts[] = {"alloc", "operator new", "strdup", "strndup",
		"::capacity(", "::reserve(", "::resize(", "::grow", "::push", "::append(",
		"::insert(", "::_M_", "::emplace"};

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (strcasestr(name, parts[i]))
			return true;
	return false;
}

/* Calls of the edited files come first: others have no code to look at. */
static uint32_t by_name(struct things *t, const struct object_path *p)
{
	const struct object_frame *list = t->set.frames.p + p->first;
	uint32_t own = p->n;

	for (uint32_t i = 0; i < p->n; i++) {
		own = list[i].image && own == p->n ? i : own;
		if (list[i].image && !is_named_so(things_frame_name(t, &list[i])))
			return i;
	}
	return own < p->n ? own : 0;
}

static const struct object_frame *frame_of(const struct things *t, uint32_t path, uint32_t level)
{
	const struct object_path *p = &t->set.paths.p[path];

	return level < p->n ? &t->set.frames.p[p->first + level] : NULL;
}

static void add_object(const struct things *t, struct hmap *all, const struct object *o)
{
	const struct object_frame *f = frame_of(t, o->path, t->site[o->path]);
	const struct object_frame *next = frame_of(t, o->path, t->site[o->path] + 1);
	struct allocator_key key;
	struct allocator *a;
	bool fresh;

	if (!f || !next)
		return;
	key = (struct allocator_key){f->image, f->at};
	a = hmap_put(all, &key, &fresh);
	if (fresh) {
		a->caller = next->at;
		a->size = o->size;
	}
	a->callers |= a->caller != next->at;
	a->sizes |= a->size != o->size;
}

/* One level outwards where it is a wrapper's; whether there was one. */
static bool step_outwards(struct things *t)
{
	struct hmap all;
	bool changed = false;

	hmap_init(&all, sizeof(struct allocator), sizeof(struct allocator_key));
	vec_each (o, &t->set.objects)
		if (o->path != OBJECT_NONE)
			add_object(t, &all, o);
	for (uint32_t i = 0; i < t->set.paths.n; i++) {
		const struct object_frame *f = frame_of(t, i, t->site[i]);
		const struct object_frame *next = frame_of(t, i, t->site[i] + 1);
		struct allocator_key key = {f ? f->image : 0, f ? f->at : 0};
		const struct allocator *a = hmap_get(&all, &key);

		if (!a || !a->callers || !a->sizes || !next || !next->image)
			continue;
		t->site[i]++;
		changed = true;
	}
	hmap_deinit(&all);
	return changed;
}

void things_find_allocators(struct things *t)
{
	t->site = xcalloc(t->set.paths.n + 1, sizeof *t->site);
	for (uint32_t i = 0; i < t->set.paths.n; i++)
		t->site[i] = by_name(t, &t->set.paths.p[i]);
	for (int level = 0; level < LEVELS && step_outwards(t); level++)
		;
}
