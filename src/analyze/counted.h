/*
 * What exact runs (store/exact.h) say about an image that was sampled: how often its blocks and
 * edges ran while it was sampled, if the runs can be tied, else relative to each other.
 *
 * Runs are tied when every epoch that has samples of the image is one whole run of a command
 * (store/commands.h) that was also counted: n sampled runs executed what n counted ones did, as far
 * as a command always does the same. Where it was counted several times, what these differ by is
 * the doubt. A filter by time or process leaves only part of a run, so nothing is tied then.
 *
 * Counts that cannot be tied may be those of another job: they are only taken where the branches
 * that bursts saw go much as they were counted to go.
 */
#ifndef CULPRIT_ANALYZE_COUNTED_H
#define CULPRIT_ANALYZE_COUNTED_H

#include "analyze/evidence.h"

struct counted;
struct err;

/* NULL in *out when nothing of the image was counted. */
int counted_create(struct selection *sel, const struct selected_image *im, struct counted **out,
	struct err *e);
void counted_destroy(struct counted *c);

/* Gives the evidence its counts (ev->counts), when there are such that hold. */
void counted_place(const struct counted *c, struct evidence *ev);

#endif
