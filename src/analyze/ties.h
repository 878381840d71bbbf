/*
 * What calls say about the scales of procedures: how often one is entered is how often it is
 * called, by all of its callers together.
 *
 * Returns that bursts saw (evidence.h) tell who calls whom. How entries are shared out among the
 * callers they do not tell well, since bursts begin where time is spent: the ratio to a single
 * caller among several is off by 0.27 in the median, that to the sum of all by 0.09
 * (bench/RESULTS.md). So there is one tie for each callee.
 */
#ifndef CULPRIT_ANALYZE_TIES_H
#define CULPRIT_ANALYZE_TIES_H

#include "analyze/frequencies.h"

/* Calls by one procedure. */
struct tie_caller {
	uint32_t caller; /* a row */
	double calls;    /* by its flow, at its scale */
	double variance; /* of their logarithm */
};

struct tie {
	uint32_t callee; /* a row */
	double entries;  /* that the callers account for, at its scale */
	double variance; /* of what compares them with the sum of the calls; the callers' own is
			    apart */
	struct tie_caller *callers;
	size_t ncallers;
};

/* Between those rows of one image that have a number (others: GRAPH_NONE), in *out; returns how
 * many. */
size_t ties_find(
	const struct frequencies_row *rows, size_t n, const uint32_t *number, struct tie **out);
void ties_free(struct tie *list, size_t n);

#endif
