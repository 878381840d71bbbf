/*
 * How long loads take that depend on each other, by how much memory they go through.
 *
 *   latency BYTES...
 *
 * Prints for each size the least ns of a load. Lines come in an order that no prefetcher follows.
 */
#include "circle.h"

enum { LINE = 64, LOADS = 20000, TRIES = 100 };

struct line {
	struct line *next;
	char pad[LINE - sizeof(struct line *)];
};

static void make_circle(struct line *lines, size_t n)
{
	size_t *next = circle(n);

	for (size_t i = 0; i < n; i++)
		lines[i].next = &lines[next[i]];
	free(next);
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
	print_sizes(argc, argv, latency);
	return 0;
}
