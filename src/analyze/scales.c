#include "analyze/scales.h"

#include "analyze/excursions.h"
#include "analyze/ties.h"
#include "base/mem.h"
#include "base/vec.h"

#include <math.h>
#include <stdlib.h>

/* Of the procedures: the hottest. The others keep what they have. */
enum { MOST = 500 };

/* How far tempos are off, each by itself (bench/RESULTS.md). */
#define TEMPO_SPREAD 0.27

/* Errors of ties and anchors are the largest that are likely: most are smaller. Variances. */
#define TIES_ARE    0.6
#define ANCHORS_ARE 0.25
/* What excursions leave open however many they are. */
#define EXCURSION_DOUBT 0.05
/* Degrees of freedom: how readily one that contradicts the others is left alone. */
#define TAIL        3.0
#define ANCHOR_TAIL 2.0
enum { TURNS = 8, ROUNDS = 3 };

/* Less is known than this: nothing. */
#define NOTHING 1.0

/* A sum of unknowns, which are logarithms of factors, each times a number. */
struct term {
	uint32_t of;
	double times;
};

struct word {
	size_t first, n; /* terms */
	double says, variance, tail;
	const struct tie *tie; /* NULL: it is always the same; else near the last solution */
};

struct scales {
	const struct frequencies_row *rows;
	uint32_t *unknown; /* by row, GRAPH_NONE: none */
	uint32_t n;        /* of them; the last are the mean of all rows that excursions compare,
			      what all tempos have in common, and the unit of excursions */
	VEC(struct word) words;
	VEC(struct term) terms;
	struct tie *ties;
	size_t nties;
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
	s->n += 3;
	free(list);
}

static void add_term(struct scales *s, uint32_t of, double times)
{
	*vec_add(&s->terms) = (struct term){of, times};
	s->words.p[s->words.n - 1].n++;
}

/* `than` may be GRAPH_NONE: a factor, else the ratio of two. */
static void say(
	struct scales *s, uint32_t of, uint32_t than, double says, double variance, double tail)
{
	*vec_add(&s->words) = (struct word){
		.first = s->terms.n, .says = says, .variance = variance, .tail = tail};
	add_term(s, of, 1);
	if (than != GRAPH_NONE)
		add_term(s, than, -1);
}

static void forget_scale(struct frequency *f)
{
	f->scale = FREQUENCY_RELATIVE;
	f->scale_low = 0;
	f->scale_high = INFINITY;
}

static bool is_timed(double tempo)
{
	return tempo > 0 && isfinite(tempo);
}

static bool is_contradicted(const struct frequency *f, double tempo)
{
	return is_timed(tempo) && f->scale == FREQUENCY_KNOWN &&
	       fabs(log(tempo)) > FREQUENCY_CONTRADICTS;
}

static void hear_row(struct scales *s, uint32_t row, double tempo)
{
	const struct frequency *f = s->rows[row].frequency;
	double total = (double)s->rows[row].evidence->total;
	uint32_t of = s->unknown[row];

	if (of == GRAPH_NONE)
		return;
	if (f->scale != FREQUENCY_RELATIVE && !f->nwords) {
		double error = log(f->scale_high) / FREQUENCY_NINETY;

		say(s, of, GRAPH_NONE, 0, fmax(error * error, 1e-4), ANCHOR_TAIL);
	}
	for (size_t i = 0; i < f->nwords; i++) {
		const struct frequency_word *w = &f->words[i];

		if (!is_timed(tempo) || fabs(log(tempo) - w->says) < FREQUENCY_CONTRADICTS)
			say(s, of, GRAPH_NONE, w->says,
				fmax(ANCHORS_ARE * w->error * w->error, 1e-4), ANCHOR_TAIL);
	}
	if (is_timed(tempo))
		say(s, of, s->n - 2, log(tempo), TEMPO_SPREAD * TEMPO_SPREAD + 1 / (total + 1),
			TAIL);
}

#define SURELY 1e-6 /* the variance of what is so by definition */

/* The mean of all rows, by what each executes; returns what it is at these factors. */
static double say_mean(struct scales *s, size_t n, const double *factor)
{
	double *part = xcalloc(n + 1, sizeof *part), mean = 0;

	excursions_parts(s->rows, n, factor, s->unknown, part);
	say(s, s->n - 3, GRAPH_NONE, 0, SURELY, INFINITY);
	for (size_t r = 0; r < n; r++)
		if (part[r] > 0) {
			add_term(s, s->unknown[r], -part[r]);
			mean += part[r] * log(factor[r]);
		}
	free(part);
	return mean;
}

/* They compare procedures with each other, near the factors that were found before. */
static void hear_excursions(struct scales *s, size_t n, const double *factor)
{
	struct excursions_word *list;
	size_t words = excursions_compare(s->rows, n, factor, s->unknown, &list);
	double mean = words ? say_mean(s, n, factor) : 0;

	for (size_t i = 0; i < words; i++) {
		const struct excursions_word *w = &list[i];
		double doubt = w->variance + EXCURSION_DOUBT * EXCURSION_DOUBT, all = 0;
		double says = w->says + log(factor[w->row]);

		say(s, s->unknown[w->row], s->n - 1, 0, doubt, TAIL);
		for (size_t k = 0; k < w->nterms; k++) {
			const struct excursions_term *t = &w->terms[k];

			add_term(s, s->unknown[t->row], -t->share);
			says -= t->share * log(factor[t->row]);
			all += t->share;
		}
		add_term(s, s->n - 3, all);
		s->words.p[s->words.n - 1].says = says + all * mean;
	}
	excursions_words_free(list, words);
}

