/*
 * What the parts of `culprit top` share: top.c (options), top_text.c, top_json.c, top_children.c
 * (--children), top_time.c (--by time) and top_live.c (--live).
 */
#ifndef CULPRIT_CMD_TOP_VIEW_H
#define CULPRIT_CMD_TOP_VIEW_H

#include "analyze/tally.h"
#include "cmd/cmd.h"

struct json;

/* Without -n and --min-share a reader gets this many, a script all. */
enum { TOP_TEXT_ROWS = 100, TOP_SLICES_MOST = 10000 };

/* By what samples are added up. */
struct top_by {
	const char *name;
	enum tally_by by;
	const char *columns[3]; /* behind the counts */
};
const struct top_by *top_views(size_t *n);

struct top {
	struct report report;
	const struct top_by *view;
	const char *sort;
	const char *match; /* only rows with this in their names, NULL: all */
	bool children, live;
	bool over_time;  /* --by time */
	uint64_t slices; /* of it, 0: as many as fit */
	const char *of;  /* image or procedure */
	struct tally *tally;
};

void top_print_json(const struct top *t);
void top_print_text(const struct top *t, FILE *out);

/* The parts of the text. `hidden`: how many rows are not shown. */
typedef VEC(const struct tally_row *) top_rows;
top_rows top_shown(const struct top *t, size_t *hidden);
void top_print_heading(const struct top *t, FILE *out);
/* A line for each, below one that names the columns; samples of the first event in all of them. */
uint64_t top_print_rows(const struct top *t, const top_rows *rows, FILE *out);
/* Samples that are in no row or in the unknown row must not be overlooked. */
void top_print_account(const struct selected_event *ev, FILE *out);

void top_put_event(struct json *j, const struct selected_event *ev, uint64_t samples);
void top_put_image(struct json *j, const struct selected_image *im); /* may be NULL */

/* Procedures with what they called. After report_select; -ENOENT when there are no contexts. */
int top_children(struct report *r, struct err *e);
/* Samples over time, in this many slices (0: as fits), of "image" (also NULL) or "procedure". */
int top_time(struct report *r, size_t slices, const char *of, struct err *e);

#endif
