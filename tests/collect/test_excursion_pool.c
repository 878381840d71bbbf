#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/mem.h"
#include "collect/excursion_pool.h"

static struct excursion_pool pool;

static void add(uint64_t number, size_t transfers)
{
	struct pooled_excursion x = {.number = number,
		.weight = 1000,
		.ntransfers = transfers,
		.transfers = xcalloc(transfers + 1, sizeof *x.transfers)};

	for (size_t i = 0; i < transfers; i++)
		x.transfers[i] = (struct pooled_transfer){.stretch = (uint32_t)(i % 4),
			.image = (uint32_t)(i % 3),
			.from = transfers - i,
			.count = 1};
	excursion_pool_add(&pool, &x);
}

/* Their weights are those of all, and their numbers those of any. */
static void expect_sample(size_t seen)
{
	double weight = 0, number = 0, n = (double)pool.list.n;

	excursion_pool_settle(&pool);
	vec_each (x, &pool.list) {
		assert_true(x == pool.list.p || x[-1].number < x->number);
		weight += (double)x->weight;
		number += (double)x->number;
	}
	assert_true(fabs(weight - 1000.0 * (double)seen) < 1.0 * (double)seen);
	assert_true(fabs(number / n / (double)seen - 0.5) < 4 / sqrt(12 * n));
}

static void test_found_by_image_and_stretch(void **state)
{
	const struct pooled_transfer *first;

	(void)state;
	excursion_pool_init(&pool, 1);
	add(7, 24);
	add(5, 0);
	excursion_pool_settle(&pool);
	assert_int_equal(pool.list.p[0].number, 5);
	assert_int_equal(pooled_excursion_of(&pool.list.p[0], 0, 0, &first), 0);
	assert_int_equal(pooled_excursion_of(&pool.list.p[1], 2, 3, &first), 2);
	assert_int_equal(first->from, 24 - 23);
	assert_int_equal(pooled_excursion_of(&pool.list.p[1], 3, 0, &first), 0);
	excursion_pool_deinit(&pool);
}

static void test_small_ones(void **state)
{
	enum { SEEN = 5 * EXCURSION_POOL };

	(void)state;
	excursion_pool_init(&pool, 1);
	for (uint64_t i = 0; i < SEEN; i++)
		add(i, 3);
	assert_int_equal(pool.list.n, EXCURSION_POOL);
	assert_int_equal(pool.transfers, 3 * EXCURSION_POOL);
	expect_sample(SEEN);
	excursion_pool_deinit(&pool);
}

/* Fewer are kept then, also of those that come later; not so after the next flush. */
static void test_large_ones(void **state)
{
	enum { SEEN = 3000, TRANSFERS = 4000, KEPT = EXCURSION_TRANSFERS / TRANSFERS };

	(void)state;
	excursion_pool_init(&pool, 1);
	for (uint64_t i = 0; i < SEEN; i++)
		add(i, TRANSFERS);
	assert_int_equal(pool.list.n, KEPT);
	assert_int_equal(pool.transfers, KEPT * TRANSFERS);
	assert_true(excursion_pool_memory(&pool) < 50 << 20);
	expect_sample(SEEN);
	excursion_pool_clear(&pool);
	assert_int_equal(pool.transfers, 0);
	for (uint64_t i = 0; i < SEEN; i++)
		add(i, 1);
	assert_int_equal(pool.list.n, SEEN);
	expect_sample(SEEN);
	excursion_pool_deinit(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found_by_image_and_stretch),
		cmocka_unit_test(test_small_ones),
		cmocka_unit_test(test_large_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
