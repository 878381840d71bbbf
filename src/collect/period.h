/*
 * Random sampling periods (the DCPI paper's section 4.1.1): what runs in step with a fixed period
 * would always be sampled at the same place.
 */
#ifndef CULPRIT_COLLECT_PERIOD_H
#define CULPRIT_COLLECT_PERIOD_H

#include <stdint.h>

struct period_source {
	uint64_t state;
};

/* A period of the range [mean - mean / 2^spread, mean + mean / 2^spread], all equally likely. */
uint64_t period_draw(struct period_source *s, uint64_t mean, unsigned spread);

/* Starts from what the kernel's generator gives. */
void period_seed(struct period_source *s);

#endif
