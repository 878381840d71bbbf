/*
 * What changed from some runs to others: every procedure's time, or its share of the time, before
 * and after, with the interval of the change (analyze/significance.h).
 */
#ifndef CULPRIT_ANALYZE_DIFF_H
#define CULPRIT_ANALYZE_DIFF_H

#include "analyze/significance.h"

#include <stdbool.h>
#include <stddef.h>

struct runs;
struct run_row;

struct diff_row {
	const struct run_row *row; /* NULL: the total */
	double before, after;      /* mean of a run: seconds or events, or a share */
	double share;              /* of the total, the larger of before and after */
	struct difference change;  /* 95% */
	double adjusted_p;         /* with all rows tested */
	bool significant;
};

struct diff {
	struct diff_row *rows; /* significant ones first; then by the size of the change */
	size_t n, tested;
	struct diff_row total; /* always seconds or events */
};

/*
 * The first nbefore runs against the others, of which there are some. By share or by time. Rows
 * with fewer than 10 samples in all runs together are not tested: they could not be significant,
 * and would only make the others less so (the sum says nothing about the difference).
 */
void diff_init(struct diff *d, const struct runs *r, size_t nbefore, bool share);
void diff_deinit(struct diff *d);

/* The change relative to before; INFINITY where there was nothing. */
double diff_relative(const struct diff_row *row);

/*
 * Whether something got slower by more than this (0.05 is 5%), significantly. Procedures count when
 * they were there before and have at least this share.
 */
bool diff_is_slower(const struct diff_row *row, double more_than, double min_share);

#endif
