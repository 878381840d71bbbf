/*
 * What 'why' finds in every procedure of a database, a line for each.
 *
 *   blamed DATABASE
 *
 * Prints image, start, scale and samples; then, in samples: execution, static stalls, dynamic
 * stalls, unexplained ones, gain, the widths of the culprits' ranges, culprits times dynamic
 * stalls; and the least and the most of D-cache, DTLB, I-cache and ITLB.
 */
#include "analyze/evidence.h"
#include "analyze/frequencies.h"
#include "analyze/why.h"
#include "base/err.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>

/* Cycles of stalls, each times the number of its culprits. */
static double count_culprits(const struct why *w)
{
	double sum = 0;

	for (uint32_t i = 0; i < w->evidence->flow->ninsns; i++) {
		const struct why_insn *insn = &w->insns[i];

		sum += insn->nstalls * (insn->stall - insn->unexplained) * insn->count;
	}
	return sum;
}

static void print_procedure(const struct why *w)
{
	static const enum culprit caches[] = {
		CULPRIT_DCACHE, CULPRIT_DTLB, CULPRIT_ICACHE, CULPRIT_ITLB};
	const struct why_summary *s = &w->summary;
	const struct evidence *ev = w->evidence;
	double samples = w->cycles / w->sample, fixed = 0, width = 0;

	for (int i = 0; i < WHY_CAUSES; i++)
		fixed += s->cause[i];
	for (int i = 0; i < CULPRITS; i++)
		width += s->culprit[i].max - s->culprit[i].min;
	printf("%s 0x%" PRIx64 " %s %.2f %.2f %.2f %.2f %.2f %.2f %.2f %.2f", ev->image->path,
		ev->image->procedures.p[ev->procedure].start,
		w->frequency->scale == FREQUENCY_RELATIVE ? "relative" : "known", samples,
		s->execution * samples, fixed * samples, s->dynamic * samples,
		s->unexplained * samples, s->unexplained_gain * samples, width * samples,
		count_culprits(w) / w->sample);
	for (size_t i = 0; i < sizeof caches / sizeof *caches; i++)
		printf(" %.2f %.2f", s->culprit[caches[i]].min * samples,
			s->culprit[caches[i]].max * samples);
	putchar('\n');
}

static int print_image(struct selection *sel, struct selected_image *im,
	const struct why_machine *machine, struct err *e)
{
	const struct frequencies_row *rows;
	struct frequencies *f;
	size_t n;
	int rc = frequencies_create(sel, im, machine, &f, e);

	if (rc)
		return rc;
	n = frequencies_rows(f, &rows);
	for (size_t i = 0; i < n && !rc; i++) {
		struct why *w;

		rc = why_create(rows[i].evidence, rows[i].frequency, machine, &w, e);
		if (rc)
			break;
		if (w->cycles > 0)
			print_procedure(w);
		why_destroy(w);
	}
	frequencies_destroy(f);
	return rc;
}

int main(int argc, char **argv)
{
	struct selection_options o = {0};
	struct selected_image *images;
	struct why_machine machine;
	struct selection *sel;
	struct store *store;
	struct err e = {0};
	size_t n;

	if (argc != 2)
		errx(2, "usage: blamed DATABASE");
	if (store_open(argv[1], STORE_READ, &store, &e) < 0 ||
		selection_create(store, &o, &sel, &e) < 0 ||
		why_machine_init(&machine, sel, &e) < 0)
		errx(2, "%s", e.text);
	n = selection_images(sel, &images);
	for (size_t i = 0; i < n; i++)
		if (selection_load(sel, &images[i], &e) < 0 ||
			print_image(sel, &images[i], &machine, &e) < 0)
			errx(1, "%s", e.text);
	why_machine_deinit(&machine);
	selection_destroy(sel);
	store_close(store);
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
