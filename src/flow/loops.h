/*
 * The loop nesting forest, reducible or not.
 *
 * Loops are those of Havlak (1997) as Ramalingam (1999) makes them precise: a component of nodes
 * that all reach each other is a loop; its header is its first node in the depth-first walk from
 * the root; without the header, the components of what is left are the loops inside. A reducible
 * loop is entered at its header only, and then header and members do not depend on the walk; other
 * loops are marked. Nodes that the root does not reach are in no loop, and edges from them do not
 * count.
 */
#ifndef CULPRIT_FLOW_LOOPS_H
#define CULPRIT_FLOW_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "flow/graph.h"
#include "flow/tree.h"

struct loop {
	uint32_t header;
	uint32_t parent;  /* the loop around it, GRAPH_NONE when outermost */
	uint32_t depth;   /* 1 when outermost */
	uint32_t nodes;   /* inner loops included */
	uint32_t entries; /* edges from outside to inside */
	uint32_t exits;   /* edges from inside to outside */
	uint32_t backs;   /* edges from inside to the header */
	bool irreducible; /* some entries do not lead to the header */
};

enum {
	LOOP_BACK = 1,  /* leads from inside of a loop to its header */
	LOOP_ENTER = 2, /* into some loop that its start is not in */
	LOOP_LEAVE = 4, /* out of some loop that its end is not in */
};

struct loops {
	uint32_t n;
	struct loop *loop; /* outer loops before inner ones */
	uint32_t *of;      /* by node: its innermost loop, GRAPH_NONE */
	uint8_t *edge;     /* by edge: LOOP_ flags */
	struct tree tree;  /* of loops */
};

void loops_init(struct loops *l, const struct graph *g, uint32_t root);
void loops_deinit(struct loops *l);

static inline bool loops_contain(const struct loops *l, uint32_t loop, uint32_t node)
{
	return l->of[node] != GRAPH_NONE && tree_contains(&l->tree, loop, l->of[node]);
}

#endif
