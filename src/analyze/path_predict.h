/*
 * What the paths of a procedure would be if branches did not depend on each other: as often as the
 * frequencies of edges say, multiplied along the path. The difference from what was counted is what
 * a path profile knows and an edge profile does not.
 */
#ifndef CULPRIT_ANALYZE_PATH_PREDICT_H
#define CULPRIT_ANALYZE_PATH_PREDICT_H

#include "analyze/path_list.h"

#include <stddef.h>
#include <stdint.h>

struct path_prediction {
	double *counts;         /* by path, in the order of path_list_all */
	double overlap;         /* share of the flow (executions times instructions) foretold */
	uint64_t hot, foretold; /* paths that are hot; of these, that edges alone say are */
	uint64_t wrong, never;  /* that edges alone say are hot: they are cold; they never ran */
};

/* `hot` is the share of the flow from which on a path is hot. */
void path_predict(const struct path_list *l, double hot, struct path_prediction *out);
void path_prediction_deinit(struct path_prediction *p);

#endif
