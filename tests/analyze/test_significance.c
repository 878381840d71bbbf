#include "analyze/significance.h"
#include "isa/dice.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NEAR(a, b, within) near_enough(a, b, within, #a, __LINE__)

static void near_enough(double a, double b, double within, const char *what, int line)
{
	if (!(fabs(a - b) <= within))
		fail_msg("line %d: %s is %.12g, not %.12g", line, what, a, b);
}

/* ---- distributions, against tables ---- */

static void quantiles_are_those_of_tables(void **state)
{
	(void)state;
	NEAR(normal_quantile(0.975), 1.959963984540054, 1e-9);
	NEAR(normal_quantile(0.005), -2.575829303548901, 1e-9);
	NEAR(student_quantile(0.975, 1), 12.706204736432095, 1e-8);
	NEAR(student_quantile(0.975, 2), 4.302652729911275, 1e-9);
	NEAR(student_quantile(0.975, 4), 2.776445105197799, 1e-9);
	NEAR(student_quantile(0.95, 10), 1.812461122811676, 1e-9);
	NEAR(student_quantile(0.975, 30), 2.042272456301238, 1e-9);
	NEAR(student_quantile(0.025, 10), -2.228138851964939, 1e-9);
	NEAR(student_quantile(0.975, 1e9), 1.959963987, 1e-6);
	NEAR(student_quantile(0.5, 3), 0, 1e-12);
}

static void tails_are_those_of_tables(void **state)
{
	(void)state;
	NEAR(student_tail(2, 5), 0.050969739414929, 1e-12);
	NEAR(student_tail(-2, 5), 1 - 0.050969739414929, 1e-12);
	NEAR(student_tail(0, 7), 0.5, 1e-15);
	NEAR(student_tail(1, 1), 0.25, 1e-14);
	NEAR(student_tail(1.959963984540054, INFINITY), 0.025, 1e-12);
	NEAR(chi_square_tail(3.841458820694124, 1), 0.05, 1e-12);
	NEAR(chi_square_tail(18.307038053275146, 10), 0.05, 1e-12);
	NEAR(chi_square_tail(124.342113404004, 100), 0.05, 1e-10);
	NEAR(chi_square_tail(2, 2), exp(-1), 1e-14);
	NEAR(chi_square_tail(0, 3), 1, 0);
}

/* ---- differences, against published examples ---- */

/* Newcombe 1998, method 10: 56 of 70 against 48 of 80. */
static void shares_differ_as_published(void **state)
{
	double before = 48, after = 56, wb = 1 / 80.0, wa = 1 / 70.0;
	struct side b = side_of(&before, &wb, 1, true), a = side_of(&after, &wa, 1, true);
	struct difference d = difference_of(&b, &a, 0.95);

	(void)state;
	NEAR(b.count, 48, 1e-9);
	NEAR(b.of, 80, 1e-9);
	NEAR(d.change, 0.2, 1e-12);
	NEAR(d.low, 0.0524, 5e-5);
	NEAR(d.high, 0.3339, 5e-5);
}

/* Student's sleep data as R's t.test gives it. */
static void means_differ_as_published(void **state)
{
	static const double one[] = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0, 2};
	static const double two[] = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
	static const double weights[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	struct side a = side_of(one, weights, 10, false), b = side_of(two, weights, 10, false);
	struct difference d;

	(void)state;
	/* So many samples that they add no error. */
	a.count = b.count = 1e12;
	a.unit = a.mean / a.count;
	b.unit = b.mean / b.count;
	d = difference_of(&a, &b, 0.95);
	NEAR(d.change, 1.58, 1e-9);
	NEAR(d.low, -0.2054832, 1e-6);
	NEAR(d.high, 3.3654832, 1e-6);
	NEAR(d.p, 0.07939414, 1e-6);
}

