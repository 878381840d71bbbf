/*
 * Paths that nobody has seen, by what the code allows: the callers of a frame (calls/callers.h) at
 * the heights that they would have, and theirs in turn, until one of them is known at its height.
 */
#ifndef CULPRIT_CALLS_DERIVE_H
#define CULPRIT_CALLS_DERIVE_H

#include "calls/callers.h"
#include "calls/map.h"

/*
 * The shortest way to a path that the map knows; of several the one that was seen most. CALL_NONE
 * when there is none within some thousand steps, which take less than a millisecond.
 */
uint32_t call_map_derive(struct call_map *m, const struct call_callers *callers,
	enum stack_kind kind, const struct call_frame *frame);

#endif
