/*
 * The contexts that a database knows (path maps, the samples that were named by them, and what was
 * counted: calls/training.h), as a search for changes wants them (calls/separate.h).
 *
 * Samples are stored by path and not by height. A path's samples are shared out among its heights,
 * and those of several paths at one place among these, as the stacks that were walked say: that is
 * chance there, where it is not by place.
 */
#ifndef CULPRIT_CALLS_GATHER_H
#define CULPRIT_CALLS_GATHER_H

#include "base/vec.h"
#include "calls/separate.h"

#include <stdint.h>

struct err;
struct store;

struct gathered_function {
	uint64_t image, procedure; /* an image's key (store/edges.h), the start */
};

struct gathered {
	VEC(struct separate_context) contexts;
	VEC(struct gathered_function) functions;
};

/* Of all programs that have an image (by its key) on their stacks. -ENOENT when none has. */
int gather_contexts(struct store *s, uint64_t image, struct gathered *out, struct err *e);
void gathered_deinit(struct gathered *g);

#endif
