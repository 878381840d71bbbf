/*
 * What excursions found gone from the first caches, by procedure.
 *
 *   gone DATABASE
 *
 * Prints image, start, and how often lines of code and what instructions loaded were gone.
 */
#include "analyze/codemap.h"
#include "analyze/selection.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/stays.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct gone {
	struct selected_image *image;
	uint64_t (*sums)[2]; /* by procedure: data, code */
};

static int add_stays(void *arg, const struct store_profile *p)
{
	struct gone *g = arg;
	struct selected_image *im = g->image;
	struct code_walk walk = code_walk_start(&im->map, im->segments, im->nsegments);
	struct stay_reader reader;
	struct stay stay;
	int rc = stay_reader_init(&reader, p->data, p->size);

	while (!rc && (rc = stay_reader_next(&reader, &stay)) > 0) {
		uint64_t address;
		uint32_t procedure = code_walk_to(&walk, stay.offset, &address);

		if (procedure != CODE_NOWHERE)
			g->sums[procedure][stay.is_code] += stay.gone;
		rc = 0;
	}
	return rc;
}

static int print_image(struct selection *sel, struct selected_image *im, struct err *e)
{
	struct gone g = {.image = im};
	int rc = selection_load(sel, im, e);

	if (rc)
		return rc;
	g.sums = xcalloc(im->procedures.n + 1, sizeof *g.sums);
	rc = selection_blobs_of(sel, im, &blob_stay, add_stays, &g, e);
	for (size_t i = 0; i < im->procedures.n; i++)
		if (g.sums[i][0] || g.sums[i][1])
			printf("%s 0x%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", im->path,
				im->procedures.p[i].start, g.sums[i][1], g.sums[i][0]);
	free(g.sums);
	return rc;
}

int main(int argc, char **argv)
{
	struct selection_options o = {0};
	struct selected_image *images;
	struct selection *sel;
	struct store *store;
	struct err e = {0};
	size_t n;

	if (argc != 2)
		errx(2, "usage: gone DATABASE");
	if (store_open(argv[1], STORE_READ, &store, &e) < 0 ||
		selection_create(store, &o, &sel, &e) < 0)
		errx(2, "%s", e.text);
	n = selection_images(sel, &images);
	for (size_t i = 0; i < n; i++)
		if (print_image(sel, &images[i], &e) < 0)
			errx(1, "%s", e.text);
	selection_destroy(sel);
	store_close(store);
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
