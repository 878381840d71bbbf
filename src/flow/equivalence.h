/*
 * Cycle equivalence: which edges and nodes run equally often, whatever the program does (section
 * 6.1.2 of the DCPI paper; Johnson, Pearson and Pingali, "The program structure tree", PLDI 1994).
 *
 * An activation enters the graph at the entry and ends at the exit. Two edges are in one class when
 * every cycle of the graph, closed by an edge from exit to entry, has both or neither; nodes count
 * as edges from their entering half to their leaving half. Then, exactly:
 *
 * - In activations that have ended, edges and nodes of one class ran the same number of times. No
 *   larger classes have this property.
 * - A part of the graph that cannot be left and does not have the exit (an infinite loop) counts as
 *   an end of its own: coming into it ends an activation for all that is outside, so the first
 *   promise holds for the outside when every activation has ended or is in such a part. Inside,
 *   edges of one class differ by at most one for each activation that came in. No class has members
 *   inside and outside, or in two such parts.
 * - A node other than the exit that nothing leaves ends activations too.
 * - What the entry does not reach has classes of one, and edges from there are taken not to run.
 *
 * Activations that end elsewhere (unwound by an exception, still running) are not covered, nor are
 * ways that the graph does not show: a caller who knows of some adds edges, from the entry to nodes
 * that may be entered unseen and to the exit from those that may be left unseen, or does without
 * classes.
 */
#ifndef CULPRIT_FLOW_EQUIVALENCE_H
#define CULPRIT_FLOW_EQUIVALENCE_H

#include <stdint.h>

#include "flow/graph.h"

struct equivalence {
	uint32_t n;     /* classes, numbered from 0; none is empty */
	uint32_t *edge; /* by edge: its class */
	uint32_t *node; /* by node: its class */
};

void equivalence_init(struct equivalence *q, const struct graph *g, uint32_t entry, uint32_t exit);
void equivalence_deinit(struct equivalence *q);

#endif
