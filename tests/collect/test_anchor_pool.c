#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/anchor_pool.h"

static void add(struct anchor_pool *p, uint32_t image, uint32_t who, uint64_t pc)
{
	anchor_pool_add(p, image, who, &(struct anchor){.pc = pc, .between = 1000});
}

static void test_found_by_image_and_who(void **state)
{
	(void)state;
	const struct pooled_anchor *first;
	struct anchor_pool p;

	anchor_pool_init(&p, 1);
	anchor_pool_settle(&p);
	assert_int_equal(anchor_pool_find(&p, 0, 0, &first), 0);
	add(&p, 5, 1, 30);
	add(&p, 2, 9, 20);
	add(&p, 5, 1, 10);
	add(&p, 5, 0, 40);
	anchor_pool_settle(&p);
	assert_int_equal(anchor_pool_find(&p, 5, 1, &first), 2);
	assert_int_equal(first[0].anchor.pc, 10);
	assert_int_equal(first[1].anchor.pc, 30);
	assert_int_equal(first[0].anchor.weight, 1);
	assert_int_equal(anchor_pool_find(&p, 2, 9, &first), 1);
	assert_int_equal(first->anchor.pc, 20);
	assert_int_equal(anchor_pool_find(&p, 5, 0, &first), 1);
	assert_int_equal(anchor_pool_find(&p, 5, 2, &first), 0);
	assert_int_equal(anchor_pool_find(&p, 9, 0, &first), 0);
	assert_int_equal(p.reservoir.seen, 4);
	anchor_pool_clear(&p);
	anchor_pool_settle(&p);
	assert_int_equal(anchor_pool_find(&p, 5, 1, &first), 0);
	assert_int_equal(p.reservoir.seen, 0);
	anchor_pool_deinit(&p);
}

/* Fixed memory; early and late ones are kept alike, and the weights tell how many there were. */
static void test_uniform(void **state)
{
	(void)state;
	enum { N = 100000, PARTS = 4 };
	unsigned parts[PARTS] = {0};
	uint64_t weight = 0;
	struct anchor_pool p;
	size_t memory = 0;

	anchor_pool_init(&p, 42);
	for (unsigned i = 0; i < N; i++) {
		add(&p, 1, i % 3, i);
		if (i == ANCHORS_MOST)
			memory = anchor_pool_memory(&p);
		if (i == N / 3) /* a flush that fails */
			anchor_pool_settle(&p);
	}
	assert_int_equal(p.list.n, ANCHORS_MOST);
	assert_int_equal(anchor_pool_memory(&p), memory);
	anchor_pool_settle(&p);
	vec_each (e, &p.list) {
		parts[e->anchor.pc * PARTS / N]++;
		weight += e->anchor.weight;
		assert_in_range(e->anchor.weight, N / ANCHORS_MOST, N / ANCHORS_MOST + 1);
	}
	assert_int_equal(weight, N);
	/* 256 expected, with a standard deviation of 14. */
	for (unsigned i = 0; i < PARTS; i++)
		assert_in_range(parts[i], 196, 316);
	anchor_pool_deinit(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found_by_image_and_who),
		cmocka_unit_test(test_uniform),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
