#include "calls/callers.h"

#include "base/buf.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"
#include "image/frames.h"
#include "image/image.h"
#include "isa/decode.h"

#include <stdlib.h>
#include <string.h>

/* A procedure: of an image, or (image 0) the hash of a name. Compared as bytes. */
struct callee_key {
	uint64_t image, procedure;
};

struct callee {
	struct callee_key key;
	uint64_t name;  /* hash; 0: none */
	uint32_t first; /* of its callers */
	uint32_t pad;
};

struct call_callers {
	struct hmap images; /* keys */
	struct hmap callees;
	VEC(struct call_caller) list;
};

struct call_callers *call_callers_create(void)
{
	struct call_callers *c = xcalloc(1, sizeof *c);

	hmap_init(&c->images, sizeof(uint64_t), sizeof(uint64_t));
	hmap_init(&c->callees, sizeof(struct callee), sizeof(struct callee_key));
	return c;
}

void call_callers_destroy(struct call_callers *c)
{
	if (!c)
		return;
	hmap_deinit(&c->images);
	hmap_deinit(&c->callees);
	vec_deinit(&c->list);
	free(c);
}

bool call_callers_has(const struct call_callers *c, uint64_t key)
{
	return hmap_get(&c->images, &key);
}

/* ---- code ---- */

/* The image that is read. */
struct reading {
	struct call_callers *c;
	uint64_t key;
	struct image *im;
	const struct frames *frames;
};

static struct callee *callee_of(struct call_callers *c, uint64_t image, uint64_t procedure)
{
	struct callee_key key = {image, procedure};
	bool fresh;
	struct callee *e = hmap_put(&c->callees, &key, &fresh);

	if (fresh)
		e->first = CALLERS_NONE;
	return e;
}

/* The name as programs call it: "puts" of "puts@plt". */
static uint64_t hash_name(const char *name)
{
	return hash_bytes(name, strcspn(name, "@")) | 1;
}

static void add_call(struct reading *r, uint64_t caller, const struct insn *i)
{
	const struct frame_rule *rule = frames_at(r->frames, i->address);
	const struct procedure *target = image_procedure_at(r->im, i->target);
	struct callee *to;

	if (!rule || rule->base != FRAME_RSP || rule->offset <= 0 || !target ||
		target->start != i->target)
		return;
	if (target->source == PROCEDURE_PLT && target->name)
		to = callee_of(r->c, 0, hash_name(target->name));
	else
		to = callee_of(r->c, r->key, target->start);
	/* A procedure that calls twice does it alike, mostly. */
	if (to->first != CALLERS_NONE) {
		const struct call_caller *last = &r->c->list.p[to->first];

		if (last->image == r->key && last->procedure == caller &&
			last->down == (uint32_t)rule->offset)
			return;
	}
	*vec_add(&r->c->list) = (struct call_caller){.image = r->key,
		.procedure = caller,
		.down = (uint32_t)rule->offset,
		.next = to->first};
	to->first = (uint32_t)r->c->list.n - 1;
}

static void read_procedure(struct reading *r, const struct procedure *p, struct buf *code)
{
	if (p->name)
		callee_of(r->c, r->key, p->start)->name = hash_name(p->name);
	for (uint32_t k = 0; k < p->nranges; k++) {
		struct insn i;

		code->n = 0;
		if (image_code(r->im, &p->ranges[k], code) < 0)
			continue;
		for (size_t at = 0; at < code->n; at += i.length) {
			if (isa_decode(code->p + at, code->n - at, p->ranges[k].start + at, &i) < 0)
				break;
			if (i.kind == INSN_CALL)
				add_call(r, p->start, &i);
		}
	}
}

void call_callers_add(
	struct call_callers *c, uint64_t key, struct image *im, const struct frames *frames)
{
	struct reading r = {c, key, im, frames};
	const struct procedure *list;
	size_t n = image_procedures(im, &list);
	struct buf code = {0};
	uint64_t size = 0;
	bool held = image_hold(im);

	hmap_put(&c->images, &key, NULL);
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < list[i].nranges; k++)
			size += list[i].ranges[k].size;
	for (size_t i = 0; i < n && size <= CALLERS_CODE_MOST; i++)
		if (list[i].source != PROCEDURE_PLT)
			read_procedure(&r, &list[i], &code);
	if (held)
		image_release(im);
	buf_deinit(&code);
}

/* ---- asking ---- */

void call_callers_of(
	const struct call_callers *c, uint64_t image, uint64_t procedure, uint32_t lists[2])
{
	const struct callee *e = hmap_get(&c->callees, &(struct callee_key){image, procedure});
	const struct callee *named =
		e && e->name ? hmap_get(&c->callees, &(struct callee_key){0, e->name}) : NULL;

	lists[0] = e ? e->first : CALLERS_NONE;
	lists[1] = named ? named->first : CALLERS_NONE;
}

const struct call_caller *call_callers_get(const struct call_callers *c, uint32_t number)
{
	return &c->list.p[number];
}