static void hear_calls(struct scales *s, size_t n)
{
	s->nties = ties_find(s->rows, n, s->unknown, &s->ties);
	for (size_t i = 0; i < s->nties; i++) {
		const struct tie *t = &s->ties[i];

		say(s, s->unknown[t->callee], GRAPH_NONE, 0, 1, TAIL);
		s->words.p[s->words.n - 1].tie = t;
		for (size_t k = 0; k < t->ncallers; k++)
			add_term(s, s->unknown[t->callers[k].caller], 0);
	}
}

/* The logarithm of a sum of calls is linear near a solution: each caller has its share of them. */
static void bring_near(struct scales *s, struct word *w)
{
	const struct tie *t = w->tie;
	struct term *callers = s->terms.p + w->first + 1;
	double sum = 0;

	for (size_t i = 0; i < t->ncallers; i++)
		sum += callers[i].times = t->callers[i].calls * exp(s->x[callers[i].of]);
	w->says = log(sum) - log(t->entries);
	w->variance = t->variance;
	for (size_t i = 0; i < t->ncallers; i++) {
		double share = callers[i].times / sum;

		callers[i].times = -share;
		w->says -= share * s->x[callers[i].of];
		w->variance += share * share * t->callers[i].variance;
	}
	w->variance *= TIES_ARE;
}

/* ---- what fits best ---- */

static double off_by(const struct scales *s, const struct word *w)
{
	double sum = -w->says;

	for (size_t i = w->first; i < w->first + w->n; i++)
		sum += s->terms.p[i].times * s->x[s->terms.p[i].of];
	return sum;
}

static void add_word(struct scales *s, const struct word *w, double weight)
{
	const struct term *t = s->terms.p + w->first;

	for (size_t i = 0; i < w->n; i++) {
		s->variance[t[i].of] += weight * t[i].times * w->says;
		for (size_t k = 0; k < w->n; k++)
			if (t[k].of <= t[i].of)
				s->matrix[t[i].of * s->n + t[k].of] +=
					weight * t[i].times * t[k].times;
	}
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
		double off, weight;

		if (w->tie)
			bring_near(s, w);
		off = off_by(s, w);
		weight = 1 / w->variance;
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

static void forget(struct scales *s)
{
	vec_deinit(&s->words);
	vec_deinit(&s->terms);
	ties_free(s->ties, s->nties);
	free(s->unknown);
	free(s->matrix);
	free(s->x);
	free(s->variance);
}

/* Where excursions say something, once more near what came out. */
static void find(struct scales *s, const struct frequencies_row *rows, size_t n,
	const struct scales_tempos *tempos)
{
	double *factor = xcalloc(n + 1, sizeof *factor);

	for (size_t r = 0; r < n; r++)
		factor[r] = 1;
	for (int round = 0; round < ROUNDS; round++) {
		if (round)
			forget(s);
		*s = (struct scales){.rows = rows};
		choose(s, n);
		for (uint32_t r = 0; r < n; r++)
			hear_row(s, r, tempos->tempo[r]);
		hear_calls(s, n);
		hear_excursions(s, n, factor);
		say(s, s->n - 2, GRAPH_NONE, 0, tempos->common * tempos->common, INFINITY);
		fit(s);
		for (uint32_t r = 0; r < n; r++)
			if (s->unknown[r] != GRAPH_NONE && s->variance[s->unknown[r]] < NOTHING)
				factor[r] = exp(s->x[s->unknown[r]]);
	}
	free(factor);
}

void scales_guess(const struct frequencies_row *rows, size_t n, const struct scales_tempos *tempos,
	double *factor)
{
	struct scales s;

	for (size_t r = 0; r < n; r++)
		factor[r] = 1;
	if (!n)
		return;
	find(&s, rows, n, tempos);
	for (uint32_t r = 0; r < n; r++)
		if (s.unknown[r] != GRAPH_NONE && s.variance[s.unknown[r]] < NOTHING)
			factor[r] = exp(s.x[s.unknown[r]]);
	forget(&s);
}

void scales_apply(struct frequencies_row *rows, size_t n, const struct scales_tempos *tempos)
{
	struct scales s;

	if (!n)
		return;
	for (size_t r = 0; r < n; r++)
		if (is_contradicted(rows[r].frequency, tempos->tempo[r]))
			forget_scale(rows[r].frequency);
	find(&s, rows, n, tempos);
	for (uint32_t r = 0; r < n; r++) {
		uint32_t of = s.unknown[r];

		if (of != GRAPH_NONE && rows[r].frequency->scale == FREQUENCY_RELATIVE &&
			s.variance[of] < NOTHING)
			frequency_rescale(rows[r].frequency, rows[r].evidence, exp(s.x[of]),
				sqrt(s.variance[of]));
	}
	forget(&s);
}
