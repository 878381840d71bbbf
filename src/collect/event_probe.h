/*
 * Probes in programs as events: "uprobe:FILE:SYMBOL" where a procedure is entered, "uretprobe:"
 * where it has returned; an address of the file (0x4330) in place of the symbol.
 */
#ifndef CULPRIT_COLLECT_EVENT_PROBE_H
#define CULPRIT_COLLECT_EVENT_PROBE_H

#include <stdbool.h>

struct err;
struct event;

/* Whether the text is one. */
bool event_is_probe(const char *spec);

/* -EINVAL when nothing has this name, -EOPNOTSUPP for a kernel without probes, what the file said.
 */
int event_probe_parse(const char *spec, struct event *ev, struct err *e);

#endif
