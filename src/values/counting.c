/*
 * Counting samples (Gibbons and Matias, SIGMOD 1998), which the ASPLOS 2000 paper chose. A value
 * that is not in the list enters with probability p = 2^-level; once in, all that comes is counted.
 * A list that overflows halves p and takes from each count what would have been missed had p
 * been as small from the start, which frees entries sooner or later.
 *
 * Before a value entered, it came a geometrically distributed number of times, 1/p - 1 in the mean:
 * count + 1/p - 1 (and 0 for what is absent) is an unbiased estimate. The paper's simplest scheme
 * tosses the coin for values that are in the list too, which is unbiased as well but varies more.
 *
 * Two such lists cannot become one of the same kind, since what each of them missed is unknown.
 * Their estimates can be added: an entry's doubt says how many geometric losses its count has
 * suffered, and the estimate adds 1/p - 1 for each. `streams` counts the losses a value can have.
 */
#include "values/hotlist_internal.h"

#include <math.h>

#define LEVEL_MAX 63

/* Losses are redrawn one by one up to this many, beyond that in so many bundles of equal ones. */
#define BUNDLES 64

/* How often a coin with probability 2^-level fails before it succeeds. */
static uint64_t failures(struct hotlist_pool *pool, unsigned level)
{
	double u = ((double)(hotlist_random(pool) >> 11) + 0.5) * 0x1p-53;
	double n = level ? log(u) / log1p(-ldexp(1, -(int)level)) : 0;

	return n < 0x1p63 ? (uint64_t)n : (uint64_t)1 << 63;
}

/*
 * What is left of the count of one loss when p is halved to 2^-level: the occurrence that entered
 * still does with probability 1/2; otherwise one of those behind it has to, at the new odds.
 */
static uint64_t thin_count(struct hotlist_pool *pool, uint64_t count, unsigned level)
{
	uint64_t lost;

	if (hotlist_random(pool) >> 63)
		return count;
	lost = 1 + failures(pool, level);
	return lost < count ? count - lost : 0;
}

/* A count is split evenly among its losses: any split that the coins do not know is unbiased. */
static void thin_entry(struct hotlist_pool *pool, struct hot_entry *e, unsigned level)
{
	struct hot_entry left = *e;
	uint64_t bundles = e->doubt < BUNDLES ? e->doubt : BUNDLES;

	e->count = e->doubt = 0;
	for (; bundles; bundles--) {
		uint64_t losses = left.doubt / bundles, count = left.count / bundles;
		uint64_t kept = thin_count(pool, count / losses, level);

		if (kept) {
			e->count += kept * losses + count % losses;
			e->doubt += losses;
		}
		left.doubt -= losses;
		left.count -= count;
	}
}

/* Halves p; returns how many entries are left. */
static unsigned thin(
	struct hotlist_pool *pool, struct hot_entry *entries, unsigned n, unsigned level)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++) {
		thin_entry(pool, &entries[i], level);
		if (entries[i].count)
			entries[kept++] = entries[i];
	}
	return kept;
}

/* Halves p until there is room. */
static void store_thinned(
	struct hotlist_pool *pool, struct hotlist *h, struct hot_entry *entries, unsigned n)
{
	while (n > pool->capacity && h->level < LEVEL_MAX) {
		h->level++;
		n = thin(pool, entries, n, h->level);
	}
	hotlist_store(pool, h, entries, n);
}

static void enter(struct hotlist_pool *pool, struct hotlist *h, uint64_t value, uint64_t weight)
{
	struct hot_entry all[HOTLIST_CAPACITY_MAX + 1], *e;
	uint64_t missed = failures(pool, h->level);
	unsigned n;

	if (!h->streams)
		h->streams = 1;
	if (missed >= weight)
		return;
	if (h->n < pool->capacity) {
		e = hotlist_append(pool, h);
		*e = (struct hot_entry){value, weight - missed, 1};
		hotlist_raise(h, e);
		return;
	}
	n = hotlist_load(h, all);
	all[n++] = (struct hot_entry){value, weight - missed, 1};
	store_thinned(pool, h, all, n);
}

