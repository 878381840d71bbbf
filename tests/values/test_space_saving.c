#include "values/exact.h"

static const unsigned capacities[] = {2, 3, 16, 64};
#define CAPACITIES (sizeof capacities / sizeof *capacities)

/* Bounds hold, and what the algorithm promises of its size. */
static void assert_true_to(
	const struct hotlist_pool *pool, const struct hotlist *h, const struct exact *x)
{
	uint64_t capacity = hotlist_pool_capacity(pool);
	struct hot_value list[HOTLIST_CAPACITY_MAX];
	size_t n = hotlist_read(pool, h, list);

	assert_int_equal(h->total, x->total);
	assert_int_equal(count_outside(pool, h, x), 0);
	assert_true(hotlist_absent(pool, h) <= x->total / capacity);
	for (const struct exact_count *c = NULL; (c = hmap_next(&x->counts, c));)
		if (c->count > x->total / capacity)
			assert_non_null(find_value(list, n, c->value));
	if (x->counts.n <= capacity) {
		assert_int_equal(n, x->counts.n);
		for (size_t i = 0; i < n; i++)
			assert_true(list[i].low == list[i].high && list[i].error == 0);
	}
}

static void bounds_hold(void **state)
{
	(void)state;
	for (size_t t = 0; t < STREAM_TYPES; t++) {
		for (size_t k = 0; k < CAPACITIES; k++) {
			struct hotlist_pool *pool =
				hotlist_pool_create(HOTLIST_SPACE_SAVING, capacities[k], 1);
			struct stream s = {.n = 20000, .random = t};
			struct hotlist h = {0};
			struct exact x;

			exact_init(&x);
			for (uint64_t end = 1; s.i < s.n; end = end * 3 + 1) {
				feed(pool, &h, &x, &stream_types[t], &s, end < s.n ? end : s.n);
				assert_true_to(pool, &h, &x);
			}
			exact_deinit(&x);
			hotlist_pool_destroy(pool);
		}
	}
}

/* What the profiler is for: 200 values are enough for what comes more than every tenth time. */
static void finds_the_hot_in_200(void **state)
{
	struct hotlist_pool *pool = hotlist_pool_create(HOTLIST_SPACE_SAVING, HOTLIST_CAPACITY, 1);

	(void)state;
	for (size_t t = 0; t < STREAM_TYPES * 20; t++) {
		struct stream s = {.n = 200, .random = t};
		struct hot_value list[HOTLIST_CAPACITY_MAX];
		struct hotlist h = {0};
		struct exact x;
		size_t n;

		exact_init(&x);
		feed(pool, &h, &x, &stream_types[t % STREAM_TYPES], &s, s.n);
		n = hotlist_read(pool, &h, list);
		for (const struct exact_count *c = NULL; (c = hmap_next(&x.counts, c));) {
			const struct hot_value *v = find_value(list, n, c->value);

			if (c->count <= 20)
				continue;
			assert_non_null(v);
			assert_true(fabs(v->share - (double)c->count / 200) < 0.05);
		}
		exact_deinit(&x);
		hotlist_release(pool, &h);
	}
	hotlist_pool_destroy(pool);
}

static void weights_are_repetitions(void **state)
{
	struct hotlist_pool *pool = hotlist_pool_create(HOTLIST_SPACE_SAVING, 4, 1);
	struct stream s = {.n = 5000, .random = 3};
	struct hotlist h = {0};
	struct exact x;

	(void)state;
	exact_init(&x);
	for (; s.i < s.n; s.i++) {
		uint64_t value = stream_below(&s, 12), weight = 1 + stream_below(&s, 1000);

		hotlist_add(pool, &h, value, weight);
		exact_add(&x, value, weight);
	}
	assert_true_to(pool, &h, &x);
	exact_deinit(&x);
	hotlist_pool_destroy(pool);
}

/* Of the smallest counts, the one goes of which least is certain. */
static void gives_up_the_least_certain(void **state)
{
	static const uint64_t came[] = {1, 1, 1, 2, 3, 3, 4};
	struct hotlist_pool *pool = hotlist_pool_create(HOTLIST_SPACE_SAVING, 3, 1);
	struct hot_value list[HOTLIST_CAPACITY_MAX];
	struct hotlist h = {0};

	(void)state;
	for (size_t i = 0; i < sizeof came / sizeof *came; i++)
		hotlist_add(pool, &h, came[i], 1);
	/* 4 took over 2, and may have come once before; 3 is as it was. */
	assert_int_equal(hotlist_read(pool, &h, list), 3);
	assert_true(list[0].value == 1 && list[0].low == 3 && list[0].high == 3);
	assert_true(list[1].value == 3 && list[1].low == 2 && list[1].high == 2);
	assert_true(list[2].value == 4 && list[2].low == 1 && list[2].high == 2);
	assert_true(list[2].count == 1 && fabs(list[2].error - 1.0 / 7) < 1e-12);
	assert_int_equal(hotlist_absent(pool, &h), 1);
	/* Now 3 and 4 have the same count, and 4 is in doubt. */
	hotlist_add(pool, &h, 5, 1);
	assert_int_equal(hotlist_read(pool, &h, list), 3);
	assert_non_null(find_value(list, 3, 3));
	assert_non_null(find_value(list, 3, 5));
	hotlist_pool_destroy(pool);
}

/* Cuts a stream into `pieces` lists. */
static void cut(struct hotlist_pool *pool, struct hotlist *lists, unsigned pieces, struct exact *x,
	const struct stream_type *type, uint64_t n)
{
	struct stream s = {.n = n, .random = n + pieces};

	for (unsigned i = 0; i < pieces; i++)
		feed(pool, &lists[i], x, type, &s, n * (i + 1) / pieces);
}

