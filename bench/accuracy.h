/*
 * How good estimates of counts are: reads the text of `culprit export -f counts`, and compares
 * estimated counts with exact ones, weighted by samples (the paper's section 6.1.5).
 *
 * Relative measures multiply the estimates of a procedure by the factor that makes right how many
 * bytes of it were executed in all; absolute ones take estimates as they are, of the procedures
 * whose scale is said to be known.
 */
#ifndef CULPRIT_BENCH_ACCURACY_H
#define CULPRIT_BENCH_ACCURACY_H

#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* ---- the text ---- */

struct counted_procedure {
	uint64_t start;
	uint32_t image;
	bool claimed; /* its scale is known or exact */
};

struct counted_block {
	uint64_t start, size;
	uint32_t procedure;
	bool high; /* confidence: high or exact */
	double count;
};

struct counted_edge {
	uint64_t from, to;
	uint32_t procedure;
	double count;
};

struct counts {
	VEC(struct counted_procedure) procedures;
	VEC(struct counted_block) blocks;
	VEC(struct counted_edge) edges;
};

static void counts_deinit(struct counts *c)
{
	vec_deinit(&c->procedures);
	vec_deinit(&c->blocks);
	vec_deinit(&c->edges);
}

/* Images are numbered by build-id, or by path where there is none. */
static uint32_t counts_image(struct strtab *images, const char *id, const char *path)
{
	return strtab_add(images, strcmp(id, "-") ? id : path);
}

static int counts_line(struct counts *c, struct strtab *images, uint32_t *image, const char *line)
{
	char a[4096], b[128];
	uint64_t from, to;
	double count;
	uint32_t procedure = (uint32_t)c->procedures.n - 1;

	if (sscanf(line, "image %127s %4095[^\n]", b, a) == 2) {
		*image = counts_image(images, b, a);
		return 0;
	}
	if (sscanf(line, "procedure %" SCNx64 " %127s", &from, b) == 2) {
		*vec_add(&c->procedures) = (struct counted_procedure){
			.start = from, .image = *image, .claimed = strcmp(b, "relative") != 0};
		return *image == UINT32_MAX ? -EBADMSG : 0;
	}
	if (!c->procedures.n)
		return -EBADMSG;
	if (sscanf(line, "block %" SCNx64 " %" SCNu64 " %lf %127s", &from, &to, &count, b) == 4) {
		*vec_add(&c->blocks) = (struct counted_block){.start = from,
			.size = to,
			.procedure = procedure,
			.count = count,
			.high = !strcmp(b, "high") || !strcmp(b, "exact")};
		return 0;
	}
	if (sscanf(line, "edge %" SCNx64 " %" SCNx64 " %lf", &from, &to, &count) == 3) {
		*vec_add(&c->edges) = (struct counted_edge){
			.from = from, .to = to, .procedure = procedure, .count = count};
		return 0;
	}
	return -EBADMSG;
}

/* -EBADMSG and the number of a line that is none. */
static int counts_read(struct counts *c, struct strtab *images, FILE *in, size_t *number)
{
	uint32_t image = UINT32_MAX;
	char *line = NULL;
	size_t space = 0;
	int rc = 0;

	for (*number = 1; !rc && getline(&line, &space, in) > 0; *number += !rc)
		rc = counts_line(c, images, &image, line);
	free(line);
	return rc;
}

/* ---- which belongs to which ---- */

struct place {
	uint64_t from, to; /* of a block: its start, 0 */
	uint32_t image, pad;
	size_t number; /* in the list it is from */
};

static uint32_t image_of(const struct counts *c, uint32_t procedure)
{
	return c->procedures.p[procedure].image;
}

static void put_place(struct hmap *m, uint32_t image, uint64_t from, uint64_t to, size_t number)
{
	struct place key = {.from = from, .to = to, .image = image};
	bool fresh;
	struct place *p = hmap_put(m, &key, &fresh);

	if (fresh)
		p->number = number;
}

