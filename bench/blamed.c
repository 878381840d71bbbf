/*
 * What 'why' finds in every procedure of a database, a line for each.
 *
 *   blamed DATABASE
 *
 * Prints image, start, scale and samples; then, in samples: execution, static stalls, dynamic
 * stalls, unexplained ones, gain, the widths of the culprits' ranges, culprits times dynamic
 * stalls; and the least and the most of D-cache, DTLB, I-cache and ITLB.
 */
#include "rows.h"

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

static void print_row(
	void *arg, const struct frequencies_row *row, const struct why_machine *machine)
{
	struct err e = {0};
	struct why *w;

	(void)arg;
	if (why_create(row->evidence, row->frequency, machine, &w, &e) < 0)
		errx(1, "%s", e.text);
	if (w->cycles > 0)
		print_procedure(w);
	why_destroy(w);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		errx(2, "usage: blamed DATABASE");
	each_row(argv[1], print_row, NULL);
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
