#include "collect/excursion_cache.h"

#include <string.h>

/* As if one of so many lines had been found at each depth, before anything is known. */
#define GUESS 5.0
/* Of what was seen in earlier excursions so much is forgotten with each. */
#define FADES 16

/* From the deepest up: what is not found before the end is gone. */
static void learn(struct excursion_cache *c)
{
	double deeper = (double)c->missed[c->ways], gone = 1;

	for (unsigned d = c->ways; d-- > 0;) {
		deeper += (double)c->found[d];
		gone *= 1 - ((double)c->found[d] + 1) / (deeper + GUESS);
		c->gone[d] = (uint64_t)(gone * 0x1p32);
		deeper += (double)c->missed[d];
	}
}

void excursion_cache_init(struct excursion_cache *c, long bytes)
{
	long ways = bytes / (long)(EXCURSION_LINE * EXCURSION_SETS);

	*c = (struct excursion_cache){.random = 1};
	c->ways = ways < 1 ? 8 : ways > (long)EXCURSION_WAYS ? EXCURSION_WAYS : (unsigned)ways;
	learn(c);
}

void excursion_cache_forget(struct excursion_cache *c)
{
	learn(c);
	memset(c->set, 0, sizeof c->set);
	for (unsigned i = 0; i < c->ways; i++)
		c->found[i] -= c->found[i] / FADES;
	for (unsigned i = 0; i <= c->ways; i++)
		c->missed[i] -= c->missed[i] / FADES;
}