static const struct place *get_place(
	const struct hmap *m, uint32_t image, uint64_t from, uint64_t to)
{
	struct place key = {.from = from, .to = to, .image = image};

	return hmap_get(m, &key);
}

/* ---- comparing ---- */

/* One block of the exact counts with its samples and its estimate. */
struct compared_block {
	const struct counted_block *exact, *estimate; /* estimate NULL: there is none */
	uint64_t samples;
	double relative, absolute; /* estimates over exact counts */
};

struct comparison {
	const struct counts *exact, *estimate;
	double repeats;                /* of the exact run in the estimated one */
	struct compared_block *blocks; /* as in exact */
	double *factor;                /* by procedure of exact, for relative measures */
	struct hmap estimated_edges;
};

static void compare_blocks(struct comparison *c)
{
	struct hmap estimated;

	hmap_init(&estimated, sizeof(struct place), offsetof(struct place, number));
	for (size_t i = 0; i < c->estimate->blocks.n; i++)
		put_place(&estimated, image_of(c->estimate, c->estimate->blocks.p[i].procedure),
			c->estimate->blocks.p[i].start, 0, i);
	c->blocks = xcalloc(c->exact->blocks.n + 1, sizeof *c->blocks);
	for (size_t i = 0; i < c->exact->blocks.n; i++) {
		const struct counted_block *b = &c->exact->blocks.p[i];
		const struct place *p =
			get_place(&estimated, image_of(c->exact, b->procedure), b->start, 0);

		c->blocks[i].exact = b;
		c->blocks[i].estimate = p ? &c->estimate->blocks.p[p->number] : NULL;
	}
	hmap_deinit(&estimated);
}

static void find_factors(struct comparison *c)
{
	double *bytes = xcalloc(c->exact->procedures.n + 1, sizeof *bytes);

	c->factor = xcalloc(c->exact->procedures.n + 1, sizeof *c->factor);
	for (size_t i = 0; i < c->exact->blocks.n; i++) {
		const struct compared_block *b = &c->blocks[i];

		if (!b->estimate)
			continue;
		bytes[b->exact->procedure] += b->estimate->count * (double)b->exact->size;
		c->factor[b->exact->procedure] +=
			b->exact->count * c->repeats * (double)b->exact->size;
	}
	for (size_t i = 0; i < c->exact->procedures.n; i++)
		c->factor[i] = bytes[i] > 0 ? c->factor[i] / bytes[i] : 0;
	free(bytes);
}

/* An estimate over what is right; what never ran is taken to have run once. */
static double ratio(double estimate, double exact)
{
	return exact > 0 ? estimate / exact : 1 + estimate;
}

static void find_ratios(struct comparison *c)
{
	for (size_t i = 0; i < c->exact->blocks.n; i++) {
		struct compared_block *b = &c->blocks[i];
		double exact = b->exact->count * c->repeats;

		if (!b->estimate)
			continue;
		b->absolute = ratio(b->estimate->count, exact);
		b->relative = ratio(b->estimate->count * c->factor[b->exact->procedure], exact);
	}
}

/* Both counts must outlive it. */
static void comparison_init(struct comparison *c, const struct counts *exact,
	const struct counts *estimate, double repeats)
{
	*c = (struct comparison){.exact = exact, .estimate = estimate, .repeats = repeats};
	compare_blocks(c);
	find_factors(c);
	find_ratios(c);
	hmap_init(&c->estimated_edges, sizeof(struct place), offsetof(struct place, number));
	for (size_t i = 0; i < estimate->edges.n; i++)
		put_place(&c->estimated_edges, image_of(estimate, estimate->edges.p[i].procedure),
			estimate->edges.p[i].from, estimate->edges.p[i].to, i);
}

static void comparison_deinit(struct comparison *c)
{
	free(c->blocks);
	free(c->factor);
	hmap_deinit(&c->estimated_edges);
}

static bool is_within(double r, double tolerance)
{
	return r >= 1 - tolerance && r <= 1 + tolerance;
}

