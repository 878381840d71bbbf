/*
 * How sure a difference between samples is.
 *
 * A count of samples has an error of its own (sampling: Poisson, or binomial when it is a share of
 * all samples), and runs of one program differ besides. The first is known from one run, the second
 * needs several; of the two intervals of a difference the wider one counts, so that neither many
 * runs of few samples nor few runs of many samples look surer than they are.
 */
#ifndef CULPRIT_ANALYZE_SIGNIFICANCE_H
#define CULPRIT_ANALYZE_SIGNIFICANCE_H

#include <stdbool.h>
#include <stddef.h>

/* ---- distributions; degrees of freedom may be INFINITY ---- */

double normal_quantile(double p);
double student_tail(double t, double df); /* P(T > t) */
double student_quantile(double p, double df);
double chi_square_tail(double x, double df); /* P(X > x) */

/* ---- differences ---- */

/* One quantity on one side of a comparison: the mean over runs of a count of samples, weighted. */
struct side {
	size_t runs;
	double mean, variance; /* over runs; variance 0 with one run */
	double count;          /* samples that the mean rests on, all runs together */
	double unit;           /* what one sample more would add to the mean; > 0 */
	double of;             /* the largest count that there can be; INFINITY: no share */
};

/*
 * From the counts of n > 0 runs, each sample of a run with the weight given; `share`: the weights
 * are one over the run's samples.
 */
struct side side_of(const double *samples, const double *weights, size_t n, bool share);

struct difference {
	double change, low, high; /* after - before, with its interval */
	double p; /* how probable so large a change would be if there were none, both ways */
};

/*
 * Sampling error by Newcombe's method (Wilson's score limits of each side, combined); run-to-run
 * variance by Welch's t. A side of one run is taken to vary as much as the other, relative to its
 * mean; where both have one run, only the sampling error is there.
 */
struct difference difference_of(const struct side *before, const struct side *after, double level);

/*
 * Replaces each p by that of Benjamini and Hochberg (1995): of the differences whose new p is at
 * most 0.05, no more than 5% are expected to be chance.
 */
void adjust_for_many(double *p, size_t n);

/*
 * How probable it is that counts differ that much by sampling alone, when each expects its part of
 * their sum. Parts are positive and need not add up to 1.
 */
double dispersion_p(const double *counts, const double *parts, size_t n);

#endif
