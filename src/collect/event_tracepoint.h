/*
 * Tracepoints, by tracefs.
 */
#ifndef CULPRIT_COLLECT_EVENT_TRACEPOINT_H
#define CULPRIT_COLLECT_EVENT_TRACEPOINT_H

#include <stdint.h>

struct err;

/*
 * The number of a tracepoint, for perf_event_attr.config. -EINVAL when there is none of that name,
 * -EACCES when tracefs is not mounted or may not be read.
 */
int event_tracepoint_id(const char *system, const char *name, uint64_t *id, struct err *e);

/* Calls fn with "system:name" for every tracepoint that we may see. */
void event_tracepoint_each(void (*fn)(void *arg, const char *name), void *arg);

#endif
