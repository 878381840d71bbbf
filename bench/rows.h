/* All procedures of a database with their frequencies, for blamed.c and tempos.c. */
#ifndef CULPRIT_BENCH_ROWS_H
#define CULPRIT_BENCH_ROWS_H

#include "analyze/evidence.h"
#include "analyze/frequencies.h"
#include "analyze/why.h"
#include "base/err.h"

#include <err.h>

typedef void row_fn(
	void *arg, const struct frequencies_row *row, const struct why_machine *machine);

/* Ends the program where the database cannot be read. */
static void each_row(const char *path, row_fn *fn, void *arg)
{
	struct selection_options o = {0};
	struct selected_image *images;
	struct why_machine machine;
	struct selection *sel;
	struct store *store;
	struct err e = {0};
	size_t n;

	if (store_open(path, STORE_READ, &store, &e) < 0 ||
		selection_create(store, &o, &sel, &e) < 0 ||
		why_machine_init(&machine, sel, &e) < 0)
		errx(2, "%s", e.text);
	n = selection_images(sel, &images);
	for (size_t i = 0; i < n; i++) {
		const struct frequencies_row *rows;
		struct frequencies *f;
		size_t nrows;

		if (selection_load(sel, &images[i], &e) < 0 ||
			frequencies_create(sel, &images[i], &machine, &f, &e) < 0)
			errx(1, "%s", e.text);
		nrows = frequencies_rows(f, &rows);
		for (size_t k = 0; k < nrows; k++)
			fn(arg, &rows[k], &machine);
		frequencies_destroy(f);
	}
	why_machine_deinit(&machine);
	selection_destroy(sel);
	store_close(store);
}

#endif
