#include "analyze/path_code.h"

#include "base/buf.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "isa/decode.h"

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
	struct buf code;   /* of the ranges, one behind the other */
	struct hmap spans; /* struct span */
};

/* ---- where code comes from ---- */

static int code_from_file(struct path_code *c, const struct selected_image *im)
{
	struct image *file = NULL;
	int rc = im->kind == IMAGE_ELF ? image_open_path(im->path, &file, NULL) : -ENOENT;

	if (!rc && (!im->identity.size || !image_id_equal(image_id(file), &im->identity)))
		rc = -ENOENT;
	for (uint32_t i = 0; i < c->procedure->nranges && !rc; i++)
		rc = image_code(file, &c->procedure->ranges[i], &c->code);
	image_destroy(file);
	return rc ? -ENOENT : 0;
}

int path_code_create(struct selection *sel, const struct selected_image *im,
	const struct procedure *p, struct path_code **out)
{
	struct path_code *c = xcalloc(1, sizeof *c);

	c->procedure = p;
	hmap_init(&c->spans, sizeof(struct span), offsetof(struct span, instructions));
	if (store_code(selection_store(sel), im->id, p->start, &c->code, NULL)) {
		c->code.n = 0;
		if (code_from_file(c, im)) {
			path_code_destroy(c);
			return -ENOENT;
		}
	}
	*out = c;
	return 0;
}

void path_code_destroy(struct path_code *c)
{
	if (!c)
		return;
	buf_deinit(&c->code);
	hmap_deinit(&c->spans);
	free(c);
}

/* The bytes from an address to the end of its range. */
static const uint8_t *code_at(const struct path_code *c, uint64_t address, size_t *n)
{
	size_t before = 0;

	for (uint32_t i = 0; i < c->procedure->nranges; i++) {
		const struct range *r = &c->procedure->ranges[i];
		size_t left = before < c->code.n ? c->code.n - before : 0;
		size_t there = r->size < left ? r->size : left;

		if (address >= r->start && address - r->start < there) {
			*n = there - (address - r->start);
			return c->code.p + before + (address - r->start);
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

	while (address != s->next) {
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
	}
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
