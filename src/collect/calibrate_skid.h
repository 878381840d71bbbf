/*
 * Where the samples of an event fall on this host, and how fast its cores are.
 *
 * A core takes an interrupt only when the instruction it waits for is done, so the sample falls
 * behind the one that took the time. How far is measured on loops of our own in which one
 * instruction takes nearly all of it: a load that misses, a division, a locked addition. The speed
 * is that of a chain of additions, each of which takes a cycle: what a clock's samples stand for in
 * cycles.
 */
#ifndef CULPRIT_COLLECT_CALIBRATE_SKID_H
#define CULPRIT_COLLECT_CALIBRATE_SKID_H

#include <stdbool.h>

struct err;
struct event;

struct skid {
	int instructions;     /* that most samples fall behind the one that takes the time */
	double share;         /* of the samples that do so; 0: not known */
	double cycles_per_ns; /* of a core that is busy; 0: not known */
};

/*
 * What was measured since boot on this kernel with this event, or measures it (0.2 s) and keeps it
 * where calibrate.h keeps the cost; `fresh` measures anyway. Only the speed is known of events that
 * do not go on while a program works, such as page faults. -EAGAIN when the machine is too busy.
 */
int calibrate_skid(const struct event *ev, bool fresh, struct skid *out, struct err *e);

/* Only what was measured before. */
bool calibrate_skid_known(const struct event *ev, struct skid *out);

#endif
