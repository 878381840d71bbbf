#include "collect/excursion_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { WAYS = 3 };

/* The n-th line of a set. */
static uint64_t line(unsigned set, uint64_t n)
{
	return n * EXCURSION_SETS + set;
}

static void unknown_until_filled(void **state)
{
	struct excursion_cache c = {.ways = WAYS};

	(void)state;
	for (unsigned n = 0; n < WAYS; n++)
		assert_int_equal(excursion_touch(&c, line(5, n)), EXCURSION_OPEN);
	assert_int_equal(excursion_touch(&c, line(5, WAYS)), EXCURSION_GONE);
	/* Other sets know nothing of it; line 0 is a line like any other. */
	assert_int_equal(excursion_touch(&c, line(0, 0)), EXCURSION_OPEN);
	assert_int_equal(excursion_touch(&c, line(0, 0)), EXCURSION_KEPT);
}

static void oldest_makes_room(void **state)
{
	struct excursion_cache c = {.ways = WAYS};

	(void)state;
	for (unsigned n = 0; n < WAYS; n++)
		excursion_touch(&c, line(63, n));
	assert_int_equal(excursion_touch(&c, line(63, 0)), EXCURSION_KEPT); /* 0 2 1 */
	assert_int_equal(excursion_touch(&c, line(63, 7)), EXCURSION_GONE); /* 7 0 2 */
	assert_int_equal(excursion_touch(&c, line(63, 2)), EXCURSION_KEPT); /* 2 7 0 */
	assert_int_equal(excursion_touch(&c, line(63, 1)), EXCURSION_GONE); /* 1 2 7 */
	assert_int_equal(excursion_touch(&c, line(63, 0)), EXCURSION_GONE);
	assert_int_equal(excursion_touch(&c, line(63, 2)), EXCURSION_KEPT);
}

/* Against a list of all lines by when they were used last. */
static void as_a_list(void **state)
{
	enum { LINES = 40, TIMES = 20000 };
	struct excursion_cache c = {.ways = WAYS};
	uint64_t used[LINES] = {0}, random = 1;

	(void)state;
	for (uint64_t now = 1; now <= TIMES; now++) {
		unsigned n, newer = 0, before = 0;

		random = random * 6364136223846793005u + 1442695040888963407u;
		n = (unsigned)(random >> 33) % LINES % (1 + (unsigned)(random >> 60));
		for (unsigned i = 0; i < LINES; i++) {
			newer += used[i] > used[n];
			before += used[i] > 0;
		}
		assert_int_equal(excursion_touch(&c, line(9, n)), used[n] && newer < WAYS
									  ? EXCURSION_KEPT
								  : before < WAYS ? EXCURSION_OPEN
										  : EXCURSION_GONE);
		used[n] = now;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_until_filled),
		cmocka_unit_test(oldest_makes_room),
		cmocka_unit_test(as_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
