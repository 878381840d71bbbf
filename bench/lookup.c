/*
 * What it costs to find a call path by function and height of the stack (the paper's Table 3): all
 * heights of the largest path map in a database, in an order that no cache foresees.
 *
 *	lookup DATABASE: "heights ns", of CPU time for one lookup
 */
#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "calls/map.h"
#include "store/contexts.h"
#include "store/store.h"

#include <stdio.h>
#include <time.h>

enum { LOOKUPS = 2000000 };

struct maps {
	int64_t image;
	struct call_map *map;
};

/* Those of one program add up; the first that comes is it, or one that has more. */
static int take(void *arg, const struct store_profile *p)
{
	struct maps *m = arg;
	struct call_map *other;
	int r;

	if (p->image == m->image)
		return call_map_add(m->map, p->data, p->size);
	other = call_map_create();
	r = call_map_add(other, p->data, p->size);
	if (r || call_map_size(other) <= call_map_size(m->map)) {
		call_map_destroy(other);
		return r;
	}
	call_map_destroy(m->map);
	*m = (struct maps){p->image, other};
	return 0;
}

static void measure(const struct call_map *m)
{
	size_t n = call_map_size(m);
	_cleanup_free_ struct call_height *order = xcalloc(n + 1, sizeof *order);
	uint64_t seed = 1, found = 0, ns;

	for (size_t i = 0; i < n; i++) {
		size_t k = (seed = seed * 6364136223846793005u + 1442695040888963407u) % (i + 1);

		order[i] = order[k];
		call_map_height(m, i, &order[k]);
	}
	ns = io_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (size_t i = 0; n && i < LOOKUPS; i++) {
		uint32_t others;

		found += call_map_find(m, order[i % n].kind, &order[i % n].frame, &others);
	}
	ns = io_clock_ns(CLOCK_THREAD_CPUTIME_ID) - ns;
	printf("%zu %.1f\n", n, found ? (double)ns / LOOKUPS : 0);
}

int main(int argc, char **argv)
{
	struct maps m = {-1, call_map_create()};
	struct store_filter maps = {.type = &blob_pathmap};
	struct err e = {0};
	struct store *s;
	int r;

	if (argc != 2) {
		fprintf(stderr, "usage: lookup DATABASE\n");
		return EXIT_USAGE;
	}
	r = store_open(argv[1], STORE_READ, &s, &e);
	if (!r) {
		r = store_profiles(s, &maps, take, &m, &e);
		store_close(s);
	}
	if (!r)
		measure(m.map);
	else
		fprintf(stderr, "lookup: %s\n", e.text);
	call_map_destroy(m.map);
	return r ? err_exit_code(e.code) : EXIT_DONE;
}
