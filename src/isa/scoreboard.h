/*
 * A scoreboard of an out-of-order core: when the instructions of a block would issue, complete and
 * retire if nothing went wrong (the paper's section 6, "static stalls" and M, for cores that
 * reorder). Instructions enter a window in order, wait in a scheduler for operands and units,
 * complete, and retire in order; the figures are a machine model's (isa/model.h).
 *
 * A scoreboard is scratch memory that any number of blocks may use, one after another.
 */
#ifndef CULPRIT_ISA_SCOREBOARD_H
#define CULPRIT_ISA_SCOREBOARD_H

#include "isa/model.h"

enum scoreboard_wait {
	SCOREBOARD_NOTHING,
	SCOREBOARD_FRONT,     /* its turn to enter the window */
	SCOREBOARD_WINDOW,    /* room in the window: an older instruction has not retired */
	SCOREBOARD_REGISTERS, /* a physical register */
	SCOREBOARD_QUEUE,     /* room in a scheduler */
	SCOREBOARD_MEMORY,    /* room in the load or store queue */
	SCOREBOARD_OPERAND,   /* what another instruction computes */
	SCOREBOARD_STORE,     /* what another instruction stores */
	SCOREBOARD_UNIT,      /* a unit (group) */
	SCOREBOARD_ORDER,     /* all before it, or a serialising one before it */
};

/* Cycles count from the entry of the block's first instruction into the window. */
struct scoreboard_insn {
	uint32_t enter, ready, issue, complete, retire;
	uint32_t stall;            /* cycles between the retirement of the one before and its own */
	enum scoreboard_wait wait; /* what it waited for last before it began */
	int32_t on;                /* the instruction that it waited for, or -1 */
	uint8_t group;             /* units that it waited for, see model_group */
	bool in_chain;             /* part of the chain that bounds the loop */
	bool carried;              /* the one that it waited for is of an earlier iteration */
};

enum scoreboard_bound {
	SCOREBOARD_BOUND_FRONT,
	SCOREBOARD_BOUND_UNITS,
	SCOREBOARD_BOUND_CHAIN,
	SCOREBOARD_BOUND_RETIRE,
	SCOREBOARD_BOUND_WINDOW, /* none of these alone: the window or a queue is too small */
};

struct scoreboard_sum {
	double cycles; /* of the block, or of one iteration in steady state */
	enum scoreboard_bound bound;
	double front, units, chain, retire; /* what each alone would allow */
	uint32_t unit_mask;                 /* the units that bound most */
	uint32_t unknown;                   /* instructions whose figures are guesses */
};

struct scoreboard;
struct scoreboard *scoreboard_create(const struct model *);
void scoreboard_destroy(struct scoreboard *);

#define SCOREBOARD_MAX 4096 /* instructions */

/*
 * The block once, entered with everything ready; n at most SCOREBOARD_MAX, else -E2BIG. out (may be
 * NULL) gets n entries; without sum (NULL) nothing is marked in_chain, and it takes half the time.
 */
int scoreboard_block(struct scoreboard *, const struct model_insn *, size_t n,
	struct scoreboard_insn *out, struct scoreboard_sum *sum);
/* The same as the body of a loop, in steady state. */
int scoreboard_loop(struct scoreboard *, const struct model_insn *, size_t n,
	struct scoreboard_insn *out, struct scoreboard_sum *sum);

const char *scoreboard_wait_name(enum scoreboard_wait);
const char *scoreboard_bound_name(enum scoreboard_bound);

#endif
