#include "analyze/scales.h"

#include "analyze/ties.h"
#include "base/mem.h"
#include "base/vec.h"

#include <math.h>
#include <stdlib.h>

/* Of the procedures: the hottest. The others keep what they have. */
enum { MOST = 500 };

/* How far tempos are off, each by itself and all of an image together (bench/RESULTS.md). */
#define TEMPO_SPREAD 0.3
#define TEMPO_COMMON 0.3
/* A known scale so far from the tempo cannot be right. */
#define CONTRADICTS 0.8

/* Errors of ties and anchors are the largest that are likely: most are smaller. */
#define TIES_ARE    0.6
#define ANCHORS_ARE 0.5
/* Degrees of freedom: how readily one that contradicts the others is left alone. */
#define TAIL        3.0
#define ANCHOR_TAIL 2.0
enum { TURNS = 6 };

/* Less is known than this: nothing. */
#define NOTHING 1.0

/* The logarithm of a factor, or that of a ratio: of[0] over of[1]. */
struct word {
	uint32_t of[2]; /* unknowns; GRAPH_NONE: none */
	double says, variance, tail;
};

struct scales {
	struct frequencies_row *rows;
	uint32_t *unknown; /* by row, GRAPH_NONE: none */
	uint32_t n;        /* of them; the last is what all tempos have in common */
	VEC(struct word) words;
	double *matrix; /* n times n */
	double *x, *variance;
};

/* ---- what is said ---- */

struct heat {
	uint32_t row;
	uint64_t samples;
};

static int by_samples(const void *a, const void *b)
{
	const struct heat *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static void choose(struct scales *s, size_t n)
{
	struct heat *list = xcalloc(n + 1, sizeof *list);

	for (uint32_t r = 0; r < n; r++)
		list[r] = (struct heat){r, s->rows[r].evidence->total};
	qsort(list, n, sizeof *list, by_samples);
	s->unknown = graph_numbers((uint32_t)n, GRAPH_NONE);
	for (size_t i = 0; i < n && i < MOST; i++)
		s->unknown[list[i].row] = s->n++;
	s->n++;
	free(list);
}

static void say(
	struct scales *s, uint32_t of, uint32_t than, double says, double variance, double tail)
{
	*vec_add(&s->words) = (struct word){{of, than}, says, variance, tail};
}

static void forget_scale(struct frequency *f)
{
	f->scale = FREQUENCY_RELATIVE;
	f->scale_low = 0;
	f->scale_high = INFINITY;
}

static void hear_row(struct scales *s, uint32_t row, double tempo)
{
	struct frequency *f = s->rows[row].frequency;
	double total = (double)s->rows[row].evidence->total;
	bool timed = tempo > 0 && isfinite(tempo);
	uint32_t of = s->unknown[row];

	if (timed && f->scale == FREQUENCY_KNOWN && fabs(log(tempo)) > CONTRADICTS)
		forget_scale(f);
	if (of == GRAPH_NONE)
		return;
	if (f->scale != FREQUENCY_RELATIVE) {
		double error = log(f->scale_high) / FREQUENCY_NINETY;

		say(s, of, GRAPH_NONE, 0, fmax(ANCHORS_ARE * error * error, 1e-4), ANCHOR_TAIL);
	}
	if (timed)
		say(s, of, s->n - 1, log(tempo), TEMPO_SPREAD * TEMPO_SPREAD + 1 / (total + 1),
			TAIL);
}

static void hear_calls(struct scales *s, size_t n)
{
	struct tie *ties;
	size_t nties = ties_find(s->rows, n, &ties);

	for (size_t i = 0; i < nties; i++) {
		uint32_t callee = s->unknown[ties[i].callee], caller = s->unknown[ties[i].caller];

		if (callee != GRAPH_NONE && caller != GRAPH_NONE)
			say(s, callee, caller, ties[i].step, TIES_ARE * ties[i].variance, TAIL);
	}
	free(ties);
}

/* ---- what fits best ---- */

static double off_by(const struct scales *s, const struct word *w)
{
	return s->x[w->of[0]] - (w->of[1] != GRAPH_NONE ? s->x[w->of[1]] : 0) - w->says;
}

static void add_word(struct scales *s, const struct word *w, double weight)
{
	uint32_t a = w->of[0], b = w->of[1], n = s->n;

	s->matrix[a * n + a] += weight;
	s->variance[a] += weight * w->says;
	if (b == GRAPH_NONE)
		return;
	s->matrix[b * n + b] += weight;
	s->variance[b] -= weight * w->says;
	s->matrix[(a > b ? a : b) * n + (a > b ? b : a)] -= weight;
}

/* The normal equations; their right side is in `variance` meanwhile. */
static void gather(struct scales *s, bool first)
{
	for (size_t i = 0; i < (size_t)s->n * s->n; i++)
		s->matrix[i] = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		s->variance[i] = 0;
		s->matrix[i * s->n + i] = 1e-4;
	}
	vec_each (w, &s->words) {
		double off = first ? 0 : off_by(s, w), weight = 1 / w->variance;

		if (!first && isfinite(w->tail))
			weight *= (1 + 1 / w->tail) / (1 + off * off / w->variance / w->tail);
		add_word(s, w, weight);
	}
}

