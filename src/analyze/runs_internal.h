/*
 * What reading runs (runs.c) and matching their procedures (runs_match.c) share.
 */
#ifndef CULPRIT_ANALYZE_RUNS_INTERNAL_H
#define CULPRIT_ANALYZE_RUNS_INTERNAL_H

#include "analyze/fingerprint.h"
#include "analyze/runs.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"

/* One build of an image, in all runs that have it. */
struct build {
	enum image_kind kind;
	const char *path;
	struct store *store; /* one that has its procedures, under this id */
	int64_t image;
	size_t first_run;
	double samples;
};

/* A procedure of a build. */
struct item {
	uint32_t build;
	bool known;
	uint64_t start;
	const char *name;  /* NULL: nothing names it */
	const char *label; /* what it is called in any case */
	double samples;
};

/* Samples of an item in a run. */
struct item_count {
	size_t item, run;
	double samples;
};

struct runs {
	char *event;
	bool clock;
	struct arena memory;
	struct strtab paths;
	struct hmap build_index, item_index;
	VEC(struct run) list;
	VEC(struct build) builds;
	VEC(struct item) items;
	VEC(struct item_count) counts;
	VEC(struct run_row) rows;
};

/* Makes the rows from the items: *row_of gets the row of each item (free it). */
int runs_match_items(struct runs *r, uint32_t **row_of, struct err *e);

#endif
