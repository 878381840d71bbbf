#include "values/hotlist_internal.h"

#include "base/mem.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Entries of a pool's chunks: there may be hundreds of pools with few lists each. */
enum {
	CHUNK_FIRST = 64,
	CHUNK_DOUBLES = 5,
};

static const struct hotlist_rules *const rules_of[HOTLIST_ALGORITHMS] = {
	[HOTLIST_SPACE_SAVING] = &space_saving_rules,
	[HOTLIST_COUNTING] = &counting_rules,
};

/* ---- the pool ---- */

static size_t chunk_size(size_t number)
{
	return (size_t)CHUNK_FIRST << (number < CHUNK_DOUBLES ? number : CHUNK_DOUBLES);
}

struct hotlist_pool *hotlist_pool_create(
	enum hotlist_algorithm algorithm, unsigned capacity, uint64_t seed)
{
	struct hotlist_pool *pool = xcalloc(1, sizeof *pool);

	assert(algorithm < HOTLIST_ALGORITHMS && capacity >= 2 && capacity <= HOTLIST_CAPACITY_MAX);
	pool->rules = rules_of[algorithm];
	pool->algorithm = algorithm;
	pool->capacity = capacity;
	pool->random = seed;
	return pool;
}

void hotlist_pool_destroy(struct hotlist_pool *pool)
{
	if (!pool)
		return;
	vec_each (chunk, &pool->chunks)
		free(*chunk);
	vec_deinit(&pool->chunks);
	free(pool);
}

void hotlist_pool_clear(struct hotlist_pool *pool)
{
	/* What was not needed since it was last cleared will not be needed next time either. */
	while (pool->chunks.n > pool->chunk + 1)
		free(pool->chunks.p[--pool->chunks.n]);
	pool->chunk = pool->used = 0;
	for (int i = 0; i < HOT_SPACES; i++)
		pool->spare[i] = NULL;
}

enum hotlist_algorithm hotlist_pool_algorithm(const struct hotlist_pool *pool)
{
	return pool->algorithm;
}

unsigned hotlist_pool_capacity(const struct hotlist_pool *pool)
{
	return pool->capacity;
}

size_t hotlist_pool_bytes(const struct hotlist_pool *pool)
{
	size_t bytes = sizeof *pool;

	for (size_t i = 0; i < pool->chunks.n; i++)
		bytes += chunk_size(i) * sizeof **pool->chunks.p;
	return bytes;
}

