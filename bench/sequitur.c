/*
 * How fast Sequitur takes references, and what memory its grammar needs; the same of Re-Pair.
 *
 *   sequitur DATABASE [MILLIONS]
 *
 * Of the bursts in a database, of the first so many million references; they are numbered before
 * the clock starts. Prints lines of NAME=NUMBER: million references a second of CPU time,
 * references, symbols and rules of the grammar, and of Sequitur the bytes that it holds.
 */
#include "analyze/sequitur.h"
#include "analyze/repair.h"
#include "analyze/stream_numbers.h"
#include "analyze/streams.h"
#include "base/err.h"
#include "base/vec.h"

#include <err.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct input {
	struct stream_numbers *numbers;
	size_t most;
	VEC(uint32_t) terminals;
};

static int take(
	void *arg, const struct trace_site *sites, uint32_t part, const struct trace_burst *b)
{
	struct input *in = arg;

	for (size_t i = 0; i < b->n && in->terminals.n < in->most; i++)
		*vec_add(&in->terminals) = stream_number(in->numbers, sites, part, b, i);
	if (in->terminals.n < in->most)
		*vec_add(&in->terminals) = GRAMMAR_CUT;
	return 0;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Bytes that malloc has given out. */
static size_t memory(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static void say(const char *name, double took, size_t n, const struct grammar *g)
{
	printf("%s: speed=%.3f references=%zu symbols=%zu rules=%u", name, (double)n / took / 1e6,
		n, g->symbols.n, grammar_rules(g));
}

static void online(const struct input *in)
{
	size_t before = memory(), bytes;
	struct sequitur *s = sequitur_create();
	const uint32_t *p = in->terminals.p, *end = p + in->terminals.n;
	struct grammar g = {0};
	double start = seconds(), took;

	for (const uint32_t *q; p < end; p = q + 1) {
		for (q = p; q < end && *q != GRAMMAR_CUT;)
			q++;
		sequitur_add_all(s, p, (size_t)(q - p));
		sequitur_cut(s);
	}
	took = seconds() - start;
	bytes = memory() - before;
	sequitur_grammar(s, &g);
	say("sequitur", took, in->terminals.n, &g);
	printf(" bytes=%zu\n", bytes);
	grammar_deinit(&g);
	sequitur_destroy(s);
}

static void offline(struct input *in)
{
	struct grammar g = {0};
	double start = seconds();

	repair_grammar(in->terminals.p, in->terminals.n, &g);
	say("repair", seconds() - start, in->terminals.n, &g);
	putchar('\n');
	grammar_deinit(&g);
}

int main(int argc, char **argv)
{
	struct input in = {.numbers = stream_numbers_create(), .most = SIZE_MAX};
	struct store *store;
	struct selection *sel;
	struct err e = {0};
	uint64_t lost;

	if (argc != 2 && argc != 3)
		errx(2, "usage: sequitur DATABASE [MILLIONS]");
	if (argc == 3)
		in.most = (size_t)atoi(argv[2]) * 1000000;
	if (store_open(argv[1], STORE_READ, &store, &e) < 0 ||
		selection_create(store, &(struct selection_options){0}, &sel, &e) < 0 ||
		streams_each_burst(sel, take, &in, &lost, &e) < 0)
		errx(1, "%s", e.text);
	online(&in);
	offline(&in);
	return 0;
}
