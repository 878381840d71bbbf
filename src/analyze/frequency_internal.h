/*
 * What the files of the estimator share: the graph that flows are solved on (frequency_graph.c),
 * and the fit of flows to what was seen (frequency_fit.c).
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
	uint32_t *way;   /* by edge: of the evidence's ways, when it was only seen */
	double *outcome; /* by edge: how often it was seen by bursts */
};

void traced_init(struct traced *t, const struct evidence *ev);
void traced_deinit(struct traced *t);

/* How often a block ran, from elsewhere: standard error of the logarithm. */
struct fit_anchor {
	uint32_t block;
	double count, error;
};

struct fit {
	const struct evidence *ev;
	struct traced traced;
	double *taken;  /* by node: samples */
	double *needed; /* by node: samples that one execution should bring */
	double *weight; /* by node: instructions */
	struct flow_count *count;
	const struct fit_anchor *anchors;
	size_t nanchors;
	struct flow_start start; /* where the last solution was */
};

/*
 * How excursions shared out what leaves nodes (frequency_excursions.c): by edge, shares that add up
 * to how many outcomes they are worth; 0 where they say nothing.
 */
void excursions_say(const struct evidence *ev, const struct traced *t, double *out);

void fit_init(struct fit *fit, const struct evidence *ev);
void fit_deinit(struct fit *fit);

/* Solves with the anchors that are set; the solution is the caller's (solver_free). */
int fit_solve(struct fit *fit, struct flow_solution *s, struct err *e);

#endif
