/*
 * How fast Sequitur takes references, and what memory its grammar needs.
 *
 *   sequitur DATABASE
 *
 * Of the bursts in a database; the references are numbered before the clock starts. Prints a line
 * of NAME=NUMBER: million references a second of CPU time, references, symbols of the grammar.
 */
#include "analyze/sequitur.h"
#include "analyze/stream_numbers.h"
#include "analyze/streams.h"
#include "base/err.h"
#include "base/vec.h"

#include <err.h>
#include <stdio.h>
#include <time.h>

#define CUT UINT32_MAX

struct input {
	struct stream_numbers *numbers;
	VEC(uint32_t) terminals;
};

static int take(
	void *arg, const struct trace_site *sites, uint32_t part, const struct trace_burst *b)
{
	struct input *in = arg;

	for (size_t i = 0; i < b->n; i++)
		*vec_add(&in->terminals) = stream_number(in->numbers, sites, part, b, i);
	*vec_add(&in->terminals) = CUT;
	return 0;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	struct input in = {.numbers = stream_numbers_create()};
	struct sequitur *s = sequitur_create();
	struct store *store;
	struct selection *sel;
	struct err e = {0};
	uint64_t lost;
	double start;

	if (argc != 2)
		errx(2, "usage: sequitur DATABASE");
	if (store_open(argv[1], STORE_READ, &store, &e) < 0 ||
		selection_create(store, &(struct selection_options){0}, &sel, &e) < 0 ||
		streams_each_burst(sel, take, &in, &lost, &e) < 0)
		errx(1, "%s", e.text);
	start = seconds();
	for (size_t i = 0, k; i < in.terminals.n; i = k + 1) {
		for (k = i; in.terminals.p[k] != CUT;)
			k++;
		sequitur_add_all(s, in.terminals.p + i, k - i);
		sequitur_cut(s);
	}
	printf("speed=%.3f references=%zu symbols=%zu rules=%u\n",
		(double)in.terminals.n / (seconds() - start) / 1e6, in.terminals.n,
		sequitur_symbols(s), sequitur_rules(s));
	return 0;
}
