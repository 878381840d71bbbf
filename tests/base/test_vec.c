#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/vec.h"

static int by_value(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return (x > y) - (x < y);
}

static void test_add_and_sort(void **state)
{
	(void)state;
	VEC(int) v = {0};
	for (int i = 0; i < 1000; i++)
		*vec_add(&v) = (i * 7919) % 1000;
	assert_int_equal(v.n, 1000);
	assert_true(v.space >= v.n);
	vec_sort(&v, by_value);
	int expect = 0;
	vec_each (it, &v)
		assert_int_equal(*it, expect++);
	assert_int_equal(expect, 1000);
	vec_deinit(&v);
	assert_null(v.p);
	assert_int_equal(v.n, 0);
	assert_int_equal(v.space, 0);
}

static void test_empty(void **state)
{
	(void)state;
	VEC(int) v = {0};
	vec_sort(&v, by_value);
	vec_each (it, &v)
		fail_msg("an element of nothing: %d", *it);
	vec_deinit(&v);
}

static void test_reserve(void **state)
{
	(void)state;
	VEC(uint64_t) v = {0};
	vec_reserve(&v, 100);
	assert_true(v.space >= 100);
	uint64_t *p = v.p;
	for (int i = 0; i < 100; i++)
		*vec_add(&v) = 1;
	assert_ptr_equal(v.p, p);
	vec_deinit(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add_and_sort),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_reserve),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
