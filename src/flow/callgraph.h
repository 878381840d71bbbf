/*
 * Who calls whom in an image, by direct calls and tail calls, and which procedures never return:
 * all their paths end in traps, endless loops or calls that do not come back.
 *
 * What goes through pointers is not in the graph; procedures that call or jump so are marked, and
 * so are those whose flow is not all known.
 */
#ifndef CULPRIT_FLOW_CALLGRAPH_H
#define CULPRIT_FLOW_CALLGRAPH_H

#include <stdint.h>

#include "flow/graph.h"
#include "flow/program.h"

enum callgraph_mark {
	CALLGRAPH_INDIRECT = 1, /* calls through a register or memory */
	CALLGRAPH_INDIRECT_TAIL = 2,
	CALLGRAPH_UNSEEN = 4,   /* its flow has FLOW_HAS_UNSEEN, or could not be made */
	CALLGRAPH_NORETURN = 8, /* a call of it does not come back */
};

enum callgraph_kind {
	CALLGRAPH_CALL,
	CALLGRAPH_TAIL,
	CALLGRAPH_MIDDLE, /* a call or jump that is not to the entry */
};

struct callgraph {
	struct graph graph; /* nodes: the procedures of image_procedures, in their order */
	uint8_t *edge_kind; /* enum callgraph_kind, by edge */
	uint64_t *site;     /* by edge: the address of the instruction */
	uint8_t *marks;     /* enum callgraph_mark, by procedure */
	uint64_t insns, blocks;
};

/*
 * Tells the program what does not return. flows has one for each of image_procedures, in their
 * order; nothing is known of those that are NULL. Without the list all are made here for the while.
 */
void callgraph_create(struct program *p, struct flow *const *flows, struct callgraph **out);
void callgraph_destroy(struct callgraph *c);

#endif
