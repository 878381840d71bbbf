/*
 * Which way branches went: the edge samples that a selection holds, summed by image.
 *
 * Here are the edges whose both ends are in one image; those that leave it are left out. Edges of
 * all selected events are added up. The tally points into the selection, which must outlive it.
 */
#ifndef CULPRIT_ANALYZE_EDGE_TALLY_H
#define CULPRIT_ANALYZE_EDGE_TALLY_H

#include "analyze/selection.h"

#include <stddef.h>
#include <stdint.h>

struct edge_tally;
struct err;

struct edge_sum {
	uint64_t from, to; /* file virtual addresses; from is the branch instruction */
	uint64_t count;
	uint32_t procedure; /* that from is in, by its number in the image */
};

struct image_edges {
	const struct selected_image *image;
	struct edge_sum *edges; /* by procedure, from and to; at least one */
	size_t n;
};

int edge_tally_create(struct selection *sel, struct edge_tally **out, struct err *e);
void edge_tally_destroy(struct edge_tally *t);

/* The images that have edges, by path and build-id. */
size_t edge_tally_images(const struct edge_tally *t, const struct image_edges **out);

/* Edge samples that are in none of them: no procedure of the database covers the branch. */
uint64_t edge_tally_nowhere(const struct edge_tally *t);

#endif
