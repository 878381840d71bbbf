/*
 * What the algorithms of hot lists and their common part tell each other. Entries are kept with the
 * largest count first (in hotlist.top); all else about their order is free.
 */
#ifndef CULPRIT_VALUES_HOTLIST_INTERNAL_H
#define CULPRIT_VALUES_HOTLIST_INTERNAL_H

#include "base/vec.h"
#include "values/hotlist.h"

#include <stdbool.h>

enum {
	HOT_SPACE_FIRST = 2, /* rests have room for 3, 7, 15, 31 or 63 entries */
	HOT_SPACES = 7,
};

/* What is known of an entry's true count, before the rest of the list is looked at. */
struct hot_bound {
	uint64_t low, high, count;
};

struct hotlist_rules {
	/* A value that is not in the list comes; the total does not have it yet. */
	void (*enter)(
		struct hotlist_pool *pool, struct hotlist *h, uint64_t value, uint64_t weight);
	/* Entries, level and streams; the totals are still apart. */
	void (*merge)(struct hotlist_pool *pool, struct hotlist *into, const struct hotlist *from);
	struct hot_bound (*bound)(const struct hotlist *h, const struct hot_entry *e);
	uint64_t (*absent)(const struct hotlist *h); /* bound of any value not in the list */
	/* Whether doubt, level and streams can be what the algorithm made; total is not 0. */
	bool (*sound)(const struct hotlist *h);
	uint64_t no_doubt; /* of an entry whose count is exact */
};
extern const struct hotlist_rules space_saving_rules, counting_rules;

struct hotlist_pool {
	const struct hotlist_rules *rules;
	enum hotlist_algorithm algorithm;
	unsigned capacity;
	uint64_t random;
	VEC(struct hot_entry *) chunks;
	size_t chunk, used;                  /* of chunks[chunk], `used` entries are handed out */
	struct hot_entry *spare[HOT_SPACES]; /* blocks given back; the first value links them */
};

uint64_t hotlist_random(struct hotlist_pool *pool);

static inline const struct hot_entry *hotlist_entry(const struct hotlist *h, unsigned i)
{
	return i ? &h->rest[i - 1] : &h->top;
}

/* A new entry at the end; the caller fills it, then raises it. */
struct hot_entry *hotlist_append(struct hotlist_pool *pool, struct hotlist *h);
/* An entry was added to or replaced: the largest count goes first again. */
void hotlist_raise(struct hotlist *h, struct hot_entry *e);

/* All entries to an array and back; of those stored, sorted first, the largest counts stay. */
unsigned hotlist_load(const struct hotlist *h, struct hot_entry *to);
void hotlist_store(
	struct hotlist_pool *pool, struct hotlist *h, struct hot_entry *from, unsigned n);
/* By descending count, then by value. */
void hotlist_sort(struct hot_entry *entries, unsigned n);

/* Total less all that is known to be of a value in the list: no other came more often. */
uint64_t hotlist_remainder(const struct hotlist *h, const struct hotlist_rules *rules);

#endif
