#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "collect/attribute_bursts.h"
#include "values/values.h"

static uint64_t count_of(const struct burst_group *g, uint64_t from, uint32_t target, uint64_t to)
{
	struct burst_edge key = {.from = from, .to = to, .target = target};
	const struct burst_edge *e = hmap_get(&g->edges, &key);

	return e ? e->count : 0;
}

static void add(
	struct bursts *b, uint32_t image, uint32_t who, uint64_t from, uint32_t target, uint64_t to)
{
	bursts_edge(b, bursts_group(b, image, who), from, target, to);
}

static void test_edges_are_counted(void **state)
{
	(void)state;
	struct bursts b;

	bursts_init(&b);
	for (int i = 0; i < 3; i++)
		add(&b, 1, 2, 0x10, 0, 0x20);
	add(&b, 1, 2, 0x10, 0, 0x12);
	add(&b, 1, 2, 0x10, 5, 0x20); /* the same offset in another image */
	add(&b, 1, 3, 0x10, 0, 0x20);
	add(&b, 4, 2, 0x10, 0, 0x20);
	const struct burst_group *g = bursts_group(&b, 1, 2);
	assert_int_equal(count_of(g, 0x10, 0, 0x20), 3);
	assert_int_equal(count_of(g, 0x10, 0, 0x12), 1);
	assert_int_equal(count_of(g, 0x10, 5, 0x20), 1);
	assert_int_equal(count_of(g, 0x10, 4, 0x20), 0);
	assert_int_equal(count_of(bursts_group(&b, 1, 3), 0x10, 0, 0x20), 1);
	assert_int_equal(b.groups.n, 3);
	assert_int_equal(b.edges, 5);
	assert_int_equal(b.refused, 0);
	bursts_deinit(&b);
}

static void test_sorted(void **state)
{
	(void)state;
	static const uint32_t order[][2] = {{0, 9}, {2, 1}, {2, 7}, {3, 0}, {70000, 0}, {70000, 1}};
	enum { N = sizeof order / sizeof *order };
	struct bursts b;

	bursts_init(&b);
	for (unsigned i = N; i-- > 0;)
		bursts_group(&b, order[i][0], order[i][1]);
	struct burst_group **list = bursts_sorted(&b);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(list[i]->image, order[i][0]);
		assert_int_equal(list[i]->who, order[i][1]);
	}
	free(list);
	bursts_deinit(&b);
}

static void test_nothing(void **state)
{
	(void)state;
	struct bursts b;

	bursts_init(&b);
	struct burst_group **list = bursts_sorted(&b);
	assert_non_null(list);
	free(list);
	bursts_clear(&b);
	bursts_deinit(&b);
}

/* New edges are refused when there are too many, known ones go on to be counted. */
static void test_bounded(void **state)
{
	(void)state;
	struct bursts b;
	size_t most = 0, memory;

	bursts_init(&b);
	for (uint64_t i = 0; i < 1 << 20 && !b.refused; i++) {
		add(&b, 1, (uint32_t)(i & 1), i * 16, 0, i);
		most += !b.refused;
	}
	assert_int_equal(b.refused, 1);
	assert_int_equal(b.edges, most);
	memory = bursts_memory(&b);
	for (uint64_t i = 0; i < 1000; i++)
		add(&b, 1, 0, i * 16 + 1, 0, i);
	assert_int_equal(b.refused, 1001);
	assert_int_equal(bursts_memory(&b), memory);
	add(&b, 1, 0, 32, 0, 2);
	assert_int_equal(b.refused, 1001);
	assert_int_equal(count_of(bursts_group(&b, 1, 0), 32, 0, 2), 2);
	/* A flush makes room. */
	bursts_clear(&b);
	assert_int_equal(b.refused, 0);
	assert_int_equal(b.edges, 0);
	assert_int_equal(b.groups.n, 0);
	assert_true(bursts_memory(&b) < memory / 10);
	add(&b, 1, 0, 1, 0, 1);
	assert_int_equal(b.edges, 1);
	bursts_deinit(&b);
}

static void test_values(void **state)
{
	(void)state;
	struct value_key key = {.offset = 0x40, .kind = VALUE_RESULT};
	struct burst_group *g;
	struct bursts b;

	bursts_init(&b);
	size_t before = bursts_memory(&b);
	g = bursts_group(&b, 1, 0);
	assert_null(g->values);
	struct value_profile *p = bursts_values(g);
	assert_non_null(p);
	assert_ptr_equal(bursts_values(g), p);
	value_profile_add(p, &key, 42, 1);
	assert_non_null(value_profile_find(bursts_group(&b, 1, 0)->values, &key));
	assert_null(bursts_group(&b, 2, 0)->values);
	assert_true(bursts_memory(&b) > before);
	bursts_deinit(&b);
}

/* Where procedures have to be known. */
static void test_offsets(void **state)
{
	(void)state;
	struct offsets o = {0};
	struct burst_group *g;
	struct bursts b;
	unsigned at[3] = {0};

	bursts_init(&b);
	g = bursts_group(&b, 1, 0);
	burst_group_offsets(g, &o);
	assert_int_equal(o.list.n, 0);
	for (uint64_t kind = VALUE_RESULT; kind <= VALUE_ADDRESS; kind++) {
		for (uint64_t offset = 0x30; offset <= 0x40; offset += 0x10)
			value_profile_add(bursts_values(g),
				&(struct value_key){.offset = offset, .kind = (uint16_t)kind}, 1,
				1);
	}
	bursts_edge(&b, g, 0x50, 0, 0x9990);
	burst_group_offsets(g, &o);
	vec_each (p, &o.list) {
		assert_true(p->offset == 0x30 || p->offset == 0x40 || p->offset == 0x50);
		assert_int_equal(p->count, 1);
		at[(p->offset - 0x30) / 16]++;
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(at[i], 1);
	vec_deinit(&o.list);
	bursts_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges_are_counted),
		cmocka_unit_test(test_sorted),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_offsets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
