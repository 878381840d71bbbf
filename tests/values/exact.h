/*
 * Streams with their exact counts beside a hot list, and whether the list tells the truth.
 */
#ifndef CULPRIT_TESTS_VALUES_EXACT_H
#define CULPRIT_TESTS_VALUES_EXACT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../bench/streams.h"
#include "base/buf.h"
#include "base/cursor.h"
#include "base/hmap.h"
#include "values/hotlist.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define STREAM_TYPES (sizeof stream_types / sizeof *stream_types)

struct exact_count {
	uint64_t value, count;
};

/* What came, value by value. */
struct exact {
	struct hmap counts;
	uint64_t total;
};

static inline void exact_init(struct exact *x)
{
	hmap_init(&x->counts, sizeof(struct exact_count), offsetof(struct exact_count, count));
	x->total = 0;
}

static inline void exact_deinit(struct exact *x)
{
	hmap_deinit(&x->counts);
}

static inline void exact_add(struct exact *x, uint64_t value, uint64_t weight)
{
	struct exact_count *c = hmap_put(&x->counts, &value, NULL);

	c->count += weight;
	x->total += weight;
}

static inline uint64_t exact_of(const struct exact *x, uint64_t value)
{
	const struct exact_count *c = hmap_get(&x->counts, &value);

	return c ? c->count : 0;
}

/* From the stream's position on, up to `end`. */
static inline void feed(struct hotlist_pool *pool, struct hotlist *h, struct exact *x,
	const struct stream_type *type, struct stream *s, uint64_t end)
{
	for (; s->i < end; s->i++) {
		uint64_t value = type->next(s);

		hotlist_add(pool, h, value, 1);
		exact_add(x, value, 1);
	}
}

static inline const struct hot_value *find_value(
	const struct hot_value *list, size_t n, uint64_t value)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].value == value)
			return &list[i];
	return NULL;
}

/* What every list says of itself is consistent. */
static inline size_t read_checked(const struct hotlist_pool *pool, const struct hotlist *h,
	struct hot_value out[HOTLIST_CAPACITY_MAX])
{
	size_t n = hotlist_read(pool, h, out);
	double total = (double)h->total;

	assert_true(n <= hotlist_pool_capacity(pool));
	for (size_t i = 0; i < n; i++) {
		assert_true(out[i].low <= out[i].count && out[i].count <= out[i].high);
		assert_true(out[i].high <= h->total);
		assert_true(fabs(out[i].share - (double)out[i].count / total) < 1e-12);
		assert_true(out[i].share + out[i].error >= (double)out[i].high / total - 1e-12);
		assert_true(out[i].share - out[i].error <= (double)out[i].low / total + 1e-12);
		assert_true(!i || out[i].count <= out[i - 1].count);
		assert_true(!i || !find_value(out, i, out[i].value));
	}
	return n;
}

/* How many of all values, those not in the list included, are outside their bounds. */
static inline size_t count_outside(
	const struct hotlist_pool *pool, const struct hotlist *h, const struct exact *x)
{
	struct hot_value list[HOTLIST_CAPACITY_MAX];
	size_t n = read_checked(pool, h, list), outside = 0;
	uint64_t absent = hotlist_absent(pool, h);

	for (const struct exact_count *c = NULL; (c = hmap_next(&x->counts, c));) {
		const struct hot_value *v = find_value(list, n, c->value);

		if (v)
			outside += c->count < v->low || c->count > v->high;
		else
			outside += c->count > absent;
	}
	return outside;
}

#endif
