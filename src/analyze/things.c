#include "analyze/things_internal.h"

#include "analyze/call_name.h"
#include "analyze/streams.h"
#include "base/buf.h"
#include "base/err.h"
#include "image/image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define STACK_MOST  ((uint64_t)8 << 20) /* how far below its end a stack is looked for */
#define FRAME_MOST  ((uint64_t)64 << 10)
#define FRAMES_MOST 64
#define USES_MOST   100000

/* What makes a group. */
struct place_key {
	uint64_t image, at;
	uint64_t kind;
};

struct place {
	struct place_key key;
	uint32_t group;
};

/* ---- files ---- */

static void open_file(struct thing_file *f)
{
	struct image *im;

	if (!f->selected || f->selected->kind != IMAGE_ELF ||
		image_open_path(f->selected->path, &im, NULL))
		return;
	if (image_id_equal(image_id(im), &f->selected->identity)) {
		if (frames_open(im, &f->frames))
			f->frames = NULL;
		data_symbols_read(&f->symbols, f->selected->path);
		if (!lines_open(f->selected->path, &f->selected->identity, &f->lines, NULL))
			f->types = types_create(f->lines);
	}
	image_destroy(im);
}

struct thing_file *things_file(struct things *t, uint64_t key)
{
	struct thing_file *f;

	vec_each (known, &t->files)
		if (known->key == key)
			return known;
	f = vec_add(&t->files);
	*f = (struct thing_file){.key = key, .selected = call_name_image(t->sel, key)};
	open_file(f);
	return f;
}

const char *things_procedure_name(struct things *t, uint64_t image, uint64_t procedure)
{
	struct call_place at = {.image = image, .procedure = procedure};
	char text[512];

	return arena_strdup(&t->arena, call_name(t->sel, &at, text, sizeof text));
}

/* ---- groups ---- */

static uint32_t find_group(
	struct things *t, enum thing_kind kind, uint64_t image, uint64_t at, bool *fresh)
{
	struct place_key key = {image, at, kind};
	struct place *p = hmap_put(&t->places, &key, fresh);

	if (*fresh) {
		p->group = (uint32_t)t->groups.n;
		*vec_add(&t->groups) = (struct thing_group){.kind = kind,
			.image = image,
			.at = at,
			.name = "",
			.where = "",
			.path = OBJECT_NONE};
	}
	return p->group;
}

static const char *source_of(struct things *t, const struct object_frame *f)
{
	struct thing_file *file = f->image ? things_file(t, f->image) : NULL;
	const char *slash;
	struct line line;
	char text[512];

	if (!file || !file->lines || lines_at(file->lines, f->at - 1, &line))
		return "";
	slash = strrchr(line.file, '/');
	snprintf(text, sizeof text, "%s:%d", slash ? slash + 1 : line.file, line.line);
	return arena_strdup(&t->arena, text);
}

static uint32_t group_of_path(struct things *t, uint32_t path)
{
	const struct object_frame *f;
	bool fresh;
	uint32_t group;

	if (path == OBJECT_NONE)
		return OBJECT_NONE;
	if (t->of_path[path])
		return t->of_path[path] - 1;
	if (!t->set.paths.p[path].n)
		return OBJECT_NONE;
	f = &t->set.frames.p[t->set.paths.p[path].first + t->site[path]];
	group = find_group(t, THING_HEAP, f->image, f->at, &fresh);
	if (fresh) {
		struct thing_group *g = &t->groups.p[group];

		g->procedure = f->procedure;
		g->path = path;
		g->name = things_frame_name(t, f);
		g->where = source_of(t, f);
	}
	t->of_path[path] = group + 1;
	return group;
}

/* ---- kinds of addresses ---- */

static bool at_heap(struct things *t, uint64_t address, struct thing *out)
{
	uint32_t number = object_index_find(t->index, t->process, t->time, address);
	const struct object *o;

	if (number == OBJECT_NONE)
		return false;
	o = &t->set.objects.p[number];
	out->kind = THING_HEAP;
	out->object = number;
	out->base = o->address;
	out->offset = address - o->address;
	out->group = group_of_path(t, o->path);
	return true;
}

