/*
 * What edited programs counted (store/exact.h): the exact counts that a selection holds, added up
 * by image. They were not sampled, so the events that are selected do not matter.
 */
#ifndef CULPRIT_ANALYZE_EXACT_COUNTS_H
#define CULPRIT_ANALYZE_EXACT_COUNTS_H

#include "analyze/selection.h"
#include "store/exact.h"

struct err;
struct exact_counts;

/* The selection must outlive it. */
int exact_counts_create(struct selection *sel, struct exact_counts **out, struct err *e);
void exact_counts_destroy(struct exact_counts *c);

/* 1 and all rows of an image, 0 when it has none. */
int exact_counts_of(
	const struct exact_counts *c, const struct selected_image *im, struct exact_reader *out);

#endif
