#include "export/bolt.h"

#include "analyze/path_code.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct bolt {
	const struct code_image *im;
	FILE *out;
	size_t lines;
};

/* What ran less than once is nothing to lay out code by. */
static bool ran(double count)
{
	return count >= 0.5;
}

static const struct code_block *block_at(
	const struct code_image *im, const struct code_procedure *p, uint64_t address)
{
	for (size_t i = 0; i < p->nblocks; i++) {
		const struct code_block *b = &im->blocks.p[p->block + i];

		if (address >= b->start && address - b->start < b->size)
			return b;
	}
	return NULL;
}

static void put_edge(struct bolt *w, const struct code_procedure *p, const struct code_edge *e)
{
	const struct code_block *from = block_at(w->im, p, e->from);

	if (!ran(e->count))
		return;
	if (from && from->start + from->size == e->to)
		fprintf(w->out, "F %" PRIx64 " %" PRIx64 " %.0f\n", from->start, e->to, e->count);
	else
		fprintf(w->out, "B %" PRIx64 " %" PRIx64 " %.0f 0\n", e->from, e->to, e->count);
	w->lines++;
}

struct calls {
	struct bolt *w;
	double count;
};

static void put_call(void *arg, const struct insn *insn)
{
	struct calls *c = arg;

	if (insn->kind != INSN_CALL)
		return;
	fprintf(c->w->out, "B %" PRIx64 " %" PRIx64 " %.0f 0\n", insn->address, insn->target,
		c->count);
	c->w->lines++;
}

/* Who calls whom orders functions; a block calls as often as it runs. */
static void put_calls(struct bolt *w, struct path_codes *codes, const struct code_procedure *p)
{
	struct path_code *code;

	if (path_code_create(codes, w->im->image, p->procedure, &code))
		return;
	for (size_t i = 0; i < p->nblocks; i++) {
		const struct code_block *b = &w->im->blocks.p[p->block + i];

		if (ran(b->count))
			path_code_block(
				code, b->start, b->size, put_call, &(struct calls){w, b->count});
	}
	path_code_destroy(code);
}

size_t bolt_write(struct selection *sel, const struct code_image *im, FILE *out)
{
	struct bolt w = {.im = im, .out = out};
	struct path_codes *codes = path_codes_create(sel);

	vec_each (p, &im->procedures) {
		for (size_t i = 0; i < p->nedges; i++)
			put_edge(&w, p, &im->edges.p[p->edge + i]);
		put_calls(&w, codes, p);
	}
	path_codes_destroy(codes);
	return w.lines;
}
