/*
 * Which lines of code stay in the first cache: from the walks of a selection (store/walks.h), how
 * likely a line is to be gone when it runs again.
 *
 * A walk is a look at a piece of what ran. How many walks show a line says how often it comes, in
 * whatever image it is; all lines together say how long one stays in a cache of so many lines that
 * drops the one used longest ago (Che, Tung and Wang 2002: each line comes by chance, as often as
 * it was seen to, and the cache holds what came within a certain time). What comes back inside a
 * walk comes back at once: that is no other time. Between two branches of a walk the code is taken
 * to go straight on; what direct jumps and calls lead through is not seen.
 */
#ifndef CULPRIT_ANALYZE_RESIDENCE_H
#define CULPRIT_ANALYZE_RESIDENCE_H

#include "analyze/selection.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct residence;

#define RESIDENCE_LINE 64 /* bytes */

/* A cache of so many lines. */
int residence_create(
	struct selection *sel, uint32_t capacity, struct residence **out, struct err *e);
void residence_destroy(struct residence *r);

/*
 * The share of the times that the line at a file offset is gone when control comes to it from
 * another line. false: it was in no walk, or there are too few of them.
 */
bool residence_misses(
	const struct residence *r, const struct selected_image *im, uint64_t offset, double *share);

#endif
