/*
 * A flow while it is made, for the files that make it: cfg_decode.c finds the instructions,
 * tables.c where indirect jumps go, cfg_blocks.c the blocks and edges.
 */
#ifndef CULPRIT_FLOW_CFG_INTERNAL_H
#define CULPRIT_FLOW_CFG_INTERNAL_H

#include "base/vec.h"
#include "flow/cfg.h"
#include "isa/decode.h"

/* A range of the procedure, and where its bytes are in the code. */
struct span {
	uint64_t start;
	uint32_t size, offset;
};

struct builder {
	const struct flow_source *source;
	VEC(struct span) spans; /* by start */
	uint32_t bytes;
	uint32_t *at; /* by offset in the code: the instruction that starts there, GRAPH_NONE */

	/* Those of the sweep by address, then those that overlap them, in runs by address. */
	VEC(struct flow_insn) insns;
	uint32_t swept;
	VEC(uint64_t) pointers; /* addresses of this procedure that its code mentions */
	uint32_t bad;           /* bytes that are no instructions */

	VEC(struct flow_jump) jumps; /* by instruction */
	VEC(uint32_t) targets;       /* of the jumps: instructions */

	VEC(struct flow_block) blocks;
	uint32_t *block_of;           /* by instruction */
	VEC(struct graph_edge) edges; /* by block */
	VEC(uint8_t) kinds;
	VEC(uint32_t) first_edge; /* by block, and one more */
	bool overlaps;
};

/* The instruction that starts at an address of the procedure, GRAPH_NONE. */
uint32_t builder_insn_at(const struct builder *b, uint64_t address);
bool builder_holds(const struct builder *b, uint64_t address);

/* The bytes of the procedure from an address on: how many are left in its range. */
size_t builder_code(const struct builder *b, uint64_t address, const uint8_t **out);

/* Whether control may go on behind an instruction that ends so. */
bool flow_goes_on(enum flow_end end);

void builder_decode(struct builder *b);
void builder_mark_pointers(struct builder *b); /* anew: words in proved tables are none */
void builder_make_blocks(struct builder *b);   /* also edges; may be called again */

static inline uint32_t builder_entry(const struct builder *b)
{
	return (uint32_t)b->blocks.n;
}

static inline uint32_t builder_exit(const struct builder *b)
{
	return (uint32_t)b->blocks.n + 1;
}

#endif
