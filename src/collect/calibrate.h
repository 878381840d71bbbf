/*
 * What one sample costs on this host, as programs feel it: the time that is missing from a pinned
 * spin when it is sampled, and what a tour of memory right after it takes longer because caches are
 * cold.
 */
#ifndef CULPRIT_COLLECT_CALIBRATE_H
#define CULPRIT_COLLECT_CALIBRATE_H

#include <stdbool.h>

struct err;
struct event;

struct calibration {
	double cost;   /* seconds a sample */
	double spread; /* half of what the price changed while it was measured */
	int rounds;    /* samples that it was measured on */
};

/*
 * Measures (about 1.5 s), or reads what was measured since boot on this kernel with this event
 * from the cache ($XDG_CACHE_HOME/culprit or ~/.cache/culprit, /var/lib/culprit for root);
 * `fresh` forces measuring.
 */
int calibrate_cost(
	const struct event *ev, bool bpf, bool fresh, struct calibration *out, struct err *e);

/* Only what was measured before. */
bool calibrate_known(const struct event *ev, bool bpf, struct calibration *out);

/*
 * The highest rate whose cost stays within budget (a share of each CPU), within sane bounds. A
 * tenth of the budget is left to the sampler's own processes.
 */
double calibrate_rate(const struct calibration *c, double budget);

#endif
