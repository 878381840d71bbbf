/*
 * Random numbers that a seed decides, so that what a test finds can be found again.
 */
#ifndef CULPRIT_TESTS_DICE_H
#define CULPRIT_TESTS_DICE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct dice {
	uint64_t state;
	unsigned edges; /* per cent of the pointers (forms.h) that are at the edge of a page */
};

static inline uint64_t dice_roll(struct dice *d)
{
	uint64_t z = d->state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static inline uint64_t dice_below(struct dice *d, uint64_t n)
{
	return dice_roll(d) % n;
}

static inline bool dice_chance(struct dice *d, unsigned percent)
{
	return dice_below(d, 100) < percent;
}

/* A number from the environment, for longer runs and other seeds than those of the unit test. */
static inline uint64_t dice_option(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	return text ? strtoull(text, NULL, 0) : otherwise;
}

#endif
