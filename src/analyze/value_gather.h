/*
 * What reports on values read of a selection, summed by image: value profiles, the edge samples
 * with targets in whatever image, and the PC samples of the first event.
 */
#ifndef CULPRIT_ANALYZE_VALUE_GATHER_H
#define CULPRIT_ANALYZE_VALUE_GATHER_H

#include "analyze/pcpool.h"
#include "analyze/selection.h"
#include "analyze/value_code.h"
#include "base/vec.h"
#include "store/edges.h"
#include "values/values.h"

struct err;

/* An image with values or edges; stands in `user` of the selected image. */
struct value_image {
	struct selected_image *image; /* its procedures are loaded */
	struct value_profile *values; /* NULL: none */
	VEC(struct edge) edges;       /* by from, target, to; offsets */
	size_t settled;
	struct pc_pool pcs; /* of the first event */
	struct value_file file;
};

struct value_gathering {
	struct selection *sel;
	VEC(struct value_image *) images;
	uint64_t *keys;   /* of all images of the selection, in its order */
	uint64_t time;    /* all samples of the first event that are selected */
	uint64_t refused; /* values whose keys found no room when they were collected */
};

int value_gather(struct value_gathering *g, struct selection *sel, struct err *e);
void value_gather_deinit(struct value_gathering *g);

/* Samples at addresses from start up to (not with) end. */
uint64_t value_image_samples(const struct value_image *vi, uint64_t start, uint64_t end);

/* The image that a key (edges.h) stands for; NULL: none that is known. */
struct selected_image *value_image_of_key(const struct value_gathering *g, uint64_t key);

#endif
