/*
 * The calling contexts in which hot data streams occur: of each occurrence in a burst that recorded
 * calls, the innermost activation that all of its references have in common, and who called that
 * (burst_stacks.h). Bursts begin anywhere, so of some occurrences fewer callers are known: they are
 * counted with the one longer path that ends the same way, if there is only one.
 */
#ifndef CULPRIT_ANALYZE_STREAM_CONTEXTS_H
#define CULPRIT_ANALYZE_STREAM_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/streams.h"

struct err;
struct stream_contexts;

struct stream_frame {
	uint64_t image, procedure;
	bool gap; /* there may be others between the one before and this one */
};

struct stream_context {
	const struct stream_frame *frames; /* outermost first; none: it is not known */
	uint32_t n;
	uint64_t occurrences;
};

/* -ENOENT: there are no calls in the bursts. */
int stream_contexts_create(struct streams *s, struct stream_contexts **out, struct err *e);
void stream_contexts_destroy(struct stream_contexts *c);

/* Of a stream, by its number in streams_all; the most frequent first. */
size_t stream_contexts_of(
	const struct stream_contexts *c, size_t stream, const struct stream_context **out);

#endif
