#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/walk_pool.h"

static struct walk_pool pool;

/* A walk of so many steps. */
static void add(uint32_t image, uint32_t who, uint64_t start, uint32_t steps)
{
	if (!walk_pool_begin(&pool, image, who, start))
		return;
	for (uint32_t i = 0; i < steps; i++)
		assert_true(walk_pool_step(&pool, start + i, i % 2 ? 7 : 0, start + 2 * i));
	walk_pool_end(&pool, 10 + steps);
}

static void test_found_by_image_and_who(void **state)
{
	(void)state;
	const struct pooled_walk *first;

	walk_pool_init(&pool, 1);
	walk_pool_settle(&pool);
	assert_int_equal(walk_pool_find(&pool, 0, 0, &first), 0);
	add(5, 1, 30, 2);
	add(2, 9, 20, 0);
	add(5, 1, 10, 3);
	add(5, 0, 40, 1);
	walk_pool_settle(&pool);
	assert_int_equal(walk_pool_find(&pool, 5, 1, &first), 2);
	assert_int_equal(first[0].start + first[1].start, 40);
	assert_int_equal(first[0].weight, 1);
	assert_int_equal(walk_pool_find(&pool, 2, 9, &first), 1);
	assert_int_equal(first->start, 20);
	assert_int_equal(first->instructions, 10);
	assert_int_equal(first->nsteps, 0);
	assert_int_equal(walk_pool_find(&pool, 5, 0, &first), 1);
	assert_int_equal(walk_pool_find(&pool, 5, 2, &first), 0);
	assert_int_equal(walk_pool_find(&pool, 9, 0, &first), 0);
	assert_int_equal(pool.reservoir.seen, 4);
	walk_pool_clear(&pool);
	walk_pool_settle(&pool);
	assert_int_equal(walk_pool_find(&pool, 5, 1, &first), 0);
	assert_int_equal(pool.reservoir.seen, 0);
	walk_pool_deinit(&pool);
}

static void test_steps(void **state)
{
	(void)state;
	const struct pooled_walk *first;
	struct pooled_step steps[3];

	walk_pool_init(&pool, 1);
	add(1, 0, 100, 3);
	/* One that is void, or of which nothing is left, was never seen. */
	assert_true(walk_pool_begin(&pool, 1, 0, 200));
	assert_true(walk_pool_step(&pool, 200, 0, 210));
	walk_pool_void(&pool);
	assert_true(walk_pool_begin(&pool, 1, 0, 300));
	walk_pool_end(&pool, 0);
	assert_int_equal(pool.reservoir.seen, 1);
	/* As many steps as there is room for. */
	assert_true(walk_pool_begin(&pool, 1, 1, 400));
	for (int i = 0; i < WALK_STEPS; i++)
		assert_true(walk_pool_step(&pool, 400, 0, 400));
	assert_false(walk_pool_step(&pool, 400, 0, 400));
	walk_pool_end(&pool, 0);
	walk_pool_settle(&pool);
	assert_int_equal(walk_pool_find(&pool, 1, 0, &first), 1);
	assert_int_equal(first->nsteps, 3);
	pooled_walk_steps(first, steps);
	assert_int_equal(steps[2].from, 102);
	assert_int_equal(steps[2].to, 104);
	assert_int_equal(steps[1].target, 7);
	assert_int_equal(steps[2].target, 0);
	assert_int_equal(walk_pool_find(&pool, 1, 1, &first), 1);
	assert_int_equal(first->nsteps, WALK_STEPS);
	assert_int_equal(first->instructions, 0);
	walk_pool_deinit(&pool);
}

/* Bounded memory; early and late ones are kept alike, and the weights tell how many there were. */
static void test_uniform(void **state)
{
	(void)state;
	enum { N = 200000, PARTS = 4 };
	unsigned parts[PARTS] = {0};
	uint64_t weight = 0;
	size_t bytes = 0;

	walk_pool_init(&pool, 42);
	for (unsigned i = 0; i < N; i++) {
		add(1, i % 3, i, i % 11);
		if (i == N / 3) /* a flush that fails */
			walk_pool_settle(&pool);
	}
	assert_int_equal(pool.list.n, WALK_POOL);
	walk_pool_settle(&pool);
	vec_each (w, &pool.list) {
		parts[w->start * PARTS / N]++;
		weight += w->weight;
		bytes += w->size;
		assert_int_equal(w->nsteps, w->start % 11);
		assert_in_range(w->weight, N / WALK_POOL, N / WALK_POOL + 1);
	}
	assert_int_equal(weight, N);
	assert_int_equal(pool.bytes, bytes);
	assert_in_range(
		walk_pool_memory(&pool), bytes, bytes + 2 * WALK_POOL * sizeof *pool.list.p);
	/* 8,192 expected, with a standard deviation of 78. */
	for (unsigned i = 0; i < PARTS; i++)
		assert_in_range(parts[i], 7850, 8550);
	walk_pool_deinit(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found_by_image_and_who),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_uniform),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