static const struct object_image *image_at(const struct things *t, uint64_t address)
{
	for (size_t i = t->set.images.n; i--;) {
		const struct object_image *m = &t->set.images.p[i];

		if (m->process == t->process && address - m->start < m->end - m->start)
			return m;
	}
	return NULL;
}

/* A variable by DWARF, by a symbol, or all that nobody names of an image. */
static void name_global(struct things *t, const struct object_image *m, uint64_t vaddr,
	const char **name, uint64_t *start, uint64_t *size, const struct type **type)
{
	struct thing_file *f = m->image ? things_file(t, m->image) : NULL;
	const struct type_variable *v = f && f->types ? types_variable_at(f->types, vaddr) : NULL;
	const struct data_symbol *s = f ? data_symbols_at(&f->symbols, vaddr) : NULL;
	const char *path = t->set.names.strings[m->name], *slash = strrchr(path, '/');

	*type = v ? v->type : NULL;
	*start = v ? v->address : s ? s->start : 0;
	*size = v ? v->size : s ? s->size : m->end - m->start;
	*name = v ? v->name : s ? f->symbols.names.strings[s->name] : slash ? slash + 1 : path;
}

static bool at_global(struct things *t, uint64_t address, struct thing *out)
{
	const struct object_image *m = image_at(t, address);
	uint64_t vaddr = m ? address - m->bias : 0, start, size;
	const struct type *type;
	const char *name;
	bool fresh;

	if (!m)
		return false;
	name_global(t, m, vaddr, &name, &start, &size, &type);
	out->kind = THING_GLOBAL;
	out->group = find_group(t, THING_GLOBAL, m->image ? m->image : m->name + 2, start, &fresh);
	out->base = start + m->bias;
	out->offset = vaddr - start;
	if (fresh) {
		struct thing_group *g = &t->groups.p[out->group];

		g->name = arena_strdup(&t->arena, name);
		g->type = type;
		g->size = size;
		g->objects = 1;
	}
	return true;
}

static bool is_stack(const struct things *t, uint64_t address)
{
	vec_each (s, &t->set.stacks)
		if (s->process == t->process && address < s->end && s->end - address < STACK_MOST)
			return true;
	return false;
}

static void show_frame(struct things *t, const struct trace_site *s, uint64_t cfa)
{
	size_t n = 0;

	/* Frames below it have come back. */
	vec_each (f, &t->frames)
		if (f->cfa > cfa)
			t->frames.p[n++] = *f;
	t->frames.n = n;
	if (n < FRAMES_MOST)
		*vec_add(&t->frames) = (struct thing_frame){s->procedure, s->image, cfa};
}

/* The frame that ends next above an address. */
static const struct thing_frame *frame_around(const struct things *t, uint64_t address)
{
	const struct thing_frame *best = NULL;

	vec_each (f, &t->frames)
		if (address < f->cfa && f->cfa - address < FRAME_MOST &&
			(!best || f->cfa < best->cfa))
			best = f;
	return best;
}

static void at_stack(struct things *t, uint64_t address, struct thing *out)
{
	const struct thing_frame *f = frame_around(t, address);
	bool fresh;

	out->kind = THING_STACK;
	out->group = find_group(t, THING_STACK, f ? f->image : 0, f ? f->procedure : 0, &fresh);
	out->base = f ? f->cfa : address;
	out->offset = address - out->base;
	if (fresh) {
		struct thing_group *g = &t->groups.p[out->group];

		g->procedure = f ? f->procedure : 0;
		g->name = f ? things_procedure_name(t, f->image, f->procedure) : "somebody";
		g->objects = 1;
	}
}

void things_begin(struct things *t, const struct trace_burst *b)
{
	t->process = b->process;
	t->time = b->time;
	t->frames.n = 0;
}

void things_at(struct things *t, const struct trace_site *site, uint64_t address, struct thing *out)
{
	const struct thing_site *s = things_site(t, site);

	*out = (struct thing){.group = OBJECT_NONE, .object = OBJECT_NONE};
	if (s->thread) {
		out->kind = THING_THREAD;
		return;
	}
	if (s->slot)
		show_frame(t, site, address - (uint64_t)s->offset);
	if (s->slot)
		at_stack(t, address, out);
	else if (!at_heap(t, address, out) && !at_global(t, address, out) && is_stack(t, address))
		at_stack(t, address, out);
}

