#include "analyze/diff.h"

#include "analyze/runs.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_SAMPLES = 10 };
static const double LEVEL = 0.95;

struct comparison {
	const struct run *runs;
	size_t nruns, nbefore;
	double *weights;
	bool share;
};

static void make_weights(struct comparison *c, bool share, bool clock)
{
	c->share = share;
	for (size_t i = 0; i < c->nruns; i++) {
		double unit = share ? c->runs[i].samples : c->runs[i].period;

		unit = unit > 0 ? unit : 1;
		c->weights[i] = share ? 1 / unit : clock ? unit * 1e-9 : unit;
	}
}

static bool excludes_zero(const struct difference *d)
{
	return d->low > 0 || d->high < 0;
}

static struct diff_row compare(const struct comparison *c, const double *samples)
{
	size_t n = c->nbefore;
	struct side before = side_of(samples, c->weights, n, c->share);
	struct side after = side_of(samples + n, c->weights + n, c->nruns - n, c->share);
	struct diff_row r = {.before = before.mean, .after = after.mean};

	r.change = difference_of(&before, &after, LEVEL);
	r.adjusted_p = r.change.p;
	r.significant = r.change.p <= 1 - LEVEL && excludes_zero(&r.change);
	return r;
}

static struct diff_row compare_totals(const struct comparison *c)
{
	_cleanup_free_ double *samples = xmalloc((c->nruns + 1) * sizeof *samples);

	for (size_t i = 0; i < c->nruns; i++)
		samples[i] = c->runs[i].samples;
	return compare(c, samples);
}

static double part(double of, double whole)
{
	return whole > 0 ? of / whole : 0;
}

static void compare_rows(struct diff *d, const struct comparison *c, const struct runs *r)
{
	const struct run_row *rows;
	size_t n = runs_rows(r, &rows);

	d->rows = xcalloc(n + 1, sizeof *d->rows);
	for (size_t i = 0; i < n; i++) {
		struct diff_row *to = &d->rows[d->n++];

		*to = compare(c, rows[i].samples);
		to->row = &rows[i];
		to->share = c->share ? fmax(to->before, to->after)
				     : fmax(part(to->before, d->total.before),
					       part(to->after, d->total.after));
	}
}

static bool is_tested(const struct diff_row *row, size_t nruns)
{
	double sum = 0;

	for (size_t i = 0; i < nruns; i++)
		sum += row->row->samples[i];
	return sum >= LEAST_SAMPLES;
}

static void adjust(struct diff *d, size_t nruns)
{
	_cleanup_free_ double *p = xmalloc((d->n + 1) * sizeof *p);
	size_t at = 0;

	for (size_t i = 0; i < d->n; i++)
		if (is_tested(&d->rows[i], nruns))
			p[d->tested++] = d->rows[i].change.p;
	adjust_for_many(p, d->tested);
	for (size_t i = 0; i < d->n; i++) {
		struct diff_row *row = &d->rows[i];

		row->adjusted_p = is_tested(row, nruns) ? p[at++] : 1;
		row->significant = row->adjusted_p <= 1 - LEVEL && excludes_zero(&row->change);
	}
}

static int compare_changes(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;
	double dx = fabs(x->change.change), dy = fabs(y->change.change);

	if (x->significant != y->significant)
		return x->significant ? -1 : 1;
	if (dx != dy)
		return dx > dy ? -1 : 1;
	return strcmp(x->row->name, y->row->name);
}

void diff_init(struct diff *d, const struct runs *r, size_t nbefore, bool share)
{
	struct comparison c = {.nbefore = nbefore};

	*d = (struct diff){0};
	c.nruns = runs_list(r, &c.runs);
	c.weights = xmalloc((c.nruns + 1) * sizeof *c.weights);
	make_weights(&c, false, runs_clock(r));
	d->total = compare_totals(&c);
	d->total.share = 1;
	make_weights(&c, share, runs_clock(r));
	compare_rows(d, &c, r);
	adjust(d, c.nruns);
	qsort(d->rows, d->n, sizeof *d->rows, compare_changes);
	free(c.weights);
}

void diff_deinit(struct diff *d)
{
	free(d->rows);
	*d = (struct diff){0};
}

double diff_relative(const struct diff_row *row)
{
	if (row->before > 0)
		return row->change.change / row->before;
	return row->after > 0 ? INFINITY : 0;
}

bool diff_is_slower(const struct diff_row *row, double more_than, double min_share)
{
	return row->significant && row->before > 0 && row->share >= min_share &&
	       diff_relative(row) > more_than;
}
