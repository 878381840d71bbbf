/*
 * What one sample costs on this host: a pinned spin that reads the time-stamp counter, with and
 * without the sampling event; the cost is the time that went missing, by the sample.
 */
#ifndef CULPRIT_COLLECT_CALIBRATE_H
#define CULPRIT_COLLECT_CALIBRATE_H

#include <stdbool.h>

struct err;
struct event;

struct calibration {
	double cost;   /* seconds a sample */
	double spread; /* half the interquartile range over the rounds, seconds */
	int rounds;
};

/*
 * Measures (about 0.25 s), or reads what was measured since boot on this kernel with this event
 * from the cache ($XDG_CACHE_HOME/culprit or ~/.cache/culprit, /var/lib/culprit for root);
 * `fresh` forces measuring.
 */
int calibrate_cost(
	const struct event *ev, bool bpf, bool fresh, struct calibration *out, struct err *e);

/* The highest rate whose cost stays within budget (a share of each CPU), within sane bounds. */
double calibrate_rate(const struct calibration *c, double budget);

#endif
