/*
 * What stays in the first caches, by the excursions of a selection (store/stays.h): how often what
 * an instruction loads, or a line of code, is gone when it is needed.
 */
#ifndef CULPRIT_ANALYZE_STAYS_H
#define CULPRIT_ANALYZE_STAYS_H

#include "analyze/selection.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct stays;

#define STAYS_LINE 64 /* bytes */

/* Without any excursions *out is NULL. */
int stays_create(struct selection *sel, struct stays **out, struct err *e);
void stays_destroy(struct stays *s);

/* Shares of the visits that find it gone. */
struct stays_share {
	double likely, most;
};

/*
 * Of what the instruction at a file offset loads; of the line of code there, when control comes to
 * it from another. false: it was visited too seldom.
 */
bool stays_data(const struct stays *s, const struct selected_image *im, uint64_t offset,
	struct stays_share *out);
bool stays_code(const struct stays *s, const struct selected_image *im, uint64_t offset,
	struct stays_share *out);

#endif
