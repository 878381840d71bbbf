/*
 * A first cache as an excursion fills it: sets of lines, where the line used longest ago makes
 * room. What it held when the excursion began nobody knows; so what is not found may have been
 * there until its set has been filled.
 *
 * For code that may not use vector registers, as the walk of an excursion.
 */
#ifndef CULPRIT_COLLECT_EXCURSION_CACHE_H
#define CULPRIT_COLLECT_EXCURSION_CACHE_H

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
	uint64_t set[EXCURSION_SETS]
		    [EXCURSION_WAYS]; /* lines + 1, the last used first; 0: unknown */
};

enum excursion_found { /* the worse the higher */
	EXCURSION_KEPT,
	EXCURSION_OPEN, /* nobody knows */
	EXCURSION_GONE,
};

static inline enum excursion_found excursion_touch(struct excursion_cache *c, uint64_t line)
{
	uint64_t *way = c->set[line % EXCURSION_SETS], name = line + 1, before = *way;

	if (before == name)
		return EXCURSION_KEPT;
	*way = name;
	for (unsigned i = 1; before && i < c->ways; i++) {
		uint64_t here = way[i];

		way[i] = before;
		if (here == name)
			return EXCURSION_KEPT;
		before = here;
	}
	return before ? EXCURSION_GONE : EXCURSION_OPEN;
}

#endif