/* A list that lacks nothing is a stream: its values come one after the other. */
static void replay(
	struct hotlist_pool *pool, struct hotlist *h, const struct hot_entry *entries, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		hotlist_add(pool, h, entries[i].value, entries[i].count);
}

/* Adds entries that were sampled at the same p. */
static unsigned unite(
	struct hot_entry *all, unsigned n, const struct hot_entry *more, unsigned nmore)
{
	unsigned own = n;

	for (unsigned i = 0, k; i < nmore; i++) {
		for (k = 0; k < own && all[k].value != more[i].value; k++)
			;
		if (k == own) {
			all[n++] = more[i];
		} else {
			all[k].count = hotlist_sum(all[k].count, more[i].count);
			all[k].doubt = hotlist_sum(all[k].doubt, more[i].doubt);
		}
	}
	return n;
}

static void merge_thinned(
	struct hotlist_pool *pool, struct hotlist *into, const struct hotlist *from)
{
	struct hot_entry all[2 * HOTLIST_CAPACITY_MAX], more[HOTLIST_CAPACITY_MAX];
	unsigned n = hotlist_load(into, all), nmore = hotlist_load(from, more);
	uint32_t streams;

	for (unsigned level = into->level + 1u; level <= from->level; level++)
		n = thin(pool, all, n, level);
	for (unsigned level = from->level + 1u; level <= into->level; level++)
		nmore = thin(pool, more, nmore, level);
	if (into->level < from->level)
		into->level = from->level;
	if (__builtin_add_overflow(into->streams, from->streams, &streams))
		streams = UINT32_MAX;
	into->streams = streams;
	n = unite(all, n, more, nmore);
	for (unsigned i = 0; i < n; i++)
		if (all[i].doubt > streams)
			all[i].doubt = streams;
	store_thinned(pool, into, all, n);
}

static void merge(struct hotlist_pool *pool, struct hotlist *into, const struct hotlist *from)
{
	struct hot_entry own[HOTLIST_CAPACITY_MAX], other[HOTLIST_CAPACITY_MAX];
	unsigned n = hotlist_load(into, own), nother = hotlist_load(from, other);

	if (!from->level) {
		replay(pool, into, other, nother);
	} else if (!into->level) {
		into->level = from->level;
		into->streams = from->streams;
		store_thinned(pool, into, other, nother);
		replay(pool, into, own, n);
	} else {
		merge_thinned(pool, into, from);
	}
}

/*
 * How often a value can have been missed, with 99% confidence: the sum of `streams` geometric
 * numbers is below a gamma distributed one, whose quantile is Wilson and Hilferty's.
 */
static uint64_t missed(const struct hotlist *h)
{
	const double z = 2.326;
	double k = h->streams < BUNDLES ? h->streams : BUNDLES, cube, most;

	if (!h->level)
		return 0;
	cube = 1 - 1 / (9 * k) + z / (3 * sqrt(k));
	most = ldexp(h->streams * cube * cube * cube, h->level);
	return most < 0x1p63 ? (uint64_t)most + 1 : (uint64_t)1 << 63;
}

static struct hot_bound bound(const struct hotlist *h, const struct hot_entry *e)
{
	uint64_t each = ((uint64_t)1 << h->level) - 1, mean;

	if (__builtin_mul_overflow(each, e->doubt, &mean))
		mean = UINT64_MAX;
	return (struct hot_bound){
		.low = e->count,
		.high = hotlist_sum(e->count, missed(h)),
		.count = hotlist_sum(e->count, mean),
	};
}

static bool sound(const struct hotlist *h)
{
	if (!h->streams ||
		(!h->level && h->total != UINT64_MAX && hotlist_remainder(h, &counting_rules)))
		return false;
	for (unsigned i = 0; i < h->n; i++) {
		const struct hot_entry *e = hotlist_entry(h, i);

		if (!e->doubt || e->doubt > e->count || e->doubt > h->streams)
			return false;
	}
	return true;
}

const struct hotlist_rules counting_rules = {
	.enter = enter,
	.merge = merge,
	.bound = bound,
	.absent = missed,
	.sound = sound,
	.no_doubt = 1,
};
