/*
 * The control-flow graph of a procedure: the one that all analyses and the editor stand on.
 *
 * What is not known is never left out silently. Where control may leave a block in a way that the
 * edges do not show, the block is marked FLOW_LEAVES and has an edge of kind FLOW_EDGE_UNSEEN to
 * the exit; where a block may be entered in such a way it carries one of the FLOW_ENTERED marks and
 * has an edge of that kind from the entry. Algorithms that follow all edges are thus right about
 * what they prove; those that trust more may leave out edges by their kind.
 *
 * Calls are taken to come back unless source->returns denies it: that exceptions, longjmp and exit
 * may end a call is not shown at the call. Landing pads are among the entered blocks.
 *
 * All memory is the flow's own; nothing of the source is used after flow_create.
 */
#ifndef CULPRIT_FLOW_CFG_H
#define CULPRIT_FLOW_CFG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow/graph.h"
#include "image/data.h"
#include "image/image.h"

struct err;

#define FLOW_BYTES_MAX ((size_t)64 << 20) /* of one procedure */

struct flow_source {
	const struct range *ranges; /* not overlapping */
	uint32_t nranges;
	uint64_t entry;
	const uint8_t *code; /* of the ranges, one after the other, in their order */

	/* Addresses that something else may go to (unwinding, other code), ascending; words of data
	   that hold such, by target. Those outside are ignored. */
	const uint64_t *entered;
	size_t nentered;
	const struct code_slot *slots;
	size_t nslots;
	bool absolute; /* not position-independent: immediates may be addresses of code */
	bool kernel;   /* ud2 and hlt may go on */

	/* Read-only data: 0, or negative where there is none. NULL: tables stay unresolved. */
	int (*read)(void *arg, uint64_t address, void *out, size_t size);
	/* Where the next piece of data begins above an address that something refers to;
	   UINT64_MAX. NULL: nobody knows. */
	uint64_t (*next_data)(void *arg, uint64_t address);
	/* Whether a procedure begins at an address. NULL: nobody knows. */
	bool (*starts)(void *arg, uint64_t address);
	/* Whether a call to this address may come back. NULL: all do. */
	bool (*returns)(void *arg, uint64_t target);
	/* The registers that a call to this address may change. NULL: all that the ABI allows. */
	uint16_t (*clobbers)(void *arg, uint64_t target);
	/* The register that a retpoline at this address jumps through, or -1. NULL: none is one. */
	int (*thunk)(void *arg, uint64_t target);
	void *arg;
};

/* How a block ends, or what an instruction does to end one. */
enum flow_end {
	FLOW_FALLS,         /* into the next block */
	FLOW_JUMPS,         /* direct */
	FLOW_BRANCHES,      /* conditional */
	FLOW_CALLS,         /* and goes on behind the call */
	FLOW_TABLE,         /* jumps through a table */
	FLOW_UNRESOLVED,    /* jumps, nobody knows where to */
	FLOW_RETURNS,       /* also iret and the like */
	FLOW_TAIL,          /* jumps to another procedure */
	FLOW_TAIL_INDIRECT, /* the same through a register or memory */
	FLOW_STOPS,         /* a trap, or a call that does not come back */
	FLOW_TRAPS,         /* a trap that may go on: in the kernel */
	FLOW_BAD,           /* no instruction, or one that is cut off */
};

enum flow_insn_flag {
	FLOW_INSN_LEADER = 1, /* something goes here */
	FLOW_INSN_FILLER = 2,
	FLOW_INSN_POINTER = 4, /* its address is taken */
	FLOW_INSN_CALLED = 8,  /* a call of this procedure goes here */
	FLOW_INSN_MEMORY = 16, /* has a rip-relative operand, whose displacement is `relative` */
	FLOW_INSN_BEHIND = 3 << 5, /* then: 0, 1, 2 or 4 bytes lie behind the displacement */
	FLOW_INSN_FIXED = 1 << 7,  /* would do something else at another address */
};

struct flow_insn {
	uint64_t address;
	int32_t relative; /* from the next instruction to the target of a direct transfer, or to a
			     rip-relative operand */
	uint8_t length, kind, end, flags; /* enum insn_kind, flow_end, flow_insn_flag */
};

