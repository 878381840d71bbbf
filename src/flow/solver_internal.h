/*
 * What the parts of the solver tell each other.
 *
 * The model is a chain of sites with at most two ways on each. Sites are the nodes, edges that have
 * counts or bounds of their own, the halves of wide branches, and last the source that feeds the
 * entry. A binary tree of two-way branches has the likelihood of the wide one exactly.
 */
#ifndef CULPRIT_FLOW_SOLVER_INTERNAL_H
#define CULPRIT_FLOW_SOLVER_INTERNAL_H

#include <stddef.h>

#include "flow/solver.h"

#define SITE_OUT GRAPH_NONE /* where a way leads that leaves the graph */

struct site {
	uint32_t to[2]; /* sites or SITE_OUT */
	uint32_t ways;  /* 1 or 2 */
	double seen[2]; /* outcomes, and the prior times what is hoped */
	double hope[2];
	double count, exposure, bound;
};

struct model {
	uint32_t n, source;
	struct site *site;
	uint32_t *node_site; /* by node, GRAPH_NONE when not reached */
	uint32_t *edge_site; /* by edge: where it begins, GRAPH_NONE when not reached */
	uint8_t *edge_way;   /* by edge: and which way of that it is */
	double prior;        /* as it is in `seen` now */
	bool scaled;
};

void model_init(struct model *m, const struct flow_problem *p);
void model_permute(struct model *m, const struct graph *g, const uint32_t *place);
void model_set_prior(struct model *m, double prior);
void model_deinit(struct model *m);

/*
 * The pattern of a symmetric matrix's factor, columns eliminated by least degree. Rows of a column
 * ascend, and all lie below the diagonal.
 */
struct pattern {
	uint32_t n;
	uint32_t *place; /* by site: its column */
	uint32_t *first; /* by column: where its rows begin; n + 1 of them */
	uint32_t *row;
};

/* Pairs are of sites; `last` is eliminated last. -E2BIG when there would be too many rows. */
int pattern_init(
	struct pattern *p, uint32_t n, const struct graph_edge *pair, size_t pairs, uint32_t last);
void pattern_deinit(struct pattern *p);
/* Where (column, row) is in p->row, for two columns in any order; they must be in the pattern. */
uint32_t pattern_slot(const struct pattern *p, uint32_t a, uint32_t b);

/*
 * Flows of a chain. Slots as in the pattern: down[slot] is the probability to go from the column to
 * the row, up[slot] from the row to the column; out[column] that to leave. All are used up. flow,
 * by column, is set to that of one unit which comes in at the last one.
 */
void chain_solve(const struct pattern *p, double *down, double *up, double *out, double *flow);

/* Symmetric matrices of blocks of 2 by 2, factored in place as L D L' without pivoting. */
struct block {
	double a[2][2]; /* row, column; of the lower triangle */
};
struct blocks {
	const struct pattern *p;
	struct block *diagonal; /* by column; once factored, the inverse of D */
	struct block *below;    /* by slot; once factored, L */
};

void blocks_init(struct blocks *b, const struct pattern *p); /* zero */
void blocks_clear(struct blocks *b);
void blocks_deinit(struct blocks *b);
void blocks_factor(struct blocks *b);
void blocks_solve(const struct blocks *b, double (*x)[2]); /* right side in, solution out */
/* Turns the factors into the blocks of the inverse that lie in the pattern. */
void blocks_invert(struct blocks *b);

/* A point of the search. Sites are columns of the pattern. */
struct point {
	double *odds;       /* by site: logarithm of the odds of way 0 */
	double (*share)[2]; /* by site: probability of each way */
	double *flow;       /* by site */
	double scale;       /* logarithm of the flow of the reference */
	double likelihood;
};

struct slots {
	uint32_t way[2]; /* of site and target, GRAPH_NONE when it is the same or none */
	uint32_t across; /* of the two targets */
};

struct solver {
	const struct flow_problem *p;
	struct model m;
	struct pattern pattern;
	struct slots *slots; /* by site */
	struct blocks matrix;
	double (*side)[2];       /* right side, then solution: of log flow, and the multiplier */
	double (*change)[2];     /* by site: the step of each way's flow, over the flow */
	double *down, *up, *out; /* of the chain */
	double damping;          /* share of its outcomes that guards a branch */
	bool exact;              /* no guards: the best steps, but they may not lead up */
	/* The scale is held where most was counted: what comes in may be 1e-15 of that, and is
	   known no better than it. */
	uint32_t reference;
	struct point now, next;
};

/* Weight of bounds. */
static inline double solver_barrier(const struct model *m)
{
	return m->prior > 0.01 ? m->prior : 0.01;
}

/* What is known of a branch at s->now. */
struct turn {
	double effect[2];   /* on the log flow of the targets, by its log odds */
	double slope;       /* of the likelihood along the log odds */
	double information; /* minus its curvature there */
	double cross;       /* minus the curvature along log odds and log flow */
	double guard;       /* information that is added to that of the flow */
};

/* The conditions of a step, in s->matrix and s->side; cautious ones are for errors. */
void step_assemble(struct solver *s, bool cautious);
void step_turn(const struct solver *s, uint32_t i, bool cautious, struct turn *t);
/* How the log odds of a site answer to s->side, once that is solved for; slope as given. */
double step_answer(const struct solver *s, uint32_t i, const struct turn *t, double slope);
/* Finds the step; returns how much the likelihood rises with it, to first order. */
double step_find(struct solver *s);

void search_climb(struct solver *s, struct flow_solution *to);
void errors_find(struct solver *s, struct flow_solution *to);

#endif
