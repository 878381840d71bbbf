/*
 * A first cache as an excursion fills it: sets of lines, where the line used longest ago makes
 * room.
 *
 * What it held when the excursion began nobody knows. What is not found in a set that has not been
 * filled since may have been there, or not: that is drawn, by how often lines that were not among
 * as many others turned out to be gone where it could be told (an estimator of survival: Kaplan and
 * Meier 1958, with depths in a set for times, and what nobody knows for those lost from sight).
 */
#ifndef CULPRIT_COLLECT_EXCURSION_CACHE_H
#define CULPRIT_COLLECT_EXCURSION_CACHE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * First caches find their sets by the part of an address that is the same in every page, so that
 * they need not wait for the translation; larger ones have more ways.
 */
#define EXCURSION_LINE 64u
#define EXCURSION_SETS 64u
#define EXCURSION_WAYS 16u

struct excursion_cache {
	unsigned ways;
	/* Lines + 1, the last used first; 0: unknown. */
	uint64_t set[EXCURSION_SETS][EXCURSION_WAYS];
	/* How often lines were found with so many others before them, and were not among so many.
	 */
	uint64_t found[EXCURSION_WAYS], missed[EXCURSION_WAYS + 1];
	/* How likely the latter are gone, of 2^32. */
	uint64_t gone[EXCURSION_WAYS];
	uint64_t random;
};

/* For so many bytes. */
void excursion_cache_init(struct excursion_cache *c, long bytes);
/* Nothing is known of what it holds; what lines do is remembered, the latest best. */
void excursion_cache_forget(struct excursion_cache *c);

static inline bool excursion_draw(struct excursion_cache *c, unsigned known)
{
	c->random = c->random * 6364136223846793005u + 1442695040888963407u;
	return c->random >> 32 < c->gone[known];
}

/*
 * Whether a line is gone; it is there from now on. For code that may not use vector registers, as
 * the walk of an excursion.
 */
static inline bool excursion_touch(struct excursion_cache *c, uint64_t line)
{
	uint64_t *way = c->set[line % EXCURSION_SETS], name = line + 1, before = *way;
	unsigned known = 0;

	if (before == name) {
		c->found[0]++;
		return false;
	}
	*way = name;
	while (before && ++known < c->ways) {
		uint64_t here = way[known];

		way[known] = before;
		if (here == name) {
			c->found[known]++;
			return false;
		}
		before = here;
	}
	c->missed[known]++;
	return known == c->ways || excursion_draw(c, known);
}

#endif