static void counts_of_one_run_have_sampling_error(void **state)
{
	double before = 100, after = 140, w = 0.001;
	struct side b = side_of(&before, &w, 1, false), a = side_of(&after, &w, 1, false);
	struct difference d = difference_of(&b, &a, 0.95);
	/* The difference over its standard error, and the uniformly most powerful test: k of n. */
	double z = 40 / sqrt(240);

	(void)state;
	NEAR(d.change, 0.040, 1e-12);
	NEAR(d.high - d.low, 2 * 1.96 * sqrt(240) * w, 0.001);
	NEAR(d.p, erfc(z / M_SQRT2), 0.002);
	assert_true(d.low > 0);
}

static void nothing_before_is_no_division_by_zero(void **state)
{
	double none[] = {0, 0}, some[] = {20, 30}, w[] = {0.5, 0.5};
	struct side b = side_of(none, w, 2, false), a = side_of(some, w, 2, false);
	struct difference d = difference_of(&b, &a, 0.95), same = difference_of(&b, &b, 0.95);

	(void)state;
	NEAR(d.change, 12.5, 1e-12);
	assert_true(d.p > 0 && d.p < 0.3);
	assert_true(isfinite(d.low) && isfinite(d.high));
	NEAR(same.change, 0, 0);
	NEAR(same.p, 1, 0);
	assert_true(same.low < 0 && same.high > 0);
}

static void one_run_borrows_the_variance_of_the_others(void **state)
{
	double alone = 1000, several[] = {700, 1000, 1300}, w[] = {1, 1, 1};
	struct side b = side_of(&alone, w, 1, false), a = side_of(several, w, 3, false);
	struct difference d = difference_of(&b, &a, 0.95);
	double half = student_quantile(0.975, 2) * 300 * sqrt(1 + 1 / 3.0);

	(void)state;
	NEAR(d.low, -half, 1e-6);
	NEAR(d.high, half, 1e-6);
}

static void weights_of_runs_count(void **state)
{
	/* Twice the rate: half the weight, the same time, surer. */
	double samples[] = {100, 200}, w[] = {1, 0.5};
	struct side s = side_of(samples, w, 2, false);

	(void)state;
	NEAR(s.mean, 100, 1e-12);
	NEAR(s.variance, 0, 1e-12);
	NEAR(s.count, 100 * 100 / ((100 + 50) / 4.0), 1e-9);
	NEAR(s.count * s.unit, s.mean, 1e-12);
}

/* ---- how often the intervals hold the truth ---- */

static double uniform(struct dice *d)
{
	return ((double)(dice_roll(d) >> 11) + 0.5) / 9007199254740992.0;
}

static double gauss(struct dice *d)
{
	return sqrt(-2 * log(uniform(d))) * cos(2 * M_PI * uniform(d));
}

static double poisson(struct dice *d, double mean)
{
	double p = 1, stop = exp(-mean);
	int n = -1;

	do {
		p *= uniform(d);
		n++;
	} while (p > stop);
	return n;
}

struct trial {
	double before, after; /* expected samples of a run */
	double varies;        /* standard deviation of runs over their mean */
	size_t nbefore, nafter;
	double of; /* samples of a run, when shares are compared */
};

static struct side draw(struct dice *d, const struct trial *t, double mean, size_t runs)
{
	double samples[8], weights[8];

	for (size_t i = 0; i < runs; i++) {
		double here = mean * fmax(0, 1 + t->varies * gauss(d));

		samples[i] = poisson(d, here);
		weights[i] = 1;
		if (t->of > 0)
			weights[i] = 1 / (samples[i] + poisson(d, t->of - mean));
	}
	return side_of(samples, weights, runs, t->of > 0);
}

static double coverage(const struct trial *t)
{
	enum { TIMES = 4000 };
	struct dice d = {.state = 17};
	double change = (t->after - t->before) / (t->of > 0 ? t->of : 1);
	int held = 0;

	for (int i = 0; i < TIMES; i++) {
		struct side b = draw(&d, t, t->before, t->nbefore);
		struct side a = draw(&d, t, t->after, t->nafter);
		struct difference got = difference_of(&b, &a, 0.95);

		held += got.low <= change && change <= got.high;
	}
	return (double)held / TIMES;
}