/* ---- all bursts ---- */

static void count_use(struct things *t, const struct trace_site *s, const struct thing *x)
{
	struct {
		uint64_t offset;
		uint32_t group, size;
	} key = {x->offset, x->group, s->size};
	struct thing_use *u = hmap_get(&t->uses, &key);
	bool fresh = false;

	if (!u && t->uses.n >= USES_MOST)
		return;
	if (!u)
		u = hmap_put(&t->uses, &key, &fresh);
	u->count++;
	if (fresh) {
		u->image = s->image;
		u->at = s->at;
	}
}

static int learn_burst(
	void *arg, const struct trace_site *sites, uint32_t part, const struct trace_burst *b)
{
	struct things *t = arg;
	struct thing x;

	(void)part;
	things_begin(t, b);
	for (size_t i = 0; i < b->n; i++) {
		const struct trace_site *s = &sites[b->references[i].site];

		if (!trace_is_reference(s->kind))
			continue;
		things_at(t, s, b->references[i].address, &x);
		if (x.group == OBJECT_NONE)
			continue;
		t->groups.p[x.group].references++;
		if (x.kind != THING_HEAP)
			continue;
		count_use(t, s, &x);
		if (!t->counted[x.object]) {
			struct thing_group *g = &t->groups.p[x.group];
			uint64_t size = t->set.objects.p[x.object].size;

			t->counted[x.object] = true;
			g->objects++;
			g->size = size > g->size ? size : g->size;
		}
	}
	return 0;
}

static int add_profile(void *arg, const struct store_profile *p)
{
	struct things *t = arg;

	return object_set_add(&t->set, p->data, p->size);
}

static int load(struct things *t, struct err *e)
{
	struct store_filter filter = *selection_filter(t->sel);
	uint64_t lost;
	int rc;

	filter.type = &blob_objects;
	filter.event = NULL;
	rc = store_profiles(selection_store(t->sel), &filter, add_profile, t, e);
	if (rc == -EBADMSG)
		return err_set(e, rc, "objects are damaged: 'culprit db check' says which");
	if (rc)
		return rc;
	t->index = object_index_create(&t->set);
	t->of_path = xcalloc(t->set.paths.n + 1, sizeof *t->of_path);
	t->counted = xcalloc(t->set.objects.n + 1, sizeof *t->counted);
	things_find_allocators(t);
	rc = streams_each_burst(t->sel, learn_burst, t, &lost, e);
	if (!rc)
		things_find_types(t);
	return rc;
}

int things_create(struct selection *sel, struct things **out, struct err *e)
{
	struct things *t = xcalloc(1, sizeof *t);
	int rc;

	t->sel = sel;
	hmap_init(&t->sites, sizeof(struct thing_site), sizeof(((struct thing_site *)0)->key));
	hmap_init(&t->places, sizeof(struct place), sizeof(struct place_key));
	hmap_init(&t->uses, sizeof(struct thing_use), offsetof(struct thing_use, count));
	rc = load(t, e);
	if (rc)
		things_destroy(t);
	else
		*out = t;
	return rc;
}

void things_destroy(struct things *t)
{
	if (!t)
		return;
	vec_each (f, &t->files) {
		types_destroy(f->types);
		lines_destroy(f->lines);
		frames_destroy(f->frames);
		data_symbols_deinit(&f->symbols);
	}
	vec_deinit(&t->files);
	hmap_deinit(&t->sites);
	hmap_deinit(&t->places);
	hmap_deinit(&t->uses);
	vec_deinit(&t->groups);
	vec_deinit(&t->frames);
	object_index_destroy(t->index);
	object_set_deinit(&t->set);
	free(t->of_path);
	free(t->site);
	free(t->counted);
	arena_deinit(&t->arena);
	free(t);
}

size_t things_groups(const struct things *t, const struct thing_group **out)
{
	*out = t->groups.p;
	return t->groups.n;
}

const struct object_set *things_set(const struct things *t)
{
	return &t->set;
}

bool things_has_objects(const struct things *t)
{
	return t->set.images.n != 0;
}
