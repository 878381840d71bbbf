/*
 * A tour of memory that fills the nearer caches, as programs do. Right after an interrupt it takes
 * longer: that is the part of an interrupt's cost that a bare spin does not feel.
 */
#ifndef CULPRIT_COLLECT_CALIBRATE_TOUR_H
#define CULPRIT_COLLECT_CALIBRATE_TOUR_H

#include <stdint.h>

struct tour;

struct tour *tour_create(void);
void tour_destroy(struct tour *t);

/* Goes round once, some tens of microseconds; returns the ticks it took. */
uint64_t tour_take(struct tour *t);

#endif
