/*
 * Which objects should lie near each other: those of two places of allocation that are always
 * touched together (co-allocation), and those of one place that are walked in the same order again
 * and again although they lie in another (Chilimbi, Hill and Larus, PLDI 1999: clustering).
 */
#ifndef CULPRIT_ANALYZE_ADVICE_TOGETHER_H
#define CULPRIT_ANALYZE_ADVICE_TOGETHER_H

#include "analyze/touches.h"

struct pair_advice {
	uint32_t from, to; /* groups; the same: a walk */
	uint64_t steps;    /* from an object of the one to one of the other */
	uint64_t known;    /* of these from an object that such a step was seen from before ... */
	uint64_t same;     /* ... and went to the same one */
	uint64_t near;     /* steps to the same or the next cache line */
};

struct pairs;
struct pairs *pairs_create(void);
void pairs_destroy(struct pairs *p); /* takes NULL */
void pairs_take(struct pairs *p, const struct touch *t);
/* Those with most steps first. */
size_t pairs_settle(struct pairs *p, const struct pair_advice **out);

/* Whether it would help to put them together: steps mostly lead to the same object, far away. */
bool pair_is_advised(const struct pair_advice *a);

#endif
