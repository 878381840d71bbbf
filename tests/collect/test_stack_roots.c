/* Stacks that begin where a walk has found their root. */
#include "collect/stack_roots.h"

#include <stdarg.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

static uint64_t base_of(const struct stack_roots *r, uint64_t owner, uint64_t address)
{
	const struct stack_root *root = stack_roots_find(r, owner, address);

	return root ? root->base : 0;
}

static void test_nearest(void **state)
{
	struct stack_roots r;

	(void)state;
	stack_roots_init(&r);
	assert_false(stack_roots_knows(&r, 1));
	stack_roots_add(&r, 1, &(struct stack_root){0x9000, 0x1000, STACK_OTHER});
	stack_roots_add(&r, 1, &(struct stack_root){0x5000, 0x1000, STACK_OTHER});
	stack_roots_add(&r, 1, &(struct stack_root){0x7000, 0x4000, STACK_MAIN});
	assert_true(stack_roots_knows(&r, 1));
	assert_int_equal(base_of(&r, 1, 0x4ff8), 0x5000);
	assert_int_equal(base_of(&r, 1, 0x4000), 0x5000);
	assert_int_equal(base_of(&r, 1, 0x3ff8), 0); /* too far below */
	assert_int_equal(base_of(&r, 1, 0x5000), 0x7000);
	assert_int_equal(base_of(&r, 1, 0x8ff8), 0x9000);
	assert_int_equal(base_of(&r, 1, 0x9000), 0);
	assert_int_equal(base_of(&r, 2, 0x4ff8), 0);
	stack_roots_add(&r, 1, &(struct stack_root){0x5000, 0x10, STACK_OTHER});
	assert_int_equal(base_of(&r, 1, 0x4000), 0);
	stack_roots_deinit(&r);
}

/* Stacks and processes without end take no memory without end. */
static void test_bounded(void **state)
{
	struct stack_roots r;

	(void)state;
	stack_roots_init(&r);
	for (uint64_t i = 1; i < 20000; i++)
		stack_roots_add(&r, 1, &(struct stack_root){i << 16, 1 << 12, STACK_OTHER});
	assert_int_equal(base_of(&r, 1, (19999ull << 16) - 8), 19999ull << 16);
	for (uint64_t i = 1; i < 20000; i++)
		stack_roots_add(&r, i, &(struct stack_root){1 << 16, 1 << 12, STACK_OTHER});
	assert_int_equal(base_of(&r, 19999, 0xfff8), 1 << 16);
	assert_true(stack_roots_memory(&r) < 1 << 20);
	stack_roots_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nearest), cmocka_unit_test(test_bounded)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
