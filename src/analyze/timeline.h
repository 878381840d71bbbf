/*
 * When samples were taken: those of the selection's first event over slices of time, the heaviest
 * images or procedures apart.
 *
 * A profile says of its samples only that they are of a stretch of time (a flush, or what old ones
 * were put together to): they are spread evenly over it. So weights are fractions, and their sum is
 * the number of samples.
 */
#ifndef CULPRIT_ANALYZE_TIMELINE_H
#define CULPRIT_ANALYZE_TIMELINE_H

#include "analyze/selection.h"

#include <stddef.h>
#include <stdint.h>

struct err;
struct timeline;

enum timeline_of { TIMELINE_IMAGES, TIMELINE_PROCEDURES };

struct timeline_part {
	const char *name;                   /* NULL: all the others */
	const struct selected_image *image; /* NULL: all the others */
	uint64_t start;                     /* of the procedure */
	uint64_t samples;
};

struct timeline_options {
	enum timeline_of of;
	size_t slices; /* 1 and more */
	size_t parts;  /* that stand apart */
};

int timeline_create(struct selection *sel, const struct timeline_options *o, struct timeline **out,
	struct err *e);
void timeline_destroy(struct timeline *t); /* takes NULL */

/* Heaviest first; the others, if there are any, are the last. */
size_t timeline_parts(const struct timeline *t, const struct timeline_part **out);
/* 0 when there are no samples. */
size_t timeline_slices(const struct timeline *t);
/* When a slice begins, microseconds since the epoch; also of the one behind the last. */
int64_t timeline_time(const struct timeline *t, size_t slice);
double timeline_weight(const struct timeline *t, size_t slice, size_t part);

#endif