static bool is_claimed(const struct comparison *c, const struct compared_block *b)
{
	return b->estimate && c->estimate->procedures.p[b->estimate->procedure].claimed;
}

/* ---- measures ---- */

struct accuracy {
	double samples;                            /* in blocks of the exact counts */
	double estimated, claimed, high;           /* shares of these */
	double relative[3], absolute[3];           /* shares within 5, 10, 15% */
	double relative_overlap, absolute_overlap; /* of executed bytes */
	double relative_edges, absolute_edges;     /* share of executions within 10% */
	double high_within;                        /* of high confidence: within 10%, relative */
};

static const double accuracy_steps[3] = {0.05, 0.10, 0.15};

static double part(double a, double b)
{
	return b > 0 ? a / b : NAN;
}

static void measure_samples(const struct comparison *c, struct accuracy *a)
{
	double claimed = 0, high = 0, within[2][3] = {0}, high_within = 0;

	for (size_t i = 0; i < c->exact->blocks.n; i++) {
		const struct compared_block *b = &c->blocks[i];
		double n = (double)b->samples;

		a->samples += n;
		if (!b->estimate)
			continue;
		a->estimated += n;
		claimed += is_claimed(c, b) ? n : 0;
		high += b->estimate->high ? n : 0;
		high_within += b->estimate->high && is_within(b->relative, 0.1) ? n : 0;
		for (int k = 0; k < 3; k++) {
			within[0][k] += is_within(b->relative, accuracy_steps[k]) ? n : 0;
			within[1][k] +=
				is_claimed(c, b) && is_within(b->absolute, accuracy_steps[k]) ? n
											      : 0;
		}
	}
	for (int k = 0; k < 3; k++) {
		a->relative[k] = part(within[0][k], a->samples);
		a->absolute[k] = part(within[1][k], claimed);
	}
	a->estimated = part(a->estimated, a->samples);
	a->claimed = part(claimed, a->samples);
	a->high = part(high, a->samples);
	a->high_within = part(high_within, high);
}

/* The sum over blocks of the lesser of two shares of executed bytes; absolute: of claimed ones. */
static double measure_overlap(const struct comparison *c, bool absolute)
{
	double exact = 0, estimate = 0, sum = 0;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < c->exact->blocks.n; i++) {
			const struct compared_block *b = &c->blocks[i];
			double size = (double)b->exact->size, x = size * b->exact->count, y = 0;

			if (absolute && !is_claimed(c, b))
				continue;
			if (b->estimate)
				y = size * b->estimate->count *
				    (absolute ? 1 : c->factor[b->exact->procedure]);
			exact += pass ? 0 : x;
			estimate += pass ? 0 : y;
			sum += pass && exact > 0 && estimate > 0 ? fmin(x / exact, y / estimate)
								 : 0;
		}
	return exact > 0 ? sum : NAN;
}

static double measure_edges(const struct comparison *c, bool absolute)
{
	double all = 0, within = 0;

	for (size_t i = 0; i < c->exact->edges.n; i++) {
		const struct counted_edge *x = &c->exact->edges.p[i], *y;
		const struct place *p = get_place(
			&c->estimated_edges, image_of(c->exact, x->procedure), x->from, x->to);
		double factor = absolute ? 1 : c->factor[x->procedure];

		y = p ? &c->estimate->edges.p[p->number] : NULL;
		if (absolute && (!y || !c->estimate->procedures.p[y->procedure].claimed))
			continue;
		all += x->count;
		if (y && is_within(ratio(y->count * factor, x->count * c->repeats), 0.1))
			within += x->count;
	}
	return part(within, all);
}

static void comparison_measure(const struct comparison *c, struct accuracy *a)
{
	*a = (struct accuracy){0};
	measure_samples(c, a);
	a->relative_overlap = measure_overlap(c, false);
	a->absolute_overlap = measure_overlap(c, true);
	a->relative_edges = measure_edges(c, false);
	a->absolute_edges = measure_edges(c, true);
}

#endif
