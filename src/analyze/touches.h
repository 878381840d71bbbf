/*
 * Bursts as what they touched: one reference after the other with the thing that it was of. What
 * advice about data is made of.
 */
#ifndef CULPRIT_ANALYZE_TOUCHES_H
#define CULPRIT_ANALYZE_TOUCHES_H

#include "analyze/things.h"

#include <stdint.h>

#define TOUCH_LINE   64 /* bytes of a cache line */
#define TOUCH_WINDOW 32 /* references: what is touched again within so many is touched together */

struct touch {
	const struct trace_site *site;
	uint64_t address;
	uint64_t number; /* of the reference, over all bursts */
	uint64_t burst;  /* of the burst */
	struct thing thing;
	const struct type *type; /* a struct, or NULL */
	uint64_t instance;       /* where this one of it begins: address of the thing, or element */
	uint64_t offset;         /* in it */
};

typedef void touch_fn(void *arg, const struct touch *t);
/* All of a selection; frames and thread-local memory are left out. */
int touches_each(
	struct selection *sel, struct things *things, touch_fn *fn, void *arg, struct err *e);

#endif