enum flow_mark {
	FLOW_ENTERED_POINTER = 1 << 0, /* its address is taken, or it is a landing pad */
	FLOW_ENTERED_CALLED = 1 << 1,  /* a call inside the procedure */
	FLOW_ENTERED_TABLE = 1 << 2,   /* the procedure has a jump by a table that is not proved */
	FLOW_ENTERED_JUMP = 1 << 3,    /* the procedure has an unresolved jump */
	FLOW_ENTERED_UNREACHED = 1 << 4, /* nothing that is shown leads here */
	FLOW_ENTERED = (1 << 5) - 1,     /* any of these */
	FLOW_LEAVES = 1 << 5,
	FLOW_PADDING = 1 << 6,  /* fillers that nothing leads to: no edges, never executed */
	FLOW_OVERLAPS = 1 << 7, /* shares bytes with another block */
};

/* By address. Blocks that overlap are the only ones whose instructions are not all between. */
struct flow_block {
	uint64_t start;
	uint32_t size;
	uint32_t first, count; /* instructions, consecutive */
	uint8_t end;           /* enum flow_end */
	uint8_t marks;         /* enum flow_mark */
};

enum flow_edge_kind {
	FLOW_EDGE_ENTRY,  /* from the entry to the block that holds it */
	FLOW_EDGE_FALL,   /* also behind a call */
	FLOW_EDGE_JUMP,   /* direct, also the taken branch */
	FLOW_EDGE_TABLE,  /* through a table */
	FLOW_EDGE_RETURN, /* this and the rest go to the exit */
	FLOW_EDGE_TAIL,
	FLOW_EDGE_STOP,   /* execution ends or another procedure's handler goes on */
	FLOW_EDGE_UNSEEN, /* may be: from the entry or to the exit */
};

enum flow_jump_state {
	FLOW_JUMP_UNRESOLVED,
	FLOW_JUMP_UNPROVED, /* a table, whose bound or whose entries are not certain */
	FLOW_JUMP_PROVED, /* the index is bounded on all paths, all entries lie in the procedure */
	FLOW_JUMP_TAIL,   /* leaves the procedure, with the stack as it was at the entry */
};

/*
 * An indirect jump. "Proved" holds if control comes only where edges lead and to marked blocks; an
 * unresolved jump of the same procedure could in theory go past the check of the bound.
 */
struct flow_jump {
	uint32_t insn, block;
	uint8_t state; /* enum flow_jump_state */
	/* Of a table: */
	uint8_t width;                  /* bytes of an entry */
	uint8_t stride;                 /* from one entry to the next */
	bool relative;                  /* entries are added to base, else they are addresses */
	bool leaves;                    /* some entries are code of another procedure */
	uint32_t entries;               /* how many it has */
	uint64_t table;                 /* address of the first entry */
	uint64_t base;                  /* what the entries are relative to */
	uint32_t first_target, targets; /* in flow.targets: blocks, each once, ascending */
};

enum flow_flag {
	FLOW_HAS_UNSEEN = 1,   /* some block is marked FLOW_LEAVES or FLOW_ENTERED */
	FLOW_HAS_OVERLAPS = 2, /* jumps into the middle of instructions */
	FLOW_HAS_BAD = 4,      /* bytes that are no instructions */
};

struct flow {
	uint64_t entry; /* address */
	struct flow_insn *insns;
	uint32_t ninsns;
	struct flow_block *blocks;
	uint32_t nblocks;
	struct flow_jump *jumps; /* by block */
	uint32_t njumps;
	uint32_t *targets;
	uint32_t flags; /* enum flow_flag */

	/* Node n is block n; behind the blocks come the entry and the exit. */
	struct graph graph;
	uint8_t *edge_kind; /* enum flow_edge_kind, by edge */
	uint32_t entry_node, exit_node;
};

/* -EINVAL: ranges that overlap or do not hold the entry; -EFBIG: more than FLOW_BYTES_MAX. */
int flow_create(const struct flow_source *source, struct flow **out, struct err *e);
void flow_destroy(struct flow *f);

/* The block with an instruction that covers the address, GRAPH_NONE; of several the last to begin.
 */
uint32_t flow_block_at(const struct flow *f, uint64_t address);

static inline uint64_t flow_target(const struct flow_insn *i)
{
	return i->address + i->length + (uint64_t)(int64_t)i->relative;
}

/* How many bytes lie behind the displacement of a rip-relative operand. */
static inline unsigned flow_behind(const struct flow_insn *i)
{
	unsigned code = i->flags >> 5 & 3;

	return code == 3 ? 4 : code;
}

#endif
