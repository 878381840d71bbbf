#include "values/hotlist_internal.h"

#include "base/buf.h"
#include "base/cursor.h"

#include <assert.h>
#include <errno.h>

/*
 * A packed list:
 *
 *   uleb    total - 1
 *   uleb    n * 2, + 1 when it is exact: every value that came is there, with its count
 *   uleb    level, streams - 1; only counting samples that are not exact
 *   entries, by descending count, then by value, each:
 *     sleb    value less that of the entry before (modulo 2^64)
 *     uleb    total less count; from the second on, count of the entry before less count
 *             (not for the last one of an exact list: it has what is left of the total)
 *     uleb    doubt; only when the list is not exact
 *
 *  1. n is at most the capacity; counts are 1 to total; no value is there twice.
 *  2. The entries' lower bounds sum up to total at most, unless total is saturated.
 *  3. What can be said as exact is.
 *  4. Doubt, level and streams are as the algorithm's `sound` demands.
 *
 * A constant takes the bytes of its value and of its total, and one more.
 */

static bool is_exact(const struct hotlist *h, const struct hotlist_rules *rules)
{
	uint64_t sum = 0;

	if (h->level)
		return false;
	for (unsigned i = 0; i < h->n; i++) {
		const struct hot_entry *e = hotlist_entry(h, i);

		if (e->doubt != rules->no_doubt || __builtin_add_overflow(sum, e->count, &sum))
			return false;
	}
	return sum == h->total;
}

static void put_entries(
	const struct hot_entry *e, unsigned n, uint64_t total, bool exact, struct buf *out)
{
	uint64_t value = 0, count = total;

	for (unsigned i = 0; i < n; i++) {
		buf_sleb(out, (int64_t)(e[i].value - value));
		if (!exact || i + 1 < n)
			buf_uleb(out, count - e[i].count);
		if (!exact)
			buf_uleb(out, e[i].doubt);
		value = e[i].value;
		count = e[i].count;
	}
}

void hotlist_pack(const struct hotlist_pool *pool, const struct hotlist *h, struct buf *out)
{
	struct hot_entry entries[HOTLIST_CAPACITY_MAX];
	bool exact = is_exact(h, pool->rules);
	unsigned n = hotlist_load(h, entries);

	assert(h->total);
	hotlist_sort(entries, n);
	buf_uleb(out, h->total - 1);
	buf_uleb(out, (uint64_t)n << 1 | exact);
	if (!exact && pool->algorithm == HOTLIST_COUNTING) {
		buf_uleb(out, h->level);
		buf_uleb(out, h->streams - 1);
	}
	put_entries(entries, n, h->total, exact, out);
}

/* The next count, which is at most the one before and at most what is left. */
static bool take_count(struct cursor *c, bool implied, uint64_t left, uint64_t *count)
{
	uint64_t less = implied ? 0 : cursor_uleb(c);

	if (implied && left <= *count)
		*count = left;
	else if (implied || less >= *count)
		return false;
	else
		*count -= less;
	return *count && *count <= left && !c->failed;
}

static bool has_value(const struct hotlist *h, uint64_t value)
{
	for (unsigned i = 0; i < h->n; i++)
		if (hotlist_entry(h, i)->value == value)
			return true;
	return false;
}

static bool take_entries(
	struct hotlist_pool *pool, struct hotlist *h, unsigned n, bool exact, struct cursor *c)
{
	struct hot_entry e = {0, h->total, pool->rules->no_doubt};
	uint64_t left = h->total;

	for (unsigned i = 0; i < n; i++) {
		struct hot_entry before = e;

		e.value += (uint64_t)cursor_sleb(c);
		if (!take_count(c, exact && i + 1 == n, exact ? left : h->total, &e.count))
			return false;
		if (!exact)
			e.doubt = cursor_uleb(c);
		if (c->failed || has_value(h, e.value) ||
			(i && e.count == before.count && e.value < before.value))
			return false;
		left -= exact ? e.count : 0;
		*hotlist_append(pool, h) = e;
	}
	return !exact || !left;
}

/* Invariants 2 to 4. */
static bool is_sound(const struct hotlist_pool *pool, const struct hotlist *h, bool exact)
{
	uint64_t sum = 0;

	if (exact != is_exact(h, pool->rules) || !pool->rules->sound(h))
		return false;
	for (unsigned i = 0; i < h->n && h->total != UINT64_MAX; i++)
		if (__builtin_add_overflow(
			    sum, pool->rules->bound(h, hotlist_entry(h, i)).low, &sum) ||
			sum > h->total)
			return false;
	return true;
}

static bool take_head(struct hotlist_pool *pool, struct hotlist *h, bool exact, struct cursor *c)
{
	uint64_t level = 0, streams = pool->rules->no_doubt;

	if (!exact && pool->algorithm == HOTLIST_COUNTING) {
		level = cursor_uleb(c);
		streams = cursor_uleb(c) + 1;
	}
	if (level > 63 || streams > UINT32_MAX)
		return false;
	h->level = level;
	h->streams = streams;
	return true;
}

int hotlist_unpack(struct hotlist_pool *pool, struct hotlist *h, struct cursor *c)
{
	uint64_t less = cursor_uleb(c), head = cursor_uleb(c);
	bool exact = head & 1;

	assert(!h->total && !h->n);
	if (c->failed || less == UINT64_MAX || head >> 1 > pool->capacity)
		return -EBADMSG;
	h->total = less + 1;
	if (take_head(pool, h, exact, c) &&
		take_entries(pool, h, (unsigned)(head >> 1), exact, c) && is_sound(pool, h, exact))
		return 0;
	hotlist_release(pool, h);
	return -EBADMSG;
}
