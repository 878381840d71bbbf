/*
 * Rates of loops from pairs of samples (store/anchors.h): where a register moves only by constants
 * all over a loop, its difference between two samples inside counts how often the loop went round.
 *
 * The strides come from the code. Where several places move the register the mean stride is that of
 * the flows, so rates can be no better than these. A pair may lie: the procedure may have been left
 * and called again from the same place, or the loop entered anew. So only what a loop can have done
 * in the time counts, and only where most pairs agree.
 */
#ifndef CULPRIT_ANALYZE_INDUCTION_H
#define CULPRIT_ANALYZE_INDUCTION_H

#include "analyze/evidence.h"

struct loop_rate {
	uint32_t loop;   /* number in loops_init's list, of the graph that was given */
	uint32_t header; /* its block */
	double rate;     /* times round in a ns that is spent in the loop, callees included */
	double error;    /* standard error of its logarithm */
	double between;  /* ns from one sample to the next, in the mean */
	double pairs;    /* that agree */
};

struct loops;

/*
 * Loops are of a graph with the nodes of ev->flow->graph; flow is how often each node runs, as far
 * as it is known.
 * One rate at most for each loop, in *out (free it); returns how many.
 */
size_t induction_rates(const struct evidence *ev, const struct loops *loops, const double *flow,
	struct loop_rate **out);

#endif
