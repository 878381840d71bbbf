/*
 * Cuts what repeats in a trace into pieces that may be hot data streams. Wherever such a stretch
 * begins and ends, in a burst or in a whole trace, it is cut at the same places: these depend on
 * the instructions around them only. Places are ordered, those first where code goes back or to
 * another procedure, then by a hash of the instructions there. A place that is the least as far as
 * a stream may reach on either side is one; so what goes round is cut once around. What is still
 * too long is cut at its least place again.
 *
 * (The rules of a grammar would be pieces as well, but depend on all that came before: those of a
 * burst are others than those of the whole trace.)
 */
#ifndef CULPRIT_ANALYZE_STREAM_CUT_H
#define CULPRIT_ANALYZE_STREAM_CUT_H

#include <stdint.h>

#include "analyze/stream_numbers.h"

struct stream_cut;
typedef void stream_piece_fn(void *arg, const uint32_t *text, uint32_t n);

/* Pieces of `shortest` to `longest` references go to fn. */
struct stream_cut *stream_cut_create(const struct stream_numbers *numbers, uint32_t shortest,
	uint32_t longest, stream_piece_fn *fn, void *arg);
void stream_cut_destroy(struct stream_cut *c);

void stream_cut_add(struct stream_cut *c, uint32_t symbol); /* a terminal or a cut; a cut ends it */

#endif
