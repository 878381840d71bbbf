#include "analyze/path_code.h"

#include "base/buf.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>

/* A block as a path goes through it. */
struct span {
	uint64_t start, next; /* next 0: to its end */
	uint64_t stops;       /* it ends in a call that does not come back */
	uint64_t instructions;
};

struct path_code {
	const struct procedure *procedure;
	const uint8_t *code; /* of the ranges, one behind the other */
	size_t size;
	struct hmap spans; /* struct span */
};

/* ---- where code comes from ---- */

struct code_place {
	uint64_t start;
	size_t offset, size;
};

struct image_code {
	int64_t image;
	struct image *file; /* NULL unless it is the one that ran */
	struct hmap places; /* struct code_place */
	struct buf code;
};

struct path_codes {
	struct selection *sel;
	VEC(struct image_code *) images;
};

struct path_codes *path_codes_create(struct selection *sel)
{
	struct path_codes *c = xcalloc(1, sizeof *c);

	c->sel = sel;
	return c;
}

void path_codes_destroy(struct path_codes *c)
{
	if (!c)
		return;
	vec_each (i, &c->images) {
		image_destroy((*i)->file);
		hmap_deinit(&(*i)->places);
		buf_deinit(&(*i)->code);
		free(*i);
	}
	vec_deinit(&c->images);
	free(c);
}

static int keep_code(void *arg, const struct store_procedure *p)
{
	struct image_code *to = arg;
	struct code_place *at = hmap_put(&to->places, &p->p.start, NULL);

	at->offset = to->code.n;
	at->size = p->code_size;
	buf_put(&to->code, p->code, p->code_size);
	return 0;
}

static void open_file(struct image_code *to, const struct selected_image *im)
{
	struct image *file;

	if (im->kind != IMAGE_ELF || !im->identity.size || image_open_path(im->path, &file, NULL))
		return;
	if (image_id_equal(image_id(file), &im->identity))
		to->file = file;
	else
		image_destroy(file);
}

static struct image_code *codes_of(struct path_codes *c, const struct selected_image *im)
{
	struct image_code *fresh;

	vec_each (i, &c->images)
		if ((*i)->image == im->id)
			return *i;
	fresh = xcalloc(1, sizeof *fresh);
	fresh->image = im->id;
	hmap_init(&fresh->places, sizeof(struct code_place), offsetof(struct code_place, offset));
	store_codes(selection_store(c->sel), im->id, keep_code, fresh, NULL);
	open_file(fresh, im);
	*vec_add(&c->images) = fresh;
	return fresh;
}

/* What the database lacks is put behind what it has. */
static struct code_place *code_from_file(struct image_code *from, const struct procedure *p)
{
	size_t before = from->code.n;
	struct code_place *at;
	int rc = from->file ? 0 : -ENOENT;

	for (uint32_t i = 0; i < p->nranges && !rc; i++)
		rc = image_code(from->file, &p->ranges[i], &from->code);
	if (rc) {
		from->code.n = before;
		return NULL;
	}
	at = hmap_put(&from->places, &p->start, NULL);
	at->offset = before;
	at->size = from->code.n - before;
	return at;
}

int path_code_create(struct path_codes *codes, const struct selected_image *im,
	const struct procedure *p, struct path_code **out)
{
	struct image_code *from = codes_of(codes, im);
	const struct code_place *at = hmap_get(&from->places, &p->start);
	struct path_code *c;

	if (!at)
		at = code_from_file(from, p);
	if (!at)
		return -ENOENT;
	c = xcalloc(1, sizeof *c);
	c->procedure = p;
	c->code = from->code.p + at->offset;
	c->size = at->size;
	hmap_init(&c->spans, sizeof(struct span), offsetof(struct span, instructions));
	*out = c;
	return 0;
}

void path_code_destroy(struct path_code *c)
{
	if (!c)
		return;
	hmap_deinit(&c->spans);
	free(c);
}

/* The bytes from an address to the end of its range. */
static const uint8_t *code_at(const struct path_code *c, uint64_t address, size_t *n)
{
	size_t before = 0;

	for (uint32_t i = 0; i < c->procedure->nranges; i++) {
		const struct range *r = &c->procedure->ranges[i];
		size_t left = before < c->size ? c->size - before : 0;
		size_t there = r->size < left ? r->size : left;

		if (address >= r->start && address - r->start < there) {
			*n = there - (address - r->start);
			return c->code + before + (address - r->start);
		}
		before += r->size;
	}
	return NULL;
}

/* ---- walking ---- */

static bool is_end(enum insn_kind kind)
{
	return kind == INSN_JUMP || kind == INSN_BRANCH || kind == INSN_JUMP_INDIRECT ||
	       kind == INSN_RETURN || kind == INSN_TRAP;
}

static bool is_call(enum insn_kind kind)
{
	return kind == INSN_CALL || kind == INSN_CALL_INDIRECT;
}

/* How many there are; 0 where code is missing. */
static uint64_t walk_span(
	const struct path_code *c, const struct span *s, path_code_fn *fn, void *arg)
{
	uint64_t address = s->start, found = 0;

	do { /* a block may go to itself */
		struct insn insn;
		size_t n;
		const uint8_t *code = code_at(c, address, &n);

		if (!code || isa_decode(code, n, address, &insn))
			return 0;
		if (fn)
			fn(arg, address);
		found++;
		if (is_end(insn.kind) || (s->stops && is_call(insn.kind)))
			break;
		address += insn.length;
	} while (address != s->next);
	return found;
}

static struct span span_of(const struct path_shape *s, uint32_t i)
{
	bool last = i + 1 == s->n;

	return (struct span){.start = s->blocks[i],
		.next = last ? s->next : s->blocks[i + 1],
		.stops = last && s->end == PATH_STOP};
}

uint64_t path_code_length(struct path_code *c, const struct path_shape *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		struct span key = span_of(s, i), *span;
		bool fresh;

		span = hmap_put(&c->spans, &key, &fresh);
		if (fresh)
			span->instructions = walk_span(c, &key, NULL, NULL);
		if (!span->instructions)
			return 0;
		sum += span->instructions;
	}
	return sum;
}

int path_code_each(struct path_code *c, const struct path_shape *s, path_code_fn *fn, void *arg)
{
	for (uint32_t i = 0; i < s->n; i++) {
		struct span span = span_of(s, i);

		if (!walk_span(c, &span, fn, arg))
			return -ENOENT;
	}
	return 0;
}

void path_code_block(
	struct path_code *c, uint64_t start, uint32_t size, path_code_insn_fn *fn, void *arg)
{
	for (uint64_t address = start; address < start + size;) {
		struct insn insn;
		size_t n;
		const uint8_t *code = code_at(c, address, &n);

		if (!code || isa_decode(code, n, address, &insn))
			return;
		fn(arg, &insn);
		address += insn.length;
	}
}
