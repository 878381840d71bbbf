/*
 * Events by name, as perf users write them: "cycles", "cpu-clock:u", "page-faults", "r1a2",
 * "sched:sched_switch", "cpu/event=0x3c/", "uprobe:FILE:SYMBOL".
 */
#ifndef CULPRIT_COLLECT_EVENT_H
#define CULPRIT_COLLECT_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>

struct err;

struct event {
	char name[96]; /* as asked for, modifiers included */
	struct perf_event_attr attr;
	char probed[256]; /* the file that a uprobe is in; "" for other events */
	bool is_clock;    /* counts nanoseconds */
	bool fell_back;   /* "cycles" where there is no PMU: this is cpu-clock, and name says so */
};

/*
 * Parses one event. Modifiers :u and :k. "cycles" (also the default, spec NULL) becomes cpu-clock
 * where the machine has no cycle counter, with fell_back set. -EINVAL for a name that nobody knows,
 * -EOPNOTSUPP for one that this machine does not have, -EACCES when tracefs cannot be read.
 */
int event_parse(const char *spec, struct event *out, struct err *e);

/* Calls fn for every event this machine has (for doctor and completion). */
void event_each(void (*fn)(void *arg, const char *name), void *arg);

#endif
