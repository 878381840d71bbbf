#include "values/exact.h"
#include "values/hotlist_internal.h"

/* The mean of many independent estimates, in standard errors from the truth. */
struct mean {
	double n, sum, squares;
};

static void mean_add(struct mean *m, double v)
{
	m->n++;
	m->sum += v;
	m->squares += v * v;
}

static double standard_errors(const struct mean *m, double truth)
{
	double mean = m->sum / m->n, variance = m->squares / m->n - mean * mean;

	return fabs(mean - truth) / sqrt(variance / m->n);
}

/* The estimate as such, before what is known of other values bounds it; 0 for what is absent. */
static double raw_estimate(const struct hotlist *h, uint64_t value)
{
	for (unsigned i = 0; i < h->n; i++)
		if (hotlist_entry(h, i)->value == value)
			return (double)counting_rules.bound(h, hotlist_entry(h, i)).count;
	return 0;
}

/* Of all values that came, which is to be the total. */
static double raw_sum(const struct hotlist *h)
{
	double sum = 0;

	for (unsigned i = 0; i < h->n; i++)
		sum += (double)counting_rules.bound(h, hotlist_entry(h, i)).count;
	return sum;
}

/* 1 comes 40 times of 400, 2 comes 8 times, the rest is noise. */
static uint64_t sparse(struct stream *s)
{
	if (s->i % 10 == 0)
		return 1;
	return s->i % 50 == 7 ? 2 : stream_noise(s);
}
static const struct stream_type sparse_type = {"sparse", sparse};

static void exact_while_it_fits(void **state)
{
	struct hotlist_pool *pool = hotlist_pool_create(HOTLIST_COUNTING, 16, 1);
	struct stream s = {.n = 1000, .random = 1};
	struct hot_value list[HOTLIST_CAPACITY_MAX];
	struct hotlist h = {0};
	struct exact x;
	size_t n;

	(void)state;
	exact_init(&x);
	for (; s.i < s.n; s.i++) {
		uint64_t value = stream_below(&s, 16);

		hotlist_add(pool, &h, value, 3);
		exact_add(&x, value, 3);
	}
	n = read_checked(pool, &h, list);
	assert_int_equal(n, 16);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(list[i].count, exact_of(&x, list[i].value));
		assert_true(list[i].low == list[i].high);
	}
	assert_int_equal(hotlist_absent(pool, &h), 0);
	exact_deinit(&x);
	hotlist_pool_destroy(pool);
}

/* Lists of `pieces` parts of the stream, merged; `h` is to be released. */
static void run(struct hotlist_pool *pool, struct hotlist *h, struct exact *x,
	const struct stream_type *type, uint64_t n, uint64_t seed, unsigned pieces)
{
	struct stream s = {.n = n, .random = seed};

	for (unsigned i = 0; i < pieces; i++) {
		struct hotlist part = {0};

		feed(pool, &part, x, type, &s, n * (i + 1) / pieces);
		hotlist_merge(pool, h, &part);
		hotlist_release(pool, &part);
	}
}

static void estimates_are_unbiased(void **state)
{
	static const unsigned pieces[] = {1, 2, 4, 40};

	(void)state;
	for (size_t k = 0; k < 4; k++) {
		struct hotlist_pool *pool = hotlist_pool_create(HOTLIST_COUNTING, 4, k + 1);
		struct mean hot = {0}, rare = {0}, all = {0};

		for (uint64_t round = 0; round < 2000; round++) {
			struct hotlist h = {0};
			struct exact x;

			exact_init(&x);
			run(pool, &h, &x, &sparse_type, 400, 1, pieces[k]);
			mean_add(&hot, raw_estimate(&h, 1));
			mean_add(&rare, raw_estimate(&h, 2));
			mean_add(&all, raw_sum(&h));
			assert_int_equal(exact_of(&x, 1), 40);
			assert_int_equal(exact_of(&x, 2), 8);
			exact_deinit(&x);
			hotlist_release(pool, &h);
		}
		assert_true(standard_errors(&hot, 40) < 4);
		assert_true(standard_errors(&rare, 8) < 4);
		assert_true(standard_errors(&all, 400) < 4);
		hotlist_pool_destroy(pool);
	}
}

/* Bounds hold for 99 of 100 values, lower ones always. */
static void bounds_hold(void **state)
{
	static const unsigned pieces[] = {1, 7, 100};

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		struct hotlist_pool *pool =
			hotlist_pool_create(HOTLIST_COUNTING, HOTLIST_CAPACITY, k);
		size_t values = 0, outside = 0;

		for (size_t t = 0; t < STREAM_TYPES; t++) {
			for (uint64_t round = 0; round < 3; round++) {
				struct hot_value list[HOTLIST_CAPACITY_MAX];
				struct hotlist h = {0};
				struct exact x;
				size_t n;

				exact_init(&x);
				run(pool, &h, &x, &stream_types[t], 4000, round, pieces[k]);
				assert_int_equal(h.total, x.total);
				values += x.counts.n;
				outside += count_outside(pool, &h, &x);
				n = hotlist_read(pool, &h, list);
				for (size_t i = 0; i < n; i++)
					assert_true(list[i].low <= exact_of(&x, list[i].value));
				exact_deinit(&x);
				hotlist_release(pool, &h);
			}
		}
		assert_true(outside * 100 <= values);
		hotlist_pool_destroy(pool);
	}
}

