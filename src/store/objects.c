#include "store/objects.h"

#include "base/buf.h"
#include "base/cursor.h"
#include "base/mem.h"
#include "store/pack.h"

#include <errno.h>
#include <stdlib.h>

/*
 * A profile of objects (unpacked):
 *
 *   uleb    number of parts
 *   parts, each:
 *     uleb    number of names, each a text with a NUL
 *     uleb    number of frames, each:
 *       u64     key of the image
 *       uleb    start of the procedure
 *       sleb    return address - that
 *       uleb    name
 *     uleb    number of paths, each: uleb number of frames, which follow each other
 *     uleb    number of images, each: uleb process, u64 key, u64 bias, u64 start, uleb size, uleb
 * name uleb    number of stacks, each: uleb process, uleb thread, u64 end uleb    number of
 * objects, each: uleb    process, uleb path + 1, uleb ordinal sleb    address - that of the one
 * before, modulo 2^64 uleb    size sleb    time - that of the one before, modulo 2^64
 *
 * The last part ends the blob.
 */
#define FRAME_LEAST  11 /* bytes */
#define IMAGE_LEAST  27
#define STACK_LEAST  10
#define OBJECT_LEAST 6

/* ---- writing ---- */

static void put_frames(const struct object_set *s, struct buf *out)
{
	buf_uleb(out, s->names.n);
	for (size_t i = 0; i < s->names.n; i++)
		buf_str(out, s->names.strings[i]);
	buf_uleb(out, s->frames.n);
	vec_each (f, &s->frames) {
		buf_u64(out, f->image);
		buf_uleb(out, f->procedure);
		buf_sleb(out, (int64_t)(f->at - f->procedure));
		buf_uleb(out, f->name);
	}
	buf_uleb(out, s->paths.n);
	vec_each (p, &s->paths)
		buf_uleb(out, p->n);
}

static void put_places(const struct object_set *s, struct buf *out)
{
	buf_uleb(out, s->images.n);
	vec_each (m, &s->images) {
		buf_uleb(out, m->process);
		buf_u64(out, m->image);
		buf_u64(out, m->bias);
		buf_u64(out, m->start);
		buf_uleb(out, m->end - m->start);
		buf_uleb(out, m->name);
	}
	buf_uleb(out, s->stacks.n);
	vec_each (t, &s->stacks) {
		buf_uleb(out, t->process);
		buf_uleb(out, t->thread);
		buf_u64(out, t->end);
	}
}

void object_set_put(const struct object_set *s, struct buf *out)
{
	uint64_t address = 0, born = 0;

	buf_uleb(out, 1);
	put_frames(s, out);
	put_places(s, out);
	buf_uleb(out, s->objects.n);
	vec_each (o, &s->objects) {
		buf_uleb(out, o->process);
		buf_uleb(out, o->path == OBJECT_NONE ? 0 : (uint64_t)o->path + 1);
		buf_uleb(out, o->ordinal);
		buf_sleb(out, (int64_t)(o->address - address));
		buf_uleb(out, o->size);
		buf_sleb(out, (int64_t)(o->born - born));
		address = o->address;
		born = o->born;
	}
}

/* ---- reading ---- */

/* A count of things that have at least so many bytes each. */
static uint64_t count_of(struct cursor *c, size_t least)
{
	uint64_t n = cursor_uleb(c);

	if (n > cursor_left(c) / least)
		c->failed = true;
	return c->failed ? 0 : n;
}

/* A number below a limit; what is not is damage. */
static uint32_t below(struct cursor *c, uint64_t limit)
{
	uint64_t n = cursor_uleb(c);

	if (n >= limit)
		c->failed = true;
	return c->failed ? 0 : (uint32_t)n;
}

/* The numbers that names of this part have in the whole. */
struct part {
	struct object_set *set;
	struct cursor *at;
	VEC(uint32_t) names;
	size_t first_frame, first_path;
};

static void read_names(struct part *p)
{
	uint64_t n = count_of(p->at, 1);

	for (uint64_t i = 0; i < n && !p->at->failed; i++)
		*vec_add(&p->names) = strtab_add(&p->set->names, cursor_str(p->at));
}

static uint32_t read_name(struct part *p)
{
	uint32_t number = below(p->at, p->names.n);

	return p->at->failed ? 0 : p->names.p[number];
}

