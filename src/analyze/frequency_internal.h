/*
 * What the files of the estimator share.
 */
#ifndef CULPRIT_ANALYZE_FREQUENCY_INTERNAL_H
#define CULPRIT_ANALYZE_FREQUENCY_INTERNAL_H

#include "analyze/frequency.h"
#include "flow/solver.h"

/*
 * The graph that flows are solved on: that of the procedure without ways that may be there but show
 * no trace, and with those that were seen though the graph has no edge for them. Nodes are the
 * same.
 */
struct traced {
	struct graph graph;
	uint32_t *edge;  /* by edge: that of the flow, GRAPH_NONE when it was only seen */
	double *outcome; /* by edge: how often it was seen */
};

void traced_init(struct traced *t, const struct evidence *ev);
void traced_deinit(struct traced *t);

#endif
