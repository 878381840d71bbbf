/*
 * What code a procedure needs so that its paths are counted, and on which edges.
 *
 * A path's number is a sum of increments in a variable. Where all ways to a node give the same sum,
 * the sum is known and need not be in the variable: it is set only on the way to nodes where it is
 * not, and paths that end where it is known have a counter that is fixed. A procedure with one
 * path needs no variable at all.
 *
 * Where only one way is left, the path is decided: it can be counted right there, and the rest of
 * it needs neither variable nor code. That holds only if it is certain to come to its end.
 */
#ifndef CULPRIT_PATHS_PLAN_H
#define CULPRIT_PATHS_PLAN_H

#include "paths/number.h"

enum plan_op {
	PLAN_NOTHING,
	PLAN_SET,     /* variable = by */
	PLAN_ADD,     /* variable += by */
	PLAN_COUNT,   /* the path variable + by ends here */
	PLAN_COUNTED, /* the path `by` ends here */
};

struct plan_step {
	enum plan_op op;
	uint64_t by;
};

struct plan {
	struct plan_step *step; /* by edge of the dag */
	bool *held;             /* by node: the variable has the sum there */
	bool variable;          /* any of these */
	double cost;            /* of all steps, by weights */
};

/*
 * Weights are by edge of the graph (NULL: all the same): how often it is taken and what code on it
 * costs. `early` says of nodes whether paths may be counted on the ways to it: who comes there goes
 * on to a next one or to the outside, and code can be on all edges to it (NULL: of none).
 */
void plan_init(struct plan *p, const struct numbering *n, const double *weight, const bool *early);
void plan_deinit(struct plan *p);

/* Cuts everything that leads to where several ways meet, so that no variable is needed; by edge of
 * the graph, to be freed. */
bool *plan_short(const struct graph *g, uint32_t outside);

#endif
