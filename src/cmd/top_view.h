/* What the halves of `culprit top` share: top.c and top_children.c (--children). */
#ifndef CULPRIT_CMD_TOP_VIEW_H
#define CULPRIT_CMD_TOP_VIEW_H

#include "cmd/cmd.h"

struct json;

/* Without -n and --min-share a reader gets this many, a script all. */
enum { TOP_TEXT_ROWS = 100, TOP_SLICES_MOST = 10000 };

void top_put_event(struct json *j, const struct selected_event *ev, uint64_t samples);
void top_put_image(struct json *j, const struct selected_image *im); /* may be NULL */
/* Samples that are in no row or in the unknown row must not be overlooked. */
void top_print_account(const struct selected_event *ev);

/* Procedures with what they called. After report_select; -ENOENT when there are no contexts. */
int top_children(struct report *r, struct err *e);
/* Samples over time, in this many slices (0: as fits), of "image" (also NULL) or "procedure". */
int top_time(struct report *r, size_t slices, const char *of, struct err *e);

#endif
