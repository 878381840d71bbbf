/*
 * Execution frequencies under flow conservation, by maximum likelihood.
 *
 * Flow comes in at the entry, goes along edges, and is conserved at every node until it leaves at
 * the exit. (A graph closed by an edge from exit to entry is given without that edge, which says no
 * more.) Nodes other than the exit that nothing leaves are ends as well, and so is one node of each
 * part that cannot be left: what an infinite loop takes in is lost there. What the entry does not
 * reach has no flow.
 *
 * Observations, all of them optional:
 * - of a node or edge with flow x, a count k at exposure w: Poisson, k log x - w x;
 * - of a branch, how often it was seen to go each way: multinomial, sum of k_i log(x_i / sum of x).
 *   A branch also has a weak prior: `prior` outcomes, in which it goes either way, but loops end.
 *   It decides where nothing else does.
 * - a bound b that an edge may not exceed, as max(prior, 0.01) log(1 - x / b). Without counts there
 *   is no scale, and bounds mean nothing.
 *
 * How it is solved. The flow is kept as a chain: branch probabilities, and a scale. Any choice of
 * them is positive and conserves, to the last digit, since the flows come from an elimination
 * without subtractions (Grassmann, Taksar and Heyman 1985). Steps are Newton's in the flows, along
 * directions that conserve, from one sparse factorisation of the curvature and of conservation with
 * its multipliers; a line search lets the likelihood only rise, and a prior that begins strong and
 * fades keeps away from zero flows, as in interior-point methods.
 *
 * What is found. With outcomes alone the likelihood is concave in the log odds, one branch at a
 * time; the maximum is the first guess. With counts alone (and little prior) it is concave in the
 * flows, whose set is convex: the maximum is the only stationary point. With both, outcomes add a
 * term that is convex in the flow of their node, and the likelihood need not have a single top:
 * what is found then is a stationary point, no lower than where the fading prior led. `converged`
 * says that it is stationary; where observations contradict each other wildly, or a loop turns 1e13
 * times for each entry, the search may end before.
 *
 * Errors are standard errors of the logarithm of a flow (0.1 is 10%), from the information
 * restricted to what conservation allows, with everything else unknown. Counts and outcomes of k
 * are taken to say as much as k - 1, so that what was never seen has an error far above 1, counts
 * as unknown, and adds what it may carry to the errors of what it flows into. They hold when
 * observations are independent and the model is right; a caller with clustered counts scales counts
 * and exposures down first.
 */
#ifndef CULPRIT_FLOW_SOLVER_H
#define CULPRIT_FLOW_SOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "flow/graph.h"

struct err;

#define FLOW_PRIOR 0.01

struct flow_count {
	double count, exposure; /* a count above 0 needs an exposure above 0 */
};

/* Where a search begins: the log odds of its sites. Those of another graph are no harm. */
struct flow_start {
	double *odds;
	uint32_t n; /* 0: none */
};

struct flow_problem {
	const struct graph *graph;
	uint32_t entry, exit;
	const struct flow_count *node, *edge; /* by node, by edge; NULL for none */
	const double *outcome;                /* by edge; NULL for none */
	const double *bound;                  /* by edge, INFINITY for none; NULL for none at all */
	const double *weight;                 /* by node, of the total; NULL for 1 each */
	double prior;                         /* 0 for FLOW_PRIOR */
	const struct flow_start *near;        /* where a problem much like it ended; NULL */
};

struct flow_error {
	double absolute; /* of the flow; INFINITY when there is no scale */
	double relative; /* of its share in the total, which is weight times flow over all nodes */
};

struct flow_solution {
	double *node, *edge; /* flows; 1 comes in when the scale is not known */
	struct flow_error *node_error, *edge_error; /* INFINITY where there is no flow */
	struct flow_start end; /* where a problem much like this one may begin */
	double likelihood;     /* its logarithm, constants left out, prior and bounds in */
	double residual;       /* the largest |in - out| of a node, over its flow */
	uint32_t steps;
	bool scaled;    /* something was counted that the entry reaches */
	bool converged; /* one more step would raise the likelihood's logarithm by under 1e-5 */
};

void flow_start_deinit(struct flow_start *s);

/*
 * -EINVAL when a number is negative or not finite where it must be, or a count has no exposure;
 * -E2BIG when the graph is so tangled that factors would take over 100 MB, which code does not do.
 */
int solver_solve(const struct flow_problem *p, struct flow_solution *s, struct err *e);
void solver_free(struct flow_solution *s);

#endif
