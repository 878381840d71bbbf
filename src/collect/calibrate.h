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
	double cost; /* seconds a sample */
	double more; /* that it may be, where a budget has to hold */
	int prices;  /* times that it was measured */
};

/*
 * In a virtual machine the price of an interrupt doubles and halves within seconds, so one look is
 * not enough: measures (0.35 s each) until the price was taken `enough` times since boot on this
 * kernel with this event, and once more while there is something to gain. What was measured is kept
 * ($XDG_CACHE_HOME/culprit or ~/.cache/culprit, /var/lib/culprit for root); `fresh` forgets it.
 * Times in which somebody else had the CPU do not count. The cost is the middle of the prices: a
 * moment in which the machine did something else makes it dearer by any amount. A budget must bear such moments, too: the mean and its standard error.
 */
int calibrate_cost(
	const struct event *ev, int enough, bool fresh, struct calibration *out, struct err *e);

/* Only what was measured before. */
bool calibrate_known(const struct event *ev, struct calibration *out);

/*
 * The highest rate whose cost stays within budget (a share of each CPU), within sane bounds. A
 * fifth of the budget is left to the sampler's own processes, and to dearer times.
 */
double calibrate_rate(const struct calibration *c, double budget);

#endif
