#include "collect/period.h"

#include <sys/random.h>
#include <time.h>

/* splitmix64 (Steele, Lea, Flood 2014): a counter, well mixed. */
static uint64_t next(struct period_source *s)
{
	uint64_t z = s->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint64_t period_draw(struct period_source *s, uint64_t mean, unsigned spread)
{
	uint64_t half = mean >> spread;

	/* The high half of the product is uniform below its second factor. */
	return mean - half + (uint64_t)((unsigned __int128)next(s) * (2 * half + 1) >> 64);
}

void period_seed(struct period_source *s)
{
	if (getrandom(&s->state, sizeof s->state, GRND_NONBLOCK) != sizeof s->state)
		s->state = (uint64_t)time(NULL);
}
