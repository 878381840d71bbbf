/*
 * Strongly connected components: the largest sets of nodes that all reach each other. Components
 * are numbered so that no edge leads from a lower number to a higher one: what a component leads to
 * comes before it.
 */
#ifndef CULPRIT_FLOW_COMPONENTS_H
#define CULPRIT_FLOW_COMPONENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "flow/graph.h"

struct components {
	uint32_t n;
	uint32_t *of;   /* by node; GRAPH_NONE when not reached from the root */
	uint32_t *size; /* by component: nodes */
	bool *cyclic;   /* by component: has an edge inside */
	bool *final;    /* by component: no edge leaves it */
};

void components_init(struct components *c, const struct graph *g, uint32_t root);
void components_deinit(struct components *c);

#endif
