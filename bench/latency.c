/*
 * How long loads take that depend on each other, by how much memory they go through.
 *
 *   latency BYTES...
 *
 * Prints for each size the least ns of a load. Lines come in an order that no prefetcher follows.
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LINE = 64, LOADS = 20000, TRIES = 100 };

struct line {
	struct line *next;
	char pad[LINE - sizeof(struct line *)];
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* One circle through all lines (Sattolo). */
static void make_circle(struct line *lines, size_t n)
{
	size_t *order = calloc(n, sizeof *order);

	if (!order)
		err(1, "%zu lines", n);
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	for (size_t i = n - 1; i > 0; i--) {
		size_t other = ((size_t)rand() << 15 ^ (size_t)rand()) % i, kept = order[i];

		order[i] = order[other];
		order[other] = kept;
	}
	for (size_t i = 0; i < n; i++)
		lines[i].next = &lines[order[i]];
	free(order);
}

static double latency(size_t bytes)
{
	size_t n = bytes / LINE;
	struct line *lines = aligned_alloc(4096, n * LINE), *volatile at = lines;
	double best = 1e9;

	if (!lines)
		err(1, "%zu bytes", bytes);
	make_circle(lines, n);
	for (int i = 0; i < TRIES; i++) {
		const struct line *l = at;
		double start = now(), took;

		for (int k = 0; k < LOADS; k++)
			l = l->next;
		took = (now() - start) / LOADS;
		at = (struct line *)l;
		best = took < best ? took : best;
	}
	free(lines);
	return best;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		errx(2, "usage: latency BYTES...");
	for (int i = 1; i < argc; i++) {
		size_t bytes = strtoull(argv[i], NULL, 10);

		if (bytes < 4096 || bytes % 4096)
			errx(2, "%s: no multiple of a page", argv[i]);
		printf("%.2f%c", latency(bytes), i + 1 < argc ? ' ' : '\n');
	}
	return 0;
}
