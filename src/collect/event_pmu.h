/*
 * Events of a PMU as sysfs describes them: `format/` says which bits a term goes to, `events/` has
 * names for combinations of terms.
 */
#ifndef CULPRIT_COLLECT_EVENT_PMU_H
#define CULPRIT_COLLECT_EVENT_PMU_H

#include <linux/perf_event.h>

struct err;

#define EVENT_PMU_DEVICES "/sys/bus/event_source/devices"

/*
 * "event=0x3c,umask=1" or "cpu-cycles" of the PMU that has a directory below `devices`.
 * -EOPNOTSUPP when there is no such PMU, -EINVAL for a term that it does not have.
 */
int event_pmu_parse(const char *devices, const char *pmu, const char *terms,
	struct perf_event_attr *attr, struct err *e);

/* Calls fn with "pmu/name/" for every named event. */
void event_pmu_each(const char *devices, void (*fn)(void *arg, const char *name), void *arg);

#endif