/* Cholesky's decomposition of the lower half, in place. */
static void decompose(double *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j <= i; j++) {
			double sum = m[i * n + j];

			for (uint32_t k = 0; k < j; k++)
				sum -= m[i * n + k] * m[j * n + k];
			m[i * n + j] = i == j ? sqrt(fmax(sum, 1e-12)) : sum / m[j * n + j];
		}
}

static void solve(struct scales *s)
{
	const double *m = s->matrix;
	uint32_t n = s->n;

	for (uint32_t i = 0; i < n; i++) {
		double sum = s->variance[i];

		for (uint32_t k = 0; k < i; k++)
			sum -= m[i * n + k] * s->x[k];
		s->x[i] = sum / m[i * n + i];
	}
	for (uint32_t i = n; i-- > 0;) {
		s->x[i] /= m[i * n + i];
		for (uint32_t k = 0; k < i; k++)
			s->x[k] -= m[i * n + k] * s->x[i];
	}
}

/* The diagonal of the inverse: squares of the columns of the decomposition's. */
static void find_variances(struct scales *s)
{
	const double *m = s->matrix;
	uint32_t n = s->n;
	double *column = xcalloc(n, sizeof *column);

	for (uint32_t j = 0; j < n; j++) {
		s->variance[j] = 0;
		for (uint32_t i = j; i < n; i++) {
			double sum = i == j;

			for (uint32_t k = j; k < i; k++)
				sum -= m[i * n + k] * column[k];
			column[i] = sum / m[i * n + i];
			s->variance[j] += column[i] * column[i];
		}
	}
	free(column);
}

static void fit(struct scales *s)
{
	s->matrix = xcalloc((size_t)s->n * s->n, sizeof *s->matrix);
	s->x = xcalloc(s->n, sizeof *s->x);
	s->variance = xcalloc(s->n, sizeof *s->variance);
	for (int turn = 0; turn < TURNS; turn++) {
		gather(s, !turn);
		decompose(s->matrix, s->n);
		solve(s);
	}
	find_variances(s);
}

/* ---- the whole ---- */

void scales_apply(struct frequencies_row *rows, size_t n, const double *tempo)
{
	struct scales s = {.rows = rows};

	if (!n)
		return;
	choose(&s, n);
	for (uint32_t r = 0; r < n; r++)
		hear_row(&s, r, tempo[r]);
	hear_calls(&s, n);
	say(&s, s.n - 1, GRAPH_NONE, 0, TEMPO_COMMON * TEMPO_COMMON, INFINITY);
	fit(&s);
	for (uint32_t r = 0; r < n; r++) {
		uint32_t of = s.unknown[r];

		if (of != GRAPH_NONE && rows[r].frequency->scale == FREQUENCY_RELATIVE &&
			s.variance[of] < NOTHING)
			frequency_rescale(rows[r].frequency, rows[r].evidence, exp(s.x[of]),
				sqrt(s.variance[of]));
	}
	vec_deinit(&s.words);
	free(s.unknown);
	free(s.matrix);
	free(s.x);
	free(s.variance);
}
