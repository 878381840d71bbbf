/* What latency.c and fetch.c share: lines in an order that no prefetcher follows, and sizes on the
 * command line. */
#ifndef CULPRIT_BENCH_CIRCLE_H
#define CULPRIT_BENCH_CIRCLE_H

#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The next of each: one circle through all (Sattolo). For the caller to free. */
static size_t *circle(size_t n)
{
	size_t *next = calloc(n, sizeof *next);

	if (!next)
		err(1, "%zu lines", n);
	for (size_t i = 0; i < n; i++)
		next[i] = i;
	for (size_t i = n - 1; i > 0; i--) {
		size_t other = ((size_t)rand() << 15 ^ (size_t)rand()) % i, kept = next[i];

		next[i] = next[other];
		next[other] = kept;
	}
	return next;
}

/* Prints what is measured for each size. */
static void print_sizes(int argc, char **argv, double (*measure)(size_t bytes))
{
	if (argc < 2)
		errx(2, "usage: %s BYTES...", argv[0]);
	for (int i = 1; i < argc; i++) {
		size_t bytes = strtoull(argv[i], NULL, 10);

		if (bytes < 4096 || bytes % 4096)
			errx(2, "%s: no multiple of a page", argv[i]);
		printf("%.2f%c", measure(bytes), i + 1 < argc ? ' ' : '\n');
	}
}

#endif
