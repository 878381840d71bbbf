/* What the scoreboard's files share. */
#ifndef CULPRIT_ISA_SCOREBOARD_INTERNAL_H
#define CULPRIT_ISA_SCOREBOARD_INTERNAL_H

#include "isa/scoreboard.h"

#define SCOREBOARD_AHEAD   16384 /* cycles that units can be booked ahead; a power of two */
#define SCOREBOARD_STORES  32    /* remembered for loads from the same place */
#define SCOREBOARD_ENTRIES 256   /* of a scheduler */

/* Slots that are taken and freed in order; when[] says from which cycle on one is free. */
struct slots {
	uint32_t size; /* 0: as many as wanted */
	uint64_t taken;
	uint32_t *when;
};

/* Entries that are freed in any order: a heap, the earliest first. */
struct scheduler {
	uint32_t size, n;
	uint32_t when[SCOREBOARD_ENTRIES];
};

/* A general register as a sum: something unknown, by number, and a constant. */
struct symbol {
	uint32_t unknown;
	int64_t plus;
};

struct stored {
	struct symbol base;
	uint32_t index;
	uint8_t scale, segment;
	uint16_t size;
	uint32_t complete;
	int64_t number;
};

/* What fusion leaves of an instruction. */
struct part {
	uint16_t uops;
	uint8_t nuses;
	bool fused;        /* with the branch after it */
	uint32_t position; /* in the block, in bytes */
	struct model_use use[MODEL_USES];
};

struct scoreboard {
	const struct model *model;
	const struct model_limits *limits;
	bool plain;
	bool ideal;         /* only dependence counts */
	int64_t waited_for; /* whom the last instruction waited for, over all iterations; or -1 */

	const struct model_insn *insn;
	size_t n;
	struct part part[SCOREBOARD_MAX];

	/* The front end: where it is, and what is left of this cycle. */
	uint32_t cycle, room, moves[2];
	/* Retirement: where it is, and how many instructions left in this cycle. */
	uint32_t retired, leaving;
	uint32_t last_complete, barrier; /* of all so far; of the last serialising one */
	uint32_t last_memory;            /* when the last load or store began */
	struct slots window, loads, stores, registers[2];
	struct scheduler scheduler[MODEL_QUEUES];

	/* Who made each register's value and when it is there; writers count over all iterations.
	 */
	uint32_t ready[MODEL_REGISTERS];
	int64_t writer[MODEL_REGISTERS];
	struct symbol symbol[16];
	uint32_t symbols;
	struct stored stored[SCOREBOARD_STORES];
	uint32_t nstored;

	/* Which units are taken in which cycle, from `floor` on, and how much each did. */
	uint32_t floor, top;
	uint32_t work[MODEL_UNITS];
	uint32_t taken[SCOREBOARD_AHEAD];
};

/* Runs instruction i of iteration `round`. */
void scoreboard_begin(struct scoreboard *, const struct model_insn *, size_t n);
void scoreboard_step(struct scoreboard *, size_t i, uint32_t round, struct scoreboard_insn *out);

/* What front end, units, retirement and dependence alone would allow. */
void scoreboard_bounds(
	struct scoreboard *, bool loop, struct scoreboard_insn *out, struct scoreboard_sum *sum);

#endif