static void merges_keep_bounds(void **state)
{
	(void)state;
	for (size_t t = 0; t < STREAM_TYPES; t++) {
		for (size_t k = 0; k < CAPACITIES; k++) {
			struct hotlist_pool *pool =
				hotlist_pool_create(HOTLIST_SPACE_SAVING, capacities[k], 1);
			struct hotlist chain[16] = {0}, tree[16] = {0};
			struct exact x, again;

			exact_init(&x);
			exact_init(&again);
			cut(pool, chain, 16, &x, &stream_types[t], 6000);
			cut(pool, tree, 16, &again, &stream_types[t], 6000);
			for (unsigned i = 1; i < 16; i++)
				hotlist_merge(pool, &chain[0], &chain[i]);
			for (unsigned step = 1; step < 16; step *= 2)
				for (unsigned i = 0; i < 16; i += 2 * step)
					hotlist_merge(pool, &tree[i], &tree[i + step]);
			assert_true_to(pool, &chain[0], &x);
			assert_true_to(pool, &tree[0], &x);
			exact_deinit(&x);
			exact_deinit(&again);
			hotlist_pool_destroy(pool);
		}
	}
}

static void merging_commutes(void **state)
{
	(void)state;
	for (size_t t = 0; t < STREAM_TYPES; t++) {
		struct hotlist_pool *pool =
			hotlist_pool_create(HOTLIST_SPACE_SAVING, HOTLIST_CAPACITY, 1);
		struct hotlist part[2] = {0}, ab = {0}, ba = {0};
		struct buf one = {0}, other = {0};
		struct exact x;

		exact_init(&x);
		cut(pool, part, 2, &x, &stream_types[t], 3000);
		hotlist_merge(pool, &ab, &part[0]);
		hotlist_merge(pool, &ab, &part[1]);
		hotlist_merge(pool, &ba, &part[1]);
		hotlist_merge(pool, &ba, &part[0]);
		hotlist_pack(pool, &ab, &one);
		hotlist_pack(pool, &ba, &other);
		assert_int_equal(one.n, other.n);
		assert_memory_equal(one.p, other.p, one.n);
		buf_deinit(&one);
		buf_deinit(&other);
		exact_deinit(&x);
		hotlist_pool_destroy(pool);
	}
}

/* (a + b) + c and a + (b + c) may differ, but both are true. */
static void merging_associates_within_bounds(void **state)
{
	(void)state;
	for (size_t t = 0; t < STREAM_TYPES; t++) {
		struct hotlist_pool *pool =
			hotlist_pool_create(HOTLIST_SPACE_SAVING, HOTLIST_CAPACITY, 1);
		struct hot_value l[HOTLIST_CAPACITY_MAX], r[HOTLIST_CAPACITY_MAX];
		struct hotlist left[3] = {0}, right[3] = {0};
		struct exact x, again;
		size_t nl, nr;

		exact_init(&x);
		exact_init(&again);
		cut(pool, left, 3, &x, &stream_types[t], 2000);
		cut(pool, right, 3, &again, &stream_types[t], 2000);
		hotlist_merge(pool, &left[0], &left[1]);
		hotlist_merge(pool, &left[0], &left[2]);
		hotlist_merge(pool, &right[1], &right[2]);
		hotlist_merge(pool, &right[0], &right[1]);
		assert_true_to(pool, &left[0], &x);
		assert_true_to(pool, &right[0], &x);
		nl = hotlist_read(pool, &left[0], l);
		nr = hotlist_read(pool, &right[0], r);
		for (size_t i = 0; i < nl; i++) {
			const struct hot_value *v = find_value(r, nr, l[i].value);

			assert_true(!v || (l[i].low <= v->high && v->low <= l[i].high));
		}
		exact_deinit(&x);
		exact_deinit(&again);
		hotlist_pool_destroy(pool);
	}
}

/* A short list merged into a long one leaves it room, but not the certainty that it lacks none. */
static void capacities_mix(void **state)
{
	static const unsigned sizes[][2] = {{4, 16}, {16, 4}, {2, 64}, {64, 2}};

	(void)state;
	for (size_t t = 0; t < STREAM_TYPES; t++) {
		for (size_t k = 0; k < 4; k++) {
			struct hotlist_pool *from =
				hotlist_pool_create(HOTLIST_SPACE_SAVING, sizes[k][0], 1);
			struct hotlist_pool *into =
				hotlist_pool_create(HOTLIST_SPACE_SAVING, sizes[k][1], 1);
			struct stream s = {.n = 3000, .random = k};
			struct hotlist a = {0}, b = {0};
			struct exact x;

			exact_init(&x);
			feed(from, &a, &x, &stream_types[t], &s, 1000);
			feed(into, &b, &x, &stream_types[t], &s, 1003);
			hotlist_merge(into, &b, &a);
			assert_int_equal(b.total, x.total);
			assert_int_equal(count_outside(into, &b, &x), 0);
			feed(into, &b, &x, &stream_types[t], &s, 1010);
			assert_int_equal(count_outside(into, &b, &x), 0);
			feed(into, &b, &x, &stream_types[t], &s, 3000);
			assert_int_equal(count_outside(into, &b, &x), 0);
			exact_deinit(&x);
			hotlist_pool_destroy(from);
			hotlist_pool_destroy(into);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_hold),
		cmocka_unit_test(finds_the_hot_in_200),
		cmocka_unit_test(weights_are_repetitions),
		cmocka_unit_test(gives_up_the_least_certain),
		cmocka_unit_test(merges_keep_bounds),
		cmocka_unit_test(merging_commutes),
		cmocka_unit_test(merging_associates_within_bounds),
		cmocka_unit_test(capacities_mix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
