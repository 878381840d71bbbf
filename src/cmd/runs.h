/*
 * What stats and diff share: databases on the command line as runs, and the cells of a procedure.
 *
 * A database is FILE, or FILE:EPOCHS ("a.db:3", "a.db:2-4", "a.db:last"; without a file, the
 * default one); several may stand in one word, with commas between. A name that is a file is
 * always taken as that.
 */
#ifndef CULPRIT_CMD_RUNS_H
#define CULPRIT_CMD_RUNS_H

#include "analyze/runs.h"
#include "cmd/cmd.h"

struct json;
struct table;

struct run_set {
	struct report *report; /* the options: filters, event */
	struct runs *runs;
	VEC(struct report *) sources; /* what is open */
	size_t n;                     /* runs so far */
	struct arena memory;
};

int run_set_init(struct run_set *s, struct report *r, struct err *e);
void run_set_deinit(struct run_set *s);

/* Opens what a word names. `by_epoch`: each epoch is a run, else each database. */
int run_set_add(struct run_set *s, const char *word, bool by_epoch, struct err *e);

/* Where the procedure starts, and what it was called before. */
void run_place_keys(struct json *j, const struct run_row *row);

/* Procedure and image behind so many columns of a table, cut to the terminal. */
void run_name_cells(struct table *t, const struct run_row *row, size_t columns);

#endif
