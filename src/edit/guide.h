/*
 * What an earlier run counted, exactly or by paths: how often the blocks and edges of an image were
 * taken. By it the next run is edited so that it counts at less cost.
 */
#ifndef CULPRIT_EDIT_GUIDE_H
#define CULPRIT_EDIT_GUIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "edit/exact_map.h"
#include "image/image.h"

struct err;
struct guide;

/* All that the database has of the image; that may be nothing. */
int guide_create(
	const char *database, const struct image_id *image, struct guide **out, struct err *e);
void guide_destroy(struct guide *g); /* takes NULL */

/* Of all it has: edits that depend on equal guides are equal. 0: it has nothing. */
uint64_t guide_hash(const struct guide *g);

/* How often the block at `start` ran, whose last instruction is at `last`, and went on to another.
 */
double guide_block(const struct guide *g, uint64_t start);
double guide_edge(const struct guide *g, uint64_t start, uint64_t last, uint64_t to);

/* How often links were taken, into weights; false when the procedure did not run. */
bool guide_weights(const struct guide *g, const struct exact_function *f, double *weights);

#endif
