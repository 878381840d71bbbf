#include "export/code_counts.h"

#include "analyze/evidence.h"
#include "analyze/exact_counts.h"
#include "analyze/frequencies.h"
#include "analyze/why.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct code_counts {
	VEC(struct code_image) images;
	uint64_t left_out;
};

/* ---- what was counted ---- */

/* Counts that may be off: so much of one is uncertain. */
static enum frequency_confidence doubtful(uint64_t off, uint64_t count)
{
	double share = (double)off / ((double)count + 1);

	return !off           ? CONFIDENCE_EXACT
	       : share < 0.05 ? CONFIDENCE_HIGH
	       : share < 0.2  ? CONFIDENCE_MEDIUM
			      : CONFIDENCE_LOW;
}

static struct code_procedure *add_procedure(
	struct code_image *to, const struct procedure *p, enum frequency_scale scale)
{
	struct code_procedure *made = vec_add(&to->procedures);

	*made = (struct code_procedure){
		.procedure = p, .scale = scale, .block = to->blocks.n, .edge = to->edges.n};
	return made;
}

static void take_exact(struct code_image *to, struct exact_reader *from)
{
	struct code_procedure *in = NULL;
	struct exact_row row;
	uint64_t off = 0;

	while (exact_reader_next(from, &row) > 0) {
		const struct procedure *p;

		if (row.kind == EXACT_PROCEDURE) {
			p = store_procedure_at(&to->image->procedures, row.procedure);
			off = row.count;
			in = p ? add_procedure(to, p, off ? FREQUENCY_KNOWN : FREQUENCY_EXACT)
			       : NULL;
		} else if (in && row.kind == EXACT_BLOCK) {
			*vec_add(&to->blocks) = (struct code_block){row.a, (uint32_t)row.b,
				(double)row.count, doubtful(off, row.count)};
			in->nblocks++;
		} else if (in) {
			*vec_add(&to->edges) = (struct code_edge){
				row.a, row.b, (double)row.count, doubtful(off, row.count)};
			in->nedges++;
		}
	}
}

/* ---- what is estimated ---- */

static void take_blocks(struct code_image *to, struct code_procedure *in, const struct frequency *f)
{
	for (uint32_t b = 0; b < f->flow->nblocks; b++) {
		const struct flow_block *block = &f->flow->blocks[b];

		if (block->marks & FLOW_PADDING)
			continue;
		*vec_add(&to->blocks) = (struct code_block){
			block->start, block->size, f->block[b].count, f->block[b].confidence};
		in->nblocks++;
	}
}

static void take_edges(struct code_image *to, struct code_procedure *in, const struct frequency *f)
{
	const struct flow *flow = f->flow;

	for (uint32_t i = 0; i < flow->graph.edges; i++) {
		struct graph_edge edge = flow->graph.edge[i];
		const struct flow_block *from = &flow->blocks[edge.from];

		if (edge.from >= flow->nblocks || edge.to >= flow->nblocks)
			continue;
		*vec_add(&to->edges) = (struct code_edge){
			flow->insns[from->first + from->count - 1].address,
			flow->blocks[edge.to].start, f->edge[i].count, f->edge[i].confidence};
		in->nedges++;
	}
}

static bool has(const struct code_image *im, size_t counted, uint64_t start)
{
	size_t low = 0, high = counted; /* exact ones come by start */

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (im->procedures.p[mid].procedure->start < start)
			low = mid + 1;
		else
			high = mid;
	}
	return low < counted && im->procedures.p[low].procedure->start == start;
}

static void take_estimates(struct code_image *to, const struct frequencies *from)
{
	const struct frequencies_row *rows;
	size_t n = frequencies_rows(from, &rows), counted = to->procedures.n;

	for (size_t i = 0; i < n; i++) {
		const struct procedure *p = &to->image->procedures.p[rows[i].procedure];
		struct code_procedure *in;

		if (has(to, counted, p->start))
			continue;
		in = add_procedure(to, p, rows[i].frequency->scale);
		take_blocks(to, in, rows[i].frequency);
		take_edges(to, in, rows[i].frequency);
	}
}

/* ---- the whole ---- */

static int by_start(const void *a, const void *b)
{
	const struct code_procedure *x = a, *y = b;

	return x->procedure->start < y->procedure->start
		       ? -1
		       : x->procedure->start > y->procedure->start;
}

static int by_path(const void *a, const void *b)
{
	const struct selected_image *x = ((const struct code_image *)a)->image;
	const struct selected_image *y = ((const struct code_image *)b)->image;
	int c = strcmp(x->path, y->path);

	return c ? c : memcmp(x->identity.bytes, y->identity.bytes, sizeof x->identity.bytes);
}

static int take_image(struct code_counts *c, struct selection *sel, struct selected_image *im,
	const struct exact_counts *exact, const struct why_machine *machine, struct err *e)
{
	struct code_image *to;
	struct frequencies *estimates;
	struct exact_reader counted;
	int rc = selection_load(sel, im, e);

	if (!rc)
		rc = frequencies_create(sel, im, machine, &estimates, e);
	if (rc)
		return rc;
	to = vec_add(&c->images);
	*to = (struct code_image){.image = im};
	if (exact_counts_of(exact, im, &counted))
		take_exact(to, &counted);
	take_estimates(to, estimates);
	vec_sort(&to->procedures, by_start);
	c->left_out += frequencies_left_out(estimates);
	frequencies_destroy(estimates);
	return 0;
}

int code_counts_create(struct selection *sel, struct code_counts **out, struct err *e)
{
	struct code_counts *c = xcalloc(1, sizeof *c);
	struct selected_image *images;
	size_t n = selection_images(sel, &images);
	struct why_machine machine = {0};
	struct exact_counts *exact = NULL;
	const char *only = selection_filter(sel)->image;
	bool timed;
	int rc = exact_counts_create(sel, &exact, e);

	timed = !rc && evidence_time_event(sel) != SIZE_MAX;
	if (timed)
		rc = why_machine_init(&machine, sel, e);
	for (size_t i = 0; i < n && !rc; i++)
		if (!only || store_image_fits(only, images[i].path, &images[i].identity))
			rc = take_image(c, sel, &images[i], exact, timed ? &machine : NULL, e);
	why_machine_deinit(&machine);
	exact_counts_destroy(exact);
	if (rc) {
		code_counts_destroy(c);
		return rc;
	}
	vec_sort(&c->images, by_path);
	*out = c;
	return 0;
}

void code_counts_destroy(struct code_counts *c)
{
	if (!c)
		return;
	vec_each (im, &c->images) {
		vec_deinit(&im->procedures);
		vec_deinit(&im->blocks);
		vec_deinit(&im->edges);
	}
	vec_deinit(&c->images);
	free(c);
}

size_t code_counts_images(const struct code_counts *c, const struct code_image **out)
{
	*out = c->images.p;
	return c->images.n;
}

uint64_t code_counts_left_out(const struct code_counts *c)
{
	return c->left_out;
}
