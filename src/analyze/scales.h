/*
 * The absolute scales of all procedures of an image, from all that says anything about them:
 * anchors (frequency.h), calls (ties.h), excursions (excursions.h), and the tempo of their code
 * (why.h).
 *
 * Each says how large a factor is, or a ratio of two, with an error; the factors are those that fit
 * best, and their errors follow. What contradicts the rest loses its say (Student's distribution
 * rather than Gauss's), and tempos have an error in common: a machine that is busy, a program that
 * is unlike those they were fitted to. One that anchors contradict is corrected by them.
 */
#ifndef CULPRIT_ANALYZE_SCALES_H
#define CULPRIT_ANALYZE_SCALES_H

#include "analyze/frequencies.h"

struct scales_tempos {
	const double *tempo; /* by row, NAN where there is none */
	double common;       /* the error that they have in common, as a logarithm */
};

/*
 * Multiplies the counts of rows whose scale is relative; it becomes known where the error is small
 * enough. A known scale that is far from the tempo is taken back first: words are moved by what no
 * burst has shown.
 */
void scales_apply(struct frequencies_row *rows, size_t n, const struct scales_tempos *tempos);

/* What it would multiply counts with, by row. */
void scales_guess(const struct frequencies_row *rows, size_t n, const struct scales_tempos *tempos,
	double *factor);

#endif
