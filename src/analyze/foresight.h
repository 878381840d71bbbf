/*
 * How well branches can be foreseen: what a predictor that knows the last few branches would have
 * got wrong in the walks of a selection (store/walks.h).
 *
 * Each time that a branch was seen, it is predicted from all the other times it came with the same
 * history, for histories of several lengths; of these the best length counts for each branch. Walks
 * begin without any history, which no predictor does: how good a length is tell the times that have
 * so much of it, for each of the ways that led to the branch apart. Real predictors know longer
 * histories, and share tables: they may be better or worse.
 */
#ifndef CULPRIT_ANALYZE_FORESIGHT_H
#define CULPRIT_ANALYZE_FORESIGHT_H

#include "analyze/selection.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct foresight;

int foresight_create(struct selection *sel, struct foresight **out, struct err *e);
void foresight_destroy(struct foresight *f);

/*
 * The share of its executions in which the branch at a file offset goes another way than foreseen.
 * false: it was seen too seldom.
 */
bool foresight_misses(
	const struct foresight *f, const struct selected_image *im, uint64_t offset, double *share);

#endif
