#include "collect/calibrate_tour.h"

#include "base/mem.h"

#include <stdlib.h>
#include <x86intrin.h>

enum { LINES = 1 << 13 }; /* 512 KB */

struct line {
	struct line *next;
	uint64_t visits[7];
};

struct tour {
	struct line *at;
	struct line *lines;
};

/* One circle through all lines in random order, so that no prefetcher helps. */
struct tour *tour_create(void)
{
	struct tour *t = xcalloc(1, sizeof *t);
	_cleanup_free_ uint32_t *order = xcalloc(LINES, sizeof *order);
	uint32_t seed = 1;

	t->lines = xcalloc(LINES, sizeof *t->lines);
	for (uint32_t i = 0; i < LINES; i++)
		order[i] = i;
	for (uint32_t i = LINES - 1; i > 0; i--) {
		uint32_t k, swap = order[i];

		seed = seed * 1664525 + 1013904223;
		k = (uint32_t)((uint64_t)seed * (i + 1) >> 32);
		order[i] = order[k];
		order[k] = swap;
	}
	for (uint32_t i = 0; i < LINES; i++)
		t->lines[order[i]].next = &t->lines[order[(i + 1) % LINES]];
	t->at = t->lines;
	return t;
}

void tour_destroy(struct tour *t)
{
	if (t)
		free(t->lines);
	free(t);
}

uint64_t tour_take(struct tour *t)
{
	uint64_t start = __rdtsc();
	struct line *at = t->at;

	for (int i = 0; i < LINES; i++) {
		at->visits[0]++;
		at = at->next;
	}
	t->at = at;
	return __rdtsc() - start;
}
