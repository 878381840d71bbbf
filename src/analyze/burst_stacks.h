/*
 * Who called whom in a burst that recorded calls beside references: a frame for each activation of
 * a procedure that it went through, and for each event the frame that it happened in.
 *
 * Only what the burst saw is told. Who called the procedure that it began in is not known, nor who
 * called what is there after that has returned. Procedures that exist once are not seen: where a
 * frame may have been called by such a one, and that by the caller, there is a gap.
 */
#ifndef CULPRIT_ANALYZE_BURST_STACKS_H
#define CULPRIT_ANALYZE_BURST_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "store/traces.h"

#define BURST_NO_FRAME UINT32_MAX

struct burst_frame {
	uint64_t image, procedure;
	uint32_t caller; /* a frame before it; BURST_NO_FRAME: nobody knows */
	bool gap;        /* there may be others between the caller and this one */
};

/* Somebody who is active. */
struct burst_active {
	uint32_t frame;
	bool calls;      /* and has called ... */
	uint64_t target; /* ... whom; 0: through a pointer */
};

/* Zeroed at first; used again and again. */
struct burst_stacks {
	VEC(struct burst_frame) frames;
	VEC(uint32_t) of; /* by event */
	bool calls;       /* there are some */
	/* Inside: */
	VEC(struct burst_active) active;
	VEC(bool) mark; /* by frame */
};

void burst_stacks_read(
	struct burst_stacks *s, const struct trace_site *sites, const struct trace_burst *b);
void burst_stacks_deinit(struct burst_stacks *s);

/* The innermost frame that two have in common, themselves included; BURST_NO_FRAME: none. */
uint32_t burst_stacks_common(struct burst_stacks *s, uint32_t a, uint32_t b);

#endif
