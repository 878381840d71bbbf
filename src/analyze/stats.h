/*
 * How much procedures vary over runs (dcpistats, Figure 3 of the DCPI paper): statistics of their
 * samples, each run being one set. A run without samples of a procedure counts as 0.
 */
#ifndef CULPRIT_ANALYZE_STATS_H
#define CULPRIT_ANALYZE_STATS_H

#include <stdbool.h>
#include <stddef.h>

struct runs;
struct run_row;

struct stats_row {
	const struct run_row *row;
	double range; /* (max - min) / sum */
	size_t n;     /* runs */
	double sum, share, mean, stddev, min, max;
	bool varies; /* more than sampling explains */
};

struct stats {
	struct stats_row *rows; /* by range, the largest first; then by sum */
	size_t n;
	double sum;
};

/*
 * `normalise`: as if all runs had the mean number of samples, so that only shares vary. `varies` is
 * decided by the chi-square test of dispersion, at 5% of false discoveries over all rows.
 */
void stats_init(struct stats *s, const struct runs *r, bool normalise);
void stats_deinit(struct stats *s);

#endif
