/*
 * Where the kernel keeps what each CPU has of its own, as far as the interpreter needs it: places
 * in the kernel's per-CPU section, from its type information. Most kernels tell no symbol for them.
 */
#ifndef CULPRIT_COLLECT_SHADOW_PERCPU_H
#define CULPRIT_COLLECT_SHADOW_PERCPU_H

#include <stdbool.h>
#include <stdint.h>

struct percpu_places {
	uint64_t base;    /* what is added to a per-CPU address: the base of gs */
	uint64_t task;    /* who runs */
	uint64_t preempt; /* the preemption count */
};

/* False when the kernel does not tell. */
bool percpu_places_find(struct percpu_places *out);

#endif