static void intervals_hold_the_truth(void **state)
{
	static const struct trial trials[] = {
		{5, 5, 0, 1, 1, 0},
		{2, 12, 0, 1, 1, 0},
		{40, 40, 0, 1, 1, 0},
		{300, 330, 0, 1, 1, 0},
		{40, 60, 0, 3, 3, 0},
		{300, 300, 0.15, 2, 2, 0},
		{300, 300, 0.15, 5, 5, 0},
		{300, 200, 0.3, 5, 3, 0},
		{300, 300, 0.15, 1, 5, 0},
		{20, 20, 0.1, 5, 5, 0},
		{250, 260, 0, 1, 1, 300},
		{30, 60, 0, 1, 1, 300},
	};

	(void)state;
	for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
		double got = coverage(&trials[i]);

		print_message("%zu: %.3f\n", i, got);
		if (got < 0.935)
			fail_msg("trial %zu: the interval holds the truth in %.1f%%", i, 100 * got);
		/* Poisson alone is not far too careful. */
		if (trials[i].nbefore + trials[i].nafter == 2 && got > 0.975)
			fail_msg("trial %zu: the interval is too wide: %.1f%%", i, 100 * got);
	}
}

/* ---- many at once ---- */

static void many_are_adjusted_as_published(void **state)
{
	double p[] = {0.01, 0.04, 0.03, 0.005}, none[1];

	(void)state;
	adjust_for_many(p, 4);
	NEAR(p[0], 0.02, 1e-15);
	NEAR(p[1], 0.04, 1e-15);
	NEAR(p[2], 0.04, 1e-15);
	NEAR(p[3], 0.02, 1e-15);
	adjust_for_many(none, 0);
}

/* Of a thousand procedures that are the same, 5% would stand out one by one; together hardly any.
 */
static void chance_finds_little_among_many(void **state)
{
	enum { MANY = 1000, ROUNDS = 20 };
	static double p[MANY];
	struct dice d = {.state = 5};
	struct trial t = {.of = 0};
	int alone = 0, rounds = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		int together = 0;

		for (int i = 0; i < MANY; i++) {
			double mean = 10 + 40 * uniform(&d);
			struct side b = draw(&d, &t, mean, 1), a = draw(&d, &t, mean, 1);

			p[i] = difference_of(&b, &a, 0.95).p;
			alone += p[i] <= 0.05;
		}
		adjust_for_many(p, MANY);
		for (int i = 0; i < MANY; i++)
			together += p[i] <= 0.05;
		rounds += together > 0;
	}
	assert_in_range(alone, MANY * ROUNDS * 3 / 100, MANY * ROUNDS * 6 / 100);
	assert_in_range(rounds, 0, 4);
}

static void dispersion_tells_chance_from_variation(void **state)
{
	double counts[] = {90, 105, 110, 95}, parts[] = {1, 1, 1, 1};
	double apart[] = {50, 105, 150, 95}, lengths[] = {1, 2, 3, 2};

	(void)state;
	NEAR(dispersion_p(counts, parts, 4), chi_square_tail(2.5, 3), 1e-12);
	assert_true(dispersion_p(apart, parts, 4) < 1e-9);
	assert_true(dispersion_p(apart, lengths, 4) > 0.5);
	NEAR(dispersion_p(counts, parts, 1), 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_those_of_tables),
		cmocka_unit_test(tails_are_those_of_tables),
		cmocka_unit_test(shares_differ_as_published),
		cmocka_unit_test(means_differ_as_published),
		cmocka_unit_test(counts_of_one_run_have_sampling_error),
		cmocka_unit_test(nothing_before_is_no_division_by_zero),
		cmocka_unit_test(one_run_borrows_the_variance_of_the_others),
		cmocka_unit_test(weights_of_runs_count),
		cmocka_unit_test(intervals_hold_the_truth),
		cmocka_unit_test(many_are_adjusted_as_published),
		cmocka_unit_test(chance_finds_little_among_many),
		cmocka_unit_test(dispersion_tells_chance_from_variation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
