/*
 * Plug-ins looking at bursts that are run again. They remember what they like by thread; of threads
 * that are too many, the memory of one is another's.
 */
#ifndef CULPRIT_COLLECT_BURST_PLUGINS_H
#define CULPRIT_COLLECT_BURST_PLUGINS_H

#include "isa/interp.h"

#include <stddef.h>
#include <stdint.h>

struct burst_plugins;
struct plugin;
struct shadow_burst;

/* NULL for none. The list outlives it. */
struct burst_plugins *burst_plugins_create(const struct plugin *list, size_t n);
void burst_plugins_destroy(struct burst_plugins *b);

void burst_plugins_begin(struct burst_plugins *b);
void burst_plugins_step(struct burst_plugins *b, const struct interp *m);

/* A value of the instruction at pc, seen under a return address (0: any, or unknown). */
typedef void burst_plugins_fn(
	void *arg, unsigned kind, uint64_t pc, uint64_t value, uint64_t context);
void burst_plugins_end(
	struct burst_plugins *b, const struct shadow_burst *from, burst_plugins_fn *fn, void *arg);

#endif
