/*
 * How much of the samples in a database, and of the different call paths, is alone with its
 *function and height of the stack: the paper's precision (OOPSLA 09, 8.4), of what a path map saw.
 *
 *	ambiguity DATABASE FILE: "contexts samples paths deepest", shares in per cent
 */
#include "base/err.h"
#include "base/mem.h"
#include "calls/gather.h"
#include "image/image.h"
#include "store/edges.h"
#include "store/store.h"

#include <stdio.h>

static int measure(const char *database, const char *file, struct err *e)
{
	struct gathered g;
	struct image *im;
	struct store *s;
	int r = image_open_path(file, &im, e);

	if (r)
		return r;
	r = store_open(database, STORE_READ, &s, e);
	if (!r) {
		r = gather_contexts(
			s, edge_image_key(image_kind(im), image_id(im), image_path(im)), &g, e);
		store_close(s);
	}
	image_destroy(im);
	if (r)
		return r;
	/* A search that may change nothing. */
	_cleanup_free_ bool *pads = xcalloc(g.functions.n + 1, sizeof *pads);
	struct separate_input in = {.contexts = g.contexts.p,
		.n = (uint32_t)g.contexts.n,
		.pads = pads,
		.functions = (uint32_t)g.functions.n};
	struct separate_result found;
	separate_search(&in, &(struct separate_options){.budget = 1}, &found);
	printf("%zu %.2f %.2f %lld\n", g.contexts.n, 100 * found.before.samples,
		100 * found.before.paths, (long long)found.before.deepest);
	separate_result_deinit(&found);
	gathered_deinit(&g);
	return 0;
}

int main(int argc, char **argv)
{
	struct err e = {0};

	if (argc != 3) {
		fprintf(stderr, "usage: ambiguity DATABASE FILE\n");
		return EXIT_USAGE;
	}
	if (!measure(argv[1], argv[2], &e))
		return EXIT_DONE;
	fprintf(stderr, "ambiguity: %s\n", e.text);
	return err_exit_code(e.code);
}