static void read_frames(struct part *p)
{
	uint64_t n = count_of(p->at, FRAME_LEAST), left;

	p->first_frame = p->set->frames.n;
	for (uint64_t i = 0; i < n && !p->at->failed; i++) {
		struct object_frame *f = vec_add(&p->set->frames);

		*f = (struct object_frame){.image = cursor_u64(p->at)};
		f->procedure = cursor_uleb(p->at);
		f->at = f->procedure + (uint64_t)cursor_sleb(p->at);
		f->name = read_name(p);
	}
	left = n;
	p->first_path = p->set->paths.n;
	n = count_of(p->at, 1);
	for (uint64_t i = 0; i < n && !p->at->failed; i++) {
		uint32_t frames = below(p->at, left + 1);

		*vec_add(&p->set->paths) =
			(struct object_path){(uint32_t)(p->set->frames.n - left), frames};
		left -= frames;
	}
}

static void read_places(struct part *p)
{
	struct cursor *c = p->at;
	uint64_t n = count_of(c, IMAGE_LEAST);

	for (uint64_t i = 0; i < n && !c->failed; i++) {
		struct object_image *m = vec_add(&p->set->images);

		*m = (struct object_image){.process = below(c, (uint64_t)UINT32_MAX + 1)};
		m->image = cursor_u64(c);
		m->bias = cursor_u64(c);
		m->start = cursor_u64(c);
		m->end = m->start + cursor_uleb(c);
		m->name = read_name(p);
		if (m->end < m->start)
			c->failed = true;
	}
	n = count_of(c, STACK_LEAST);
	for (uint64_t i = 0; i < n && !c->failed; i++) {
		struct object_stack *t = vec_add(&p->set->stacks);

		*t = (struct object_stack){.process = below(c, (uint64_t)UINT32_MAX + 1)};
		t->thread = below(c, (uint64_t)UINT32_MAX + 1);
		t->end = cursor_u64(c);
	}
}

static void read_objects(struct part *p)
{
	struct cursor *c = p->at;
	uint64_t n = count_of(c, OBJECT_LEAST), address = 0, born = 0;
	size_t paths = p->set->paths.n - p->first_path;

	for (uint64_t i = 0; i < n && !c->failed; i++) {
		struct object *o = vec_add(&p->set->objects);
		uint32_t path;

		*o = (struct object){.process = below(c, (uint64_t)UINT32_MAX + 1)};
		path = below(c, paths + 1);
		o->path = path ? (uint32_t)(p->first_path + path - 1) : OBJECT_NONE;
		o->ordinal = below(c, (uint64_t)UINT32_MAX + 1);
		o->address = address += (uint64_t)cursor_sleb(c);
		o->size = cursor_uleb(c);
		o->born = born += (uint64_t)cursor_sleb(c);
	}
}

static void read_part(struct object_set *s, struct cursor *c)
{
	struct part p = {.set = s, .at = c};

	read_names(&p);
	read_frames(&p);
	read_places(&p);
	read_objects(&p);
	vec_deinit(&p.names);
}

int object_set_add(struct object_set *s, const void *p, size_t n)
{
	struct cursor c = cursor_over(p, n);
	uint64_t parts = cursor_uleb(&c);

	for (; parts && !c.failed; parts--)
		read_part(s, &c);
	return c.failed || cursor_left(&c) ? -EBADMSG : 0;
}

void object_set_deinit(struct object_set *s)
{
	vec_deinit(&s->frames);
	vec_deinit(&s->paths);
	vec_deinit(&s->images);
	vec_deinit(&s->stacks);
	vec_deinit(&s->objects);
	strtab_deinit(&s->names);
}

/* ---- as a blob ---- */

static int weigh(const void *p, size_t n, uint64_t *objects)
{
	struct object_set s = {0};
	int rc = object_set_add(&s, p, n);

	*objects = s.objects.n;
	object_set_deinit(&s);
	return rc;
}

static int check(const void *p, size_t n)
{
	uint64_t objects;

	return weigh(p, n, &objects);
}

static int merge(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	if (check(a, na) || check(b, nb))
		return -EBADMSG;
	parts_join(a, na, b, nb, out);
	return 0;
}

const struct blob_type blob_objects = {
	.name = "objects", .merge = merge, .check = check, .weight = weigh};
