/*
 * What edited runs that measure paths tell of measuring itself: how often metrics were read, what
 * that takes at least, and how much of what was measured it is.
 */
#ifndef CULPRIT_CMD_MEASURING_H
#define CULPRIT_CMD_MEASURING_H

#include "paths/read.h"

/* Ticks of the clock that measuring a path takes; that a reading takes. */
struct measuring {
	double each, reading;
};
void measuring_calibrate(struct measuring *m);

/* Rows as paths_read gives them get the metrics that profiles have; `names` becomes their names. */
void measuring_settle(const struct measuring *m, const struct metric_names *measured,
	struct path_rows *rows, struct metric_names *names);

/* In a line or two, if anything was measured. */
void measuring_say(const struct measuring *m, const struct paths_read_summary *sum);

#endif
