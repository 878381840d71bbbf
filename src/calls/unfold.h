/*
 * The stacks that a path map was learned from, unfolded: for each height that a path was seen at,
 * where the frame of its caller was. So it can be told what heights would be if frames had other
 * sizes.
 *
 * A context is a path at a height. Where several stacks had one, the caller is the one that was
 * seen most.
 */
#ifndef CULPRIT_CALLS_UNFOLD_H
#define CULPRIT_CALLS_UNFOLD_H

#include "calls/map.h"

#include <stddef.h>
#include <stdint.h>

struct unfolded_context {
	uint32_t path;   /* node of the map's tree */
	uint32_t caller; /* number of the context that called it; CALL_NONE: the outermost */
	enum stack_kind kind;
	int64_t height;
	uint64_t seen, sampled; /* in stacks that were walked; as the innermost frame */
};

/* By kind and height, so a caller is before those it calls; to be freed. Heights that mean nothing
 * (STACK_OTHER, outermost frames without an address) are left out. */
size_t call_map_unfold(const struct call_map *m, struct unfolded_context **out);

#endif
