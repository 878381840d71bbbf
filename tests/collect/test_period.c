#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/period.h"

enum { DRAWS = 160000, BINS = 16 };

/* Every sixteenth of the range is hit equally often: chi-square with 15 degrees of freedom. */
static void test_uniform(void **state)
{
	(void)state;
	struct period_source s = {1};
	const uint64_t mean = 192307, half = mean >> 4;
	double chi = 0, sum = 0;
	unsigned bins[BINS] = {0};

	for (int i = 0; i < DRAWS; i++) {
		uint64_t p = period_draw(&s, mean, 4);
		assert_in_range(p, mean - half, mean + half);
		bins[(p - (mean - half)) * BINS / (2 * half + 1)]++;
		sum += p;
	}
	for (int i = 0; i < BINS; i++) {
		double off = bins[i] - (double)DRAWS / BINS;
		chi += off * off / ((double)DRAWS / BINS);
	}
	assert_true(chi < 37.7); /* p = 0.001 */
	assert_true(sum / DRAWS > mean * 0.9995 && sum / DRAWS < mean * 1.0005);
}

/* Consecutive draws do not follow each other: their correlation is that of chance. */
static void test_independent(void **state)
{
	(void)state;
	struct period_source s = {2};
	const double mean = 1000000;
	double product = 0, square = 0, before = 0;

	for (int i = 0; i < DRAWS; i++) {
		double x = period_draw(&s, mean, 4) - mean;
		product += x * before;
		square += x * x;
		before = x;
	}
	assert_true(product / square < 0.01 && product / square > -0.01);
}

/*
 * A loop in step with the mean period, seen in a quarter of which: with fixed periods all samples
 * fall on one place, with drawn ones each quarter gets its share.
 */
static void test_out_of_step(void **state)
{
	(void)state;
	const uint64_t loop = 100000;
	struct period_source s = {3};
	uint64_t fixed[4] = {0}, drawn[4] = {0}, t = 12345, u = 12345, period = loop;

	for (int i = 0; i < 40000; i++) {
		t += loop;
		fixed[t % loop * 4 / loop]++;
		if (i % 100 == 0)
			period = period_draw(&s, loop, 4);
		u += period;
		drawn[u % loop * 4 / loop]++;
	}
	assert_int_equal(fixed[0], 40000);
	for (int i = 0; i < 4; i++)
		assert_in_range(drawn[i], 9400, 10600);
}

static void test_small_means(void **state)
{
	(void)state;
	struct period_source s;

	period_seed(&s);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(period_draw(&s, 1, 4), 1);
		assert_int_equal(period_draw(&s, 15, 4), 15);
		assert_in_range(period_draw(&s, 16, 4), 15, 17);
		assert_in_range(period_draw(&s, UINT64_MAX / 2, 4), UINT64_MAX / 2 / 17 * 15,
			UINT64_MAX / 2 / 15 * 17);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uniform),
		cmocka_unit_test(test_independent),
		cmocka_unit_test(test_out_of_step),
		cmocka_unit_test(test_small_means),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
