/*
 * Many runs side by side: for every procedure its samples of one event in each of them.
 *
 * A run is what one selection of one database holds. Runs may be of different builds: images are
 * the same when their identities are, and then procedures go by their start. Otherwise an image
 * continues one of earlier runs that is there no more, by path, base name or the names of its
 * procedures; its procedures then go by name, and those that are left by the likeness of their code
 * (analyze/fingerprint.h). What fits several equally well is not matched, and marked.
 *
 * Stores must be open until runs_match; strings and rows live as long as the runs.
 */
#ifndef CULPRIT_ANALYZE_RUNS_H
#define CULPRIT_ANALYZE_RUNS_H

#include "analyze/selection.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct runs;

struct run {
	const char *name;
	double samples; /* in all rows */
	/* What a sample stands for: ns of a clock, else events. Samples that were lost or missed
	   are shared out over those that are there. */
	double period;
};

/* How the builds that have a procedure were matched. */
enum run_match {
	MATCH_START, /* there is only one */
	MATCH_NAME,
	MATCH_CODE,
};

/* A procedure; where its builds differ, as it is in the last run that has it. */
struct run_row {
	const char *name, *image;
	const char *was; /* its name before, where it is another; else NULL */
	uint64_t start;
	bool known;     /* false: what no procedure covers */
	bool ambiguous; /* others of another build fit it equally well */
	enum run_match match;
	double *samples; /* by run */
};

/* `event` may be NULL: the first event of the first run. */
struct runs *runs_create(const char *event);
void runs_destroy(struct runs *r);

/* Reads one run; the name is for the user. -ENOENT when the event was not sampled in it. */
int runs_add(struct runs *r, struct store *s, const struct store_filter *filter, const char *name,
	struct err *e);

/* Once, after the last run. Only rows whose name, now or before, fits the glob stay (NULL: all). */
int runs_match(struct runs *r, const char *procedure, struct err *e);

const char *runs_event(const struct runs *r); /* NULL before the first run */
bool runs_clock(const struct runs *r);        /* the event counts ns */
size_t runs_list(const struct runs *r, const struct run **out);
size_t runs_rows(const struct runs *r, const struct run_row **out); /* in no order */

#endif
