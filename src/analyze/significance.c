#include "analyze/significance.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

/* ---- distributions ---- */

/*
 * A continued fraction 1 / (1 + a1 / (1 + a2 / ...)) by Lentz's method; term(arg, i) is a_i.
 */
typedef double fraction_term(const double *arg, int i);

static double continued_fraction(fraction_term *term, const double *arg)
{
	enum { MOST = 100000 };
	const double tiny = 1e-300;
	double c = 1, d = 0, value = 1;

	for (int i = 1; i < MOST; i++) {
		double a = term(arg, i), step;

		d = 1 + a * d;
		c = 1 + a / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		step = c * d;
		value *= step;
		if (fabs(step - 1) < 1e-15)
			break;
	}
	return 1 / value;
}

/* Abramowitz and Stegun 26.5.8; arg: a, b, x. */
static double beta_term(const double *arg, int i)
{
	double a = arg[0], b = arg[1], x = arg[2], m = i / 2;

	if (i % 2)
		return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
	return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
}

/* The regularised incomplete beta function. */
static double incomplete_beta(double a, double b, double x)
{
	double front, arg[] = {a, b, x};

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	if (x > (a + 1) / (a + b + 2))
		return 1 - incomplete_beta(b, a, 1 - x);
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a;
	return front * continued_fraction(beta_term, arg);
}

/* The upper tail of the gamma distribution: a series left of the mean, a fraction right of it. */
static double gamma_tail(double a, double x)
{
	double front = exp(a * log(x) - x - lgamma(a));
	double sum = 1 / a, term = sum, tail = 1, below = x + 1 - a, c = 1e300, d = 1 / below;

	if (x < a + 1) {
		for (double k = a + 1; term > sum * 1e-16; k++)
			sum += term *= x / k;
		return 1 - front * sum;
	}
	tail = d;
	for (int i = 1; i < 100000; i++) {
		double an = -i * (i - a), step;

		below += 2;
		d = 1 / (an * d + below);
		c = below + an / c;
		step = c * d;
		tail *= step;
		if (fabs(step - 1) < 1e-15)
			break;
	}
	return front * tail;
}

static double normal_tail(double z)
{
	return erfc(z / M_SQRT2) / 2;
}

double student_tail(double t, double df)
{
	double both;

	if (isinf(df))
		return normal_tail(t);
	if (isinf(t))
		return t > 0 ? 0 : 1;
	both = incomplete_beta(df / 2, 0.5, df / (df + t * t));
	return t > 0 ? both / 2 : 1 - both / 2;
}

