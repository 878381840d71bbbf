/*
 * Space-Saving (Metwally, Agrawal, El Abbadi, ICDT 2005). A value that finds the list full takes
 * over the entry with the smallest count, and has that count as its doubt: a value came at most
 * count and at least count - doubt times, and one that is absent at most as often as the smallest
 * count, which is no more than total / capacity.
 */
#include "values/hotlist_internal.h"

/* Orders entries by count; of equal counts, that of which least is certain comes first. */
static inline unsigned __int128 rank(const struct hot_entry *e)
{
	return (unsigned __int128)e->count << 64 | ~e->doubt;
}

/* The entry to give up. No branch depends on the counts, which nothing could predict. */
static struct hot_entry *smallest(const struct hotlist *h)
{
	unsigned __int128 lowest = rank(h->rest);
	unsigned at = 0;

	for (unsigned i = 1; i + 1 < h->n; i++) {
		unsigned __int128 r = rank(&h->rest[i]);

		at = r < lowest ? i : at;
		lowest = r < lowest ? r : lowest;
	}
	return &h->rest[at];
}

static uint64_t absent(const struct hotlist *h)
{
	if (!h->n)
		return 0;
	return h->n == 1 ? h->top.count : smallest(h)->count;
}

/* The same, but an absent value cannot have come more often than what is of no value listed. */
static uint64_t absent_at_most(const struct hotlist *h)
{
	uint64_t remainder = hotlist_remainder(h, &space_saving_rules), count = absent(h);

	return count < remainder ? count : remainder;
}

static void enter(struct hotlist_pool *pool, struct hotlist *h, uint64_t value, uint64_t weight)
{
	struct hot_entry *e;
	uint64_t before;

	if (h->n < pool->capacity) {
		/* Not 0 where a list of a smaller capacity was merged in. */
		before = absent_at_most(h);
		e = hotlist_append(pool, h);
	} else {
		e = smallest(h);
		before = e->count;
	}
	*e = (struct hot_entry){value, hotlist_sum(before, weight), before};
	hotlist_raise(h, e);
}

static struct hot_entry *find(struct hot_entry *entries, unsigned n, uint64_t value)
{
	for (unsigned i = 0; i < n; i++)
		if (entries[i].value == value)
			return &entries[i];
	return NULL;
}

static void widen(struct hot_entry *e, uint64_t count, uint64_t doubt)
{
	e->count = hotlist_sum(e->count, count);
	e->doubt = hotlist_sum(e->doubt, doubt);
}

/*
 * Counts and doubts add up; a value that one list lacks may have come there as often as that list's
 * absent ones, so that is added to both. The largest counts stay (Cafaro, Pulimeno, Tempesta 2016),
 * which keeps the smallest a bound of what is absent, and at most total / capacity.
 */
static void merge(struct hotlist_pool *pool, struct hotlist *into, const struct hotlist *from)
{
	struct hot_entry all[2 * HOTLIST_CAPACITY_MAX];
	unsigned own = hotlist_load(into, all), n = own;
	uint64_t here = absent_at_most(into), there = absent_at_most(from);
	bool both[HOTLIST_CAPACITY_MAX] = {false};

	for (unsigned i = 0; i < from->n; i++) {
		struct hot_entry e = *hotlist_entry(from, i), *same = find(all, own, e.value);

		if (same) {
			widen(same, e.count, e.doubt);
			both[same - all] = true;
		} else {
			widen(&e, here, here);
			all[n++] = e;
		}
	}
	for (unsigned i = 0; i < own; i++)
		if (!both[i])
			widen(&all[i], there, there);
	hotlist_store(pool, into, all, n);
}

/*
 * What came before a value took over an entry was mostly other values, so the lower bound is the
 * best guess on streams that mean no harm, and the middle on those that do (bench/hotlists.c shows
 * both). A quarter of the doubt costs the former little, and keeps every error below three quarters
 * of total / capacity: 4.7 points of 16 entries, whatever comes in whatever order.
 */
static struct hot_bound bound(const struct hotlist *h, const struct hot_entry *e)
{
	uint64_t low = e->count - e->doubt;

	(void)h;
	return (struct hot_bound){.low = low, .high = e->count, .count = low + e->doubt / 4};
}

static bool sound(const struct hotlist *h)
{
	if (!h->n || h->level || h->streams)
		return false;
	for (unsigned i = 0; i < h->n; i++) {
		const struct hot_entry *e = hotlist_entry(h, i);

		if (e->doubt >= e->count && e->count != UINT64_MAX)
			return false;
	}
	return true;
}

const struct hotlist_rules space_saving_rules = {
	.enter = enter,
	.merge = merge,
	.bound = bound,
	.absent = absent,
	.sound = sound,
};
