#include "collect/excursion_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { WAYS = 4 };

/* The n-th line of a set. */
static uint64_t line(unsigned set, uint64_t n)
{
	return n * EXCURSION_SETS + set;
}

static struct excursion_cache open_cache(void)
{
	struct excursion_cache c;

	excursion_cache_init(&c, (long)WAYS * EXCURSION_SETS * EXCURSION_LINE);
	assert_int_equal(c.ways, WAYS);
	return c;
}

static void sizes(void **state)
{
	struct excursion_cache c;

	(void)state;
	excursion_cache_init(&c, 48 << 10);
	assert_int_equal(c.ways, 12);
	excursion_cache_init(&c, 1 << 20);
	assert_int_equal(c.ways, EXCURSION_WAYS);
	excursion_cache_init(&c, -1); /* the system does not say */
	assert_int_equal(c.ways, 8);
}

static void oldest_makes_room(void **state)
{
	struct excursion_cache c = open_cache();

	(void)state;
	for (unsigned n = 0; n < WAYS; n++)
		excursion_touch(&c, line(63, n));
	assert_false(excursion_touch(&c, line(63, 0))); /* 0 3 2 1 */
	assert_true(excursion_touch(&c, line(63, 7)));  /* 7 0 3 2 */
	assert_false(excursion_touch(&c, line(63, 2))); /* 2 7 0 3 */
	assert_true(excursion_touch(&c, line(63, 1)));  /* 1 2 7 0 */
	assert_true(excursion_touch(&c, line(63, 3)));
	assert_false(excursion_touch(&c, line(63, 2)));
	/* Line 0 is a line like any other. */
	excursion_touch(&c, line(0, 0));
	assert_false(excursion_touch(&c, line(0, 0)));
}

/* Against a list of all lines by when they were used last. */
static void as_a_list(void **state)
{
	enum { LINES = 16, TIMES = 20000 };
	struct excursion_cache c = open_cache();
	uint64_t used[LINES] = {0}, random = 1;

	(void)state;
	for (uint64_t now = 1; now <= TIMES; now++) {
		unsigned n, newer = 0, before = 0;
		bool gone;

		random = random * 6364136223846793005u + 1442695040888963407u;
		n = (unsigned)(random >> 33) % (1 + (unsigned)(random >> 60));
		for (unsigned i = 0; i < LINES; i++) {
			newer += used[i] > used[n];
			before += used[i] > 0;
		}
		gone = excursion_touch(&c, line(9, n));
		if (used[n] || before >= WAYS)
			assert_int_equal(gone, !used[n] || newer >= WAYS);
		used[n] = now;
	}
}

/* How many of `times` lines that nobody knows are gone, once each set has `known` others. */
static unsigned draw(struct excursion_cache *c, unsigned known, unsigned times)
{
	unsigned gone = 0;

	for (unsigned i = 0; i < times; i++) {
		excursion_cache_forget(c);
		for (unsigned n = 0; n < known; n++)
			excursion_touch(c, line(3, n));
		c->found[0] += 100; /* else these would be most of what was seen */
		gone += excursion_touch(c, line(3, 100));
	}
	return gone;
}

/* All lines come back at once, or after two others: so what is not among three others is gone. */
static void drawn_by_what_others_did(void **state)
{
	struct excursion_cache c = open_cache();
	unsigned gone;

	(void)state;
	c.found[0] = 8000000;
	c.found[2] = 1000000;
	c.missed[WAYS] = 1000000;
	gone = draw(&c, 0, 10);
	assert_true(gone < 6);
	c.found[0] = 8000000;
	c.found[2] = 1000000;
	c.missed[WAYS] = 1000000;
	assert_in_range(draw(&c, 3, 10), 9, 10);
	c.found[2] = 1000000;
	c.missed[WAYS] = 1000000;
	gone = 0;
	for (unsigned i = 0; i < 40; i++) {
		c.found[2] = c.missed[WAYS] = 1000000;
		gone += draw(&c, 1, 1);
	}
	assert_in_range(gone, 8, 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(oldest_makes_room),
		cmocka_unit_test(as_a_list),
		cmocka_unit_test(drawn_by_what_others_did),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
