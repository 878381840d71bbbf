/*
 * Bursts of the interpreter in the interrupt (shadow.h), made sense of in user space.
 */
#ifndef CULPRIT_COLLECT_BURST_H
#define CULPRIT_COLLECT_BURST_H

#include "collect/shadow.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An instruction that was interpreted: m->effect tells what it did, m is the state after it. */
typedef void burst_step_fn(void *arg, const struct interp *m);

/*
 * Runs a burst with inputs again and calls back for every instruction that was looked at. False
 * when it does not come out where the kernel's run did, which a changed or damaged burst would not.
 */
bool burst_replay(const struct shadow_burst *b, const uint64_t *words, struct interp *m,
	burst_step_fn *fn, void *arg);

/* A transfer whose target the code alone does not tell: conditional, indirect, return. */
typedef void burst_edge_fn(void *arg, uint64_t from, uint64_t to);

/* The edges of a burst without inputs. */
void burst_edges(const struct shadow_burst *b, const uint64_t *words, burst_edge_fn *fn, void *arg);

/* The words that a burst without inputs moved, and how many they are. */
size_t burst_moved(
	const struct shadow_burst *b, const uint64_t *words, const struct shadow_moved **list);

/* What was read of watched words before it: b->watched of them. NULL: nothing. */
const struct shadow_reading *burst_reading(const struct shadow_burst *b, const uint64_t *words);

#endif
