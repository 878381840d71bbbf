/*
 * Samples summed up until a drain hands them over.
 */
#ifndef CULPRIT_COLLECT_SAMPLER_TALLY_H
#define CULPRIT_COLLECT_SAMPLER_TALLY_H

#include "base/hmap.h"

struct sample;

struct tally {
	struct hmap counts;
};

void tally_init(struct tally *t);
void tally_deinit(struct tally *t);

/* Equal samples (all but time and count) become one, with the earliest time. */
void tally_add(struct tally *t, const struct sample *s);

/* Hands over what came together, in no particular order, and forgets it. */
void tally_deliver(struct tally *t, void (*fn)(void *arg, const struct sample *s), void *arg);

#endif
