/*
 * Liveness while it is found, for liveness.c (within one procedure) and lives.c (over all).
 */
#ifndef CULPRIT_FLOW_LIVENESS_INTERNAL_H
#define CULPRIT_FLOW_LIVENESS_INTERNAL_H

#include "base/vec.h"
#include "flow/liveness.h"

/* What an instruction needs, and what is dead before it unless it needs it. */
struct effect {
	uint32_t uses, kills;
};

/* A direct transfer to another procedure. */
struct site {
	uint32_t insn;
	uint32_t callee; /* for lives.c */
	uint32_t own;    /* what the instruction itself uses */
	uint64_t target;
	bool tail; /* a jump */
};

/*
 * Two sets at once: the lower half is what is live; the upper half what is read before it is
 * written (as far as the procedure and those it calls see to it, not those behind its end).
 */
typedef uint64_t both;
#define BOTH(set)    ((both)(set) << 32 | (set))
#define BOTH_LIVE(b) ((uint32_t)(b))
#define BOTH_READ(b) ((uint32_t)((b) >> 32))

struct liveness {
	const struct flow *flow;
	struct effect *effects; /* by instruction */
	uint32_t *block_of;     /* by instruction */
	struct {
		both uses, kills;
	} * sums;       /* by block */
	both *in, *out; /* by block */
	both unseen;    /* where blocks are entered unseen: calls may go there */
	VEC(struct site) sites;
	uint32_t written;
	uint32_t at_end; /* live when it returns or leaves otherwise */
	uint8_t red_zone;
	bool calls_others;  /* through pointers */
	bool returns_oddly; /* it may go on elsewhere than where it was called */
};

#define LIVE_ABI_USES  (REGS_ARGUMENTS | REGS_KEPT)
#define LIVE_ABI_KILLS ((REGS_ALL & ~REGS_KEPT) | LIVE_FLAGS(FORM_FLAGS))

/* Reads the instructions. Direct calls then need everything, and so do those behind the end. */
void liveness_read(const struct flow *f, const struct flow_source *source, struct liveness **out);

/* Finds the sets; may be called again when effects of sites or at_end have grown. */
void liveness_settle(struct liveness *l);

/* Live behind an instruction. */
uint32_t liveness_after(const struct liveness *l, uint32_t insn);

/* What whoever enters it at its entry has to bring. */
uint32_t liveness_reads(const struct liveness *l);

#endif