double student_quantile(double p, double df)
{
	double low = 0, high = 1;

	if (p < 0.5)
		return -student_quantile(1 - p, df);
	while (student_tail(high, df) > 1 - p && high < 1e12)
		high *= 2;
	for (int i = 0; i < 200 && high - low > 1e-13 * high; i++) {
		double middle = (low + high) / 2;

		if (student_tail(middle, df) > 1 - p)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

double normal_quantile(double p)
{
	return student_quantile(p, INFINITY);
}

double chi_square_tail(double x, double df)
{
	return x > 0 ? gamma_tail(df / 2, x / 2) : 1;
}

/* ---- sides ---- */

/*
 * Counts of runs with different weights are together as sure as one count of mean^2 / variance
 * samples (Fay and Feuer 1997): the count that a side is said to rest on.
 */
struct side side_of(const double *samples, const double *weights, size_t n, bool share)
{
	struct side s = {.runs = n};
	double squares = 0, one = 0;

	for (size_t i = 0; i < n; i++) {
		s.mean += samples[i] * weights[i] / (double)n;
		squares += samples[i] * weights[i] * weights[i] / (double)(n * n);
		one += weights[i] / (double)(n * n);
	}
	for (size_t i = 0; i < n && n > 1; i++) {
		double off = samples[i] * weights[i] - s.mean;

		s.variance += off * off / (double)(n - 1);
	}
	s.unit = s.mean > 0 ? squares / s.mean : one;
	s.count = s.mean / s.unit;
	s.of = share ? 1 / s.unit : INFINITY;
	return s;
}

struct limits {
	double low, high;
};

/* Wilson's score limits of a count, in the side's unit; without a largest count, Poisson's. */
static struct limits score_limits(const struct side *s, double z)
{
	double k = s->count, z2 = z * z, below = 1 + z2 / s->of;
	double around = z * sqrt(k * (k < s->of ? 1 - k / s->of : 0) + z2 / 4);

	return (struct limits){
		(k + z2 / 2 - around) / below * s->unit, (k + z2 / 2 + around) / below * s->unit};
}

/* ---- differences ---- */

static struct limits sampling_limits(const struct side *before, const struct side *after, double z)
{
	struct limits b = score_limits(before, z), a = score_limits(after, z);
	double change = after->mean - before->mean;

	return (struct limits){
		change - hypot(after->mean - a.low, b.high - before->mean),
		change + hypot(a.high - after->mean, before->mean - b.low),
	};
}

/* The level at which the interval begins to hold 0. */
static double sampling_p(const struct side *before, const struct side *after)
{
	bool rises = after->mean > before->mean;
	double low = 0, high = 38; /* beyond it, erfc is 0 */

	if (after->mean == before->mean)
		return 1;
	for (int i = 0; i < 60; i++) {
		double z = (low + high) / 2;
		struct limits l = sampling_limits(before, after, z);

		if (rises ? l.low > 0 : l.high < 0)
			low = z;
		else
			high = z;
	}
	return 2 * normal_tail(low);
}

/* Variance of the side's mean, where it has one run that of the other side's runs. */
static double mean_variance(const struct side *s, const struct side *other)
{
	double relative;

	if (s->runs > 1)
		return s->variance / (double)s->runs;
	relative = other->mean > 0 ? s->mean / other->mean : 1;
	return other->variance * relative * relative;
}

struct welch {
	double error, df; /* df 0: one run each, nothing is known */
};

static struct welch welch(const struct side *b, const struct side *a)
{
	double vb = mean_variance(b, a), va = mean_variance(a, b), sum = va + vb;
	struct welch w = {.error = sqrt(sum)};

	if (a->runs == 1 || b->runs == 1)
		w.df = (double)(a->runs + b->runs - 2);
	else if (sum > 0)
		w.df = sum * sum /
		       (va * va / (double)(a->runs - 1) + vb * vb / (double)(b->runs - 1));
	else
		w.df = (double)(a->runs + b->runs - 2);
	return w;
}

struct difference difference_of(const struct side *before, const struct side *after, double level)
{
	double upper = 0.5 + level / 2, change = after->mean - before->mean;
	struct limits l = sampling_limits(before, after, normal_quantile(upper));
	struct difference d = {change, l.low, l.high, sampling_p(before, after)};
	struct welch w = welch(before, after);

	if (w.df > 0 && w.error > 0) {
		double half = student_quantile(upper, w.df) * w.error;

		d.low = fmin(d.low, change - half);
		d.high = fmax(d.high, change + half);
		d.p = fmax(d.p, 2 * student_tail(fabs(change) / w.error, w.df));
	}
	return d;
}

/* ---- many at once ---- */

static int compare_p(const void *a, const void *b)
{
	double x = **(const double *const *)a, y = **(const double *const *)b;

	return x < y ? -1 : x > y;
}

void adjust_for_many(double *p, size_t n)
{
	_cleanup_free_ double **order = xmalloc((n + 1) * sizeof *order);
	double least = 1;

	for (size_t i = 0; i < n; i++)
		order[i] = &p[i];
	qsort(order, n, sizeof *order, compare_p);
	for (size_t i = n; i--;) {
		least = fmin(least, *order[i] * (double)n / (double)(i + 1));
		*order[i] = least;
	}
}

double dispersion_p(const double *counts, const double *parts, size_t n)
{
	double sum = 0, all = 0, x = 0;

	for (size_t i = 0; i < n; i++) {
		sum += counts[i];
		all += parts[i];
	}
	for (size_t i = 0; i < n && sum > 0; i++) {
		double expected = sum * parts[i] / all;

		x += (counts[i] - expected) * (counts[i] - expected) / expected;
	}
	return n > 1 ? chi_square_tail(x, (double)(n - 1)) : 1;
}
