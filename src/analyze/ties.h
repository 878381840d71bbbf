/*
 * What calls say about the scales of procedures: how often one is entered is how often it is
 * called.
 *
 * Returns that bursts saw (evidence.h) tell who calls whom, and how a procedure's entries are
 * shared out among its callers. The error of a tie is that of the calls seen, of the frequencies of
 * both ends relative to their procedures, and of what is not known about any.
 */
#ifndef CULPRIT_ANALYZE_TIES_H
#define CULPRIT_ANALYZE_TIES_H

#include "analyze/frequencies.h"

struct tie {
	uint32_t caller, callee; /* rows */
	double step, variance;   /* the callee's counts must be multiplied with so much more than
				    the caller's, as a logarithm */
};

/* Between rows of one image, in *out (free it); returns how many. */
size_t ties_find(const struct frequencies_row *rows, size_t n, struct tie **out);

#endif