/* The same for the value that matters, where most others are too rare to be outside. */
static void bounds_hold_for_the_hot(void **state)
{
	static const unsigned pieces[] = {1, 2, 40};

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		struct hotlist_pool *pool = hotlist_pool_create(HOTLIST_COUNTING, 4, k);
		struct hot_value list[HOTLIST_CAPACITY_MAX];
		unsigned outside = 0;

		for (uint64_t round = 0; round < 2000; round++) {
			struct hotlist h = {0};
			struct exact x;
			const struct hot_value *v;

			exact_init(&x);
			run(pool, &h, &x, &sparse_type, 400, 1, pieces[k]);
			v = find_value(list, hotlist_read(pool, &h, list), 1);
			outside += (v ? v->high : hotlist_absent(pool, &h)) < 40;
			exact_deinit(&x);
			hotlist_release(pool, &h);
		}
		assert_true(outside <= 30);
		hotlist_pool_destroy(pool);
	}
}

static void seeds_decide(void **state)
{
	struct buf packed[3] = {0};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct hotlist_pool *pool = hotlist_pool_create(HOTLIST_COUNTING, 16, i / 2);
		struct hotlist h = {0};
		struct exact x;

		exact_init(&x);
		run(pool, &h, &x, &sparse_type, 2000, 1, 3);
		hotlist_pack(pool, &h, &packed[i]);
		exact_deinit(&x);
		hotlist_pool_destroy(pool);
	}
	assert_int_equal(packed[0].n, packed[1].n);
	assert_memory_equal(packed[0].p, packed[1].p, packed[0].n);
	assert_true(packed[0].n != packed[2].n || memcmp(packed[0].p, packed[2].p, packed[0].n));
	for (unsigned i = 0; i < 3; i++)
		buf_deinit(&packed[i]);
}

/* Many thinned lists in one: losses are redrawn in bundles. */
static void many_streams(void **state)
{
	struct hotlist_pool *pool = hotlist_pool_create(HOTLIST_COUNTING, 4, 9);
	struct hotlist h = {0};
	struct mean hot = {0};
	struct exact x;

	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		exact_init(&x);
		run(pool, &h, &x, &sparse_type, 40000, 1, 400);
		assert_true(h.streams > 100);
		mean_add(&hot, raw_estimate(&h, 1));
		exact_deinit(&x);
		hotlist_release(pool, &h);
	}
	assert_true(standard_errors(&hot, 4000) < 4);
	hotlist_pool_destroy(pool);
}

static uint64_t mostly(struct stream *s)
{
	return s->i % 10 < 7 ? 1 : stream_noise(s);
}

/* Each of the merged lists has missed some; the bound is to know of all of them. */
static void bounds_count_streams(void **state)
{
	static const struct stream_type type = {"mostly", mostly};
	struct hotlist_pool *pool = hotlist_pool_create(HOTLIST_COUNTING, 64, 2);
	struct mean hot = {0};
	unsigned outside = 0;

	(void)state;
	for (unsigned round = 0; round < 30; round++) {
		struct hot_value list[HOTLIST_CAPACITY_MAX];
		struct hotlist h = {0};
		struct exact x;

		exact_init(&x);
		run(pool, &h, &x, &type, 20000, 1, 8);
		read_checked(pool, &h, list);
		assert_true(list[0].value == 1 && h.streams == 8);
		outside += list[0].low > 14000 || list[0].high < 14000;
		assert_true(list[0].error < 0.25);
		mean_add(&hot, raw_estimate(&h, 1));
		exact_deinit(&x);
		hotlist_release(pool, &h);
	}
	assert_true(outside <= 1);
	assert_true(standard_errors(&hot, 14000) < 4);
	hotlist_pool_destroy(pool);
}

static void capacities_mix(void **state)
{
	struct hotlist_pool *from = hotlist_pool_create(HOTLIST_COUNTING, 64, 1);
	struct hotlist_pool *into = hotlist_pool_create(HOTLIST_COUNTING, 4, 2);
	struct mean hot = {0}, rare = {0}, all = {0};

	(void)state;
	for (unsigned round = 0; round < 1500; round++) {
		struct hotlist a = {0}, b = {0};
		struct exact x;

		exact_init(&x);
		run(from, &a, &x, &sparse_type, 400, 1, 1);
		hotlist_merge(into, &b, &a);
		assert_true(b.n <= 4 && b.total == 400);
		mean_add(&hot, raw_estimate(&b, 1));
		mean_add(&rare, raw_estimate(&b, 2));
		mean_add(&all, raw_sum(&b));
		exact_deinit(&x);
		hotlist_release(from, &a);
		hotlist_release(into, &b);
	}
	assert_true(standard_errors(&hot, 40) < 4);
	assert_true(standard_errors(&rare, 8) < 4);
	assert_true(standard_errors(&all, 400) < 4);
	hotlist_pool_destroy(from);
	hotlist_pool_destroy(into);
}

/* Weights without measure neither hang nor wrap. */
static void huge_weights(void **state)
{
	struct hotlist_pool *pool = hotlist_pool_create(HOTLIST_COUNTING, 2, 1);
	struct hot_value list[HOTLIST_CAPACITY_MAX];
	struct hotlist h = {0};

	(void)state;
	for (uint64_t i = 0; i < 2000; i++)
		hotlist_add(pool, &h, i, UINT64_MAX - i);
	assert_true(h.total == UINT64_MAX && h.n <= 2);
	read_checked(pool, &h, list);
	hotlist_pool_destroy(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_while_it_fits),
		cmocka_unit_test(estimates_are_unbiased),
		cmocka_unit_test(bounds_hold),
		cmocka_unit_test(bounds_hold_for_the_hot),
		cmocka_unit_test(seeds_decide),
		cmocka_unit_test(many_streams),
		cmocka_unit_test(bounds_count_streams),
		cmocka_unit_test(capacities_mix),
		cmocka_unit_test(huge_weights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
