/*
 * What the hardware takes for the parts of which tempos are made (analyze/why_tempo.c), fitted to
 * programs whose code was counted exactly: there every tempo should be 1.
 *
 *   tempos DATABASE...
 *
 * Each database is of one program, sampled and counted (bench/recordings.sh). Prints how far tempos
 * are off with the costs of today, with those fitted to all programs, and of each program with
 * those fitted to the others; as logarithms. Procedures with many samples count more, but not as
 * many times.
 */
#include "base/vec.h"
#include "rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEAST = 200, TURNS = 60 };
#define TICKS 0.05 /* as in analyze/frequencies.c */

enum { BEST, WORK, MISSED, GONE, HIDDEN, COSTS };
static const char *const names[COSTS] = {"best", "work", "missed", "gone", "hidden"};

struct point {
	unsigned program;
	double weight, today; /* the logarithm of its tempo */
	struct why_tempo_parts parts;
};

static VEC(struct point) points;

static void add_row(void *arg, const struct frequencies_row *row, const struct why_machine *m)
{
	struct point p = {.program = *(const unsigned *)arg};
	struct err none;
	double tempo;

	if (!row->evidence->counts || row->frequency->scale == FREQUENCY_RELATIVE ||
		row->evidence->total < LEAST ||
		why_tempo(row->evidence, row->frequency, m, &tempo, &p.parts, &none) ||
		!isfinite(tempo) || p.parts.all - p.parts.far < TICKS * p.parts.all)
		return;
	p.weight = sqrt(p.parts.all);
	p.today = log(tempo);
	*vec_add(&points) = p;
}

static double error_of(const struct point *p, const double *cost)
{
	const struct why_tempo_parts *t = &p->parts;
	double needed = cost[BEST] * t->best + cost[WORK] * t->work + cost[MISSED] * t->missed +
			cost[GONE] * t->gone;

	return log((t->all - t->far) * t->sample / needed) + cost[HIDDEN] * t->far / t->all;
}

struct errors {
	double sum, mean, weight; /* of the errors without sign, and with */
};

/* Of one program; NULL: with the costs of today. */
static struct errors errors_in(unsigned program, const double *cost)
{
	struct errors e = {0};

	vec_each (p, &points) {
		double off = cost ? error_of(p, cost) : p->today;

		if (p->program != program)
			continue;
		e.sum += p->weight * fabs(off);
		e.mean += p->weight * off;
		e.weight += p->weight;
	}
	if (e.weight > 0) {
		e.sum /= e.weight;
		e.mean /= e.weight;
	}
	return e;
}

/* Over programs, but for one. */
static double loss(const double *cost, unsigned programs, unsigned but)
{
	double sum = 0;

	for (unsigned i = 0; i < programs; i++)
		if (i != but)
			sum += errors_in(i, cost).sum;
	return sum;
}

/* One cost after the other is changed by ever smaller factors for as long as that makes it better.
 */
static void fit(double *cost, unsigned programs, unsigned but)
{
	double least, step = 1.5;

	for (int i = 0; i < COSTS; i++)
		cost[i] = (const double[COSTS]){0.6, 0.95, 18, 1, 0.5}[i];
	least = loss(cost, programs, but);
	for (int turn = 0; turn < TURNS; turn++, step = 1 + (step - 1) * 0.88)
		for (int i = 0; i < COSTS; i++)
			for (int up = 0; up < 2; up++) {
				double kept = cost[i], now;

				cost[i] *= up ? step : 1 / step;
				now = loss(cost, programs, but);
				if (now < least)
					least = now;
				else
					cost[i] = kept;
			}
}

static void print_costs(const char *title, const double *cost)
{
	printf("%s:", title);
	for (int i = 0; i < COSTS; i++)
		printf(" %s %.2f", names[i], cost[i]);
	putchar('\n');
}

int main(int argc, char **argv)
{
	unsigned n = (unsigned)argc - 1, shown = 0;
	double all[COSTS], others[COSTS], sum[6] = {0};

	if (argc < 3)
		errx(2, "usage: tempos DATABASE...");
	for (unsigned i = 0; i < n; i++)
		each_row(argv[i + 1], add_row, &i);
	fit(all, n, n);
	print_costs("fitted to all", all);
	printf("%zu procedures; error, and of the program's mean: today; fitted; fitted to the "
	       "others\n",
		points.n);
	for (unsigned i = 0; i < n; i++) {
		struct errors e[3] = {errors_in(i, NULL), errors_in(i, all)};

		if (!(e[0].weight > 0))
			continue;
		fit(others, n, i);
		e[2] = errors_in(i, others);
		printf("%s", argv[i + 1]);
		for (int k = 0; k < 3; k++) {
			printf("  %.3f %+.3f", e[k].sum, e[k].mean);
			sum[2 * k] += e[k].sum;
			sum[2 * k + 1] += fabs(e[k].mean);
		}
		putchar('\n');
		shown++;
	}
	printf("mean");
	for (int k = 0; k < 6 && shown; k++)
		printf("%s %.3f", k % 2 ? "" : " ", sum[k] / shown);
	putchar('\n');
	vec_deinit(&points);
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
