#include "image/names.h"

#include "image/workshop.h"

enum { MANY = 20000 };

static void name_of(uint32_t i, char *out, size_t size)
{
	snprintf(out, size, "symbol_%u_of_some_subsystem_%x", i, i * 2654435761u);
}

/* Over many blocks, asked for in another order than they came in. */
static void test_many(void **state)
{
	(void)state;
	struct names s = {0};
	uint32_t *numbers = calloc(MANY, sizeof *numbers);
	char name[80];
	size_t raw = 0;

	for (uint32_t i = 0; i < MANY; i++) {
		name_of(i, name, sizeof name);
		numbers[i] = names_add(&s, name, strlen(name));
		assert_int_not_equal(numbers[i], 0);
		raw += strlen(name) + 1;
	}
	names_finish(&s);
	assert_true(names_memory(&s) < raw / 2);
	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t k = i * 7919 % MANY;

		name_of(k, name, sizeof name);
		assert_string_equal(names_get(&s, numbers[k]), name);
	}
	free(numbers);
	names_deinit(&s);
}

/* A name as long as a block is cut, an empty one is none, and what follows is not disturbed. */
static void test_extremes(void **state)
{
	(void)state;
	struct names s = {0};
	char *long_name = malloc(100000);
	uint32_t a, b, c;

	memset(long_name, 'x', 100000);
	a = names_add(&s, "a", 1);
	b = names_add(&s, long_name, 100000);
	c = names_add(&s, "cut\0here", 8);
	assert_int_equal(names_add(&s, "", 0), 0);
	names_finish(&s);
	assert_string_equal(names_get(&s, c), "cut");
	assert_true(strlen(names_get(&s, b)) > 16000);
	assert_string_equal(names_get(&s, a), "a");
	free(long_name);
	names_deinit(&s);
}

/* A million long names are not all kept. */
static void test_bounded(void **state)
{
	(void)state;
	struct names s = {0};
	char name[8192];
	uint32_t refused = 0;

	memset(name, 'y', sizeof name);
	for (uint32_t i = 0; i < 10000 && !refused; i++)
		refused = !names_add(&s, name, sizeof name);
	assert_true(refused);
	names_finish(&s);
	assert_string_equal(names_get(&s, 1) + sizeof name - 1, "y");
	names_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