/* SplitMix64 (Steele, Lea, Flood 2014): a counter, scrambled. */
uint64_t hotlist_random(struct hotlist_pool *pool)
{
	uint64_t z = pool->random += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static unsigned room(unsigned space)
{
	return (1u << space) - 1;
}

static struct hot_entry *block_take(struct hotlist_pool *pool, unsigned space)
{
	struct hot_entry *block = pool->spare[space];

	if (block) {
		pool->spare[space] = (struct hot_entry *)(uintptr_t)block->value;
		return block;
	}
	if (pool->chunks.n && pool->used + room(space) > chunk_size(pool->chunk)) {
		pool->chunk++;
		pool->used = 0;
	}
	if (pool->chunk == pool->chunks.n)
		*vec_add(&pool->chunks) = xcalloc(chunk_size(pool->chunk), sizeof *block);
	block = pool->chunks.p[pool->chunk] + pool->used;
	pool->used += room(space);
	return block;
}

static void block_give(struct hotlist_pool *pool, struct hot_entry *block, unsigned space)
{
	block->value = (uintptr_t)pool->spare[space];
	pool->spare[space] = block;
}

/* ---- entries ---- */

static void rest_grow(struct hotlist_pool *pool, struct hotlist *h)
{
	unsigned space = h->space ? h->space + 1u : HOT_SPACE_FIRST;
	struct hot_entry *block = block_take(pool, space);

	for (unsigned i = 0; i < room(h->space); i++)
		block[i] = h->rest[i];
	if (h->space)
		block_give(pool, h->rest, h->space);
	h->rest = block;
	h->space = space;
}

struct hot_entry *hotlist_append(struct hotlist_pool *pool, struct hotlist *h)
{
	unsigned n = h->n;

	h->n++;
	if (!n)
		return &h->top;
	if (n - 1 == room(h->space))
		rest_grow(pool, h);
	return &h->rest[n - 1];
}

void hotlist_raise(struct hotlist *h, struct hot_entry *e)
{
	struct hot_entry top = h->top;

	if (e->count > top.count) {
		h->top = *e;
		*e = top;
	}
}

static int compare_entries(const void *x, const void *y)
{
	const struct hot_entry *a = x, *b = y;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return (a->value > b->value) - (a->value < b->value);
}

void hotlist_sort(struct hot_entry *entries, unsigned n)
{
	qsort(entries, n, sizeof *entries, compare_entries);
}

unsigned hotlist_load(const struct hotlist *h, struct hot_entry *to)
{
	for (unsigned i = 0; i < h->n; i++)
		to[i] = *hotlist_entry(h, i);
	return h->n;
}

void hotlist_store(struct hotlist_pool *pool, struct hotlist *h, struct hot_entry *from, unsigned n)
{
	hotlist_sort(from, n);
	h->n = 0;
	for (unsigned i = 0; i < n && i < pool->capacity; i++)
		*hotlist_append(pool, h) = from[i];
}

uint64_t hotlist_remainder(const struct hotlist *h, const struct hotlist_rules *rules)
{
	uint64_t known = 0;

	for (unsigned i = 0; i < h->n; i++)
		known = hotlist_sum(known, rules->bound(h, hotlist_entry(h, i)).low);
	return h->total > known ? h->total - known : 0;
}

/* ---- the stream ---- */

/* Where in the rest a value is, or n - 1. No branch an entry: the loads need not wait for it. */
static unsigned find(const struct hotlist *h, uint64_t value)
{
	unsigned n = h->n ? h->n - 1u : 0, at = n;

	for (unsigned i = 0; i < n; i++)
		at = h->rest[i].value == value ? i : at;
	return at;
}

void hotlist_add_other(
	struct hotlist_pool *pool, struct hotlist *h, uint64_t value, uint64_t weight)
{
	unsigned at = find(h, value);

	if (!weight)
		return;
	if (at + 1 < h->n) {
		h->rest[at].count = hotlist_sum(h->rest[at].count, weight);
		hotlist_raise(h, &h->rest[at]);
	} else {
		pool->rules->enter(pool, h, value, weight);
	}
	h->total = hotlist_sum(h->total, weight);
}

void hotlist_merge(struct hotlist_pool *pool, struct hotlist *into, const struct hotlist *from)
{
	uint64_t total = hotlist_sum(into->total, from->total);

	if (!from->total)
		return;
	pool->rules->merge(pool, into, from);
	into->total = total;
}

void hotlist_release(struct hotlist_pool *pool, struct hotlist *h)
{
	if (h->space)
		block_give(pool, h->rest, h->space);
	*h = (struct hotlist){.tag = h->tag};
}

/* ---- reading ---- */

static int compare_values(const void *x, const void *y)
{
	const struct hot_value *a = x, *b = y;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return (a->value > b->value) - (a->value < b->value);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

size_t hotlist_read(const struct hotlist_pool *pool, const struct hotlist *h,
	struct hot_value out[HOTLIST_CAPACITY_MAX])
{
	uint64_t remainder = hotlist_remainder(h, pool->rules);

	for (unsigned i = 0; i < h->n; i++) {
		const struct hot_entry *e = hotlist_entry(h, i);
		struct hot_bound b = pool->rules->bound(h, e);
		struct hot_value *v = &out[i];
		uint64_t far;

		/* Whatever the algorithm thinks, what is known to be others' is not its own. */
		b.high = least(b.high, hotlist_sum(b.low, remainder));
		b.count = least(b.count, b.high);
		far = b.high - b.count > b.count - b.low ? b.high - b.count : b.count - b.low;
		*v = (struct hot_value){e->value, b.low, b.high, b.count,
			(double)b.count / (double)h->total, (double)far / (double)h->total};
	}
	qsort(out, h->n, sizeof *out, compare_values);
	return h->n;
}

uint64_t hotlist_absent(const struct hotlist_pool *pool, const struct hotlist *h)
{
	return least(pool->rules->absent(h), hotlist_remainder(h, pool->rules));
}

double hotlist_sampling_error(double share, uint64_t n)
{
	const double z = 1.96;
	double m = (double)n;

	if (!n)
		return 1;
	return z * sqrt(share * (1 - share) / m + z * z / (4 * m * m)) / (1 + z * z / m);
}
