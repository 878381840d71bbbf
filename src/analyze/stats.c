#include "analyze/stats.h"

#include "analyze/runs.h"
#include "analyze/significance.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What every run's samples are multiplied with. */
static double *make_factors(const struct run *runs, size_t n, bool normalise)
{
	double *factors = xmalloc((n + 1) * sizeof *factors), sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += runs[i].samples;
	for (size_t i = 0; i < n; i++)
		factors[i] =
			normalise && runs[i].samples > 0 ? sum / (double)n / runs[i].samples : 1;
	return factors;
}

static struct stats_row row_stats(const struct run_row *row, const double *factors, size_t n)
{
	struct stats_row s = {.row = row, .n = n, .min = INFINITY};
	double squares = 0;

	for (size_t i = 0; i < n; i++) {
		double v = row->samples[i] * factors[i];

		s.sum += v;
		s.min = fmin(s.min, v);
		s.max = fmax(s.max, v);
	}
	s.mean = s.sum / (double)n;
	for (size_t i = 0; i < n; i++) {
		double off = row->samples[i] * factors[i] - s.mean;

		squares += off * off;
	}
	s.stddev = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
	s.range = s.sum > 0 ? (s.max - s.min) / s.sum : 0;
	return s;
}

/* A run's part of a procedure's samples, if nothing varied: the same, or by its length. */
static void find_varying(struct stats *s, const double *factors, size_t n)
{
	_cleanup_free_ double *p = xmalloc((s->n + 1) * sizeof *p);
	_cleanup_free_ double *parts = xmalloc((n + 1) * sizeof *parts);

	for (size_t i = 0; i < n; i++)
		parts[i] = 1 / factors[i];
	for (size_t i = 0; i < s->n; i++)
		p[i] = dispersion_p(s->rows[i].row->samples, parts, n);
	adjust_for_many(p, s->n);
	for (size_t i = 0; i < s->n; i++)
		s->rows[i].varies = p[i] <= 0.05;
}

static int compare_rows(const void *a, const void *b)
{
	const struct stats_row *x = a, *y = b;

	if (x->range != y->range)
		return x->range > y->range ? -1 : 1;
	if (x->sum != y->sum)
		return x->sum > y->sum ? -1 : 1;
	return strcmp(x->row->name, y->row->name);
}

void stats_init(struct stats *s, const struct runs *r, bool normalise)
{
	const struct run *runs;
	const struct run_row *rows;
	size_t nruns = runs_list(r, &runs), nrows = runs_rows(r, &rows);
	_cleanup_free_ double *factors = make_factors(runs, nruns, normalise);

	*s = (struct stats){.rows = xcalloc(nrows + 1, sizeof *s->rows)};
	for (size_t i = 0; i < nrows; i++) {
		s->rows[s->n] = row_stats(&rows[i], factors, nruns);
		if (s->rows[s->n].sum > 0)
			s->sum += s->rows[s->n++].sum;
	}
	for (size_t i = 0; i < s->n; i++)
		s->rows[i].share = s->rows[i].sum / s->sum;
	find_varying(s, factors, nruns);
	qsort(s->rows, s->n, sizeof *s->rows, compare_rows);
}

void stats_deinit(struct stats *s)
{
	free(s->rows);
	*s = (struct stats){0};
}
