/*
 * What branches do, from bursts that begin where time is spent.
 *
 * An execution of an instruction is sampled the likelier the longer it takes. So bursts show too
 * much of what comes after slow executions: a loop that waits for memory half of the time, and then
 * goes other ways, is seen to go these ways too often. How long a single execution took nobody
 * knows, but what an instruction takes on the average is known: its samples over how often it ran.
 * Bursts that began at it are weighted with the inverse of that. Of the instructions of a loop only
 * one or two wait; the others take the same time however slow the turn is, so that after weighting
 * a slow turn counts hardly more than a fast one. (Weights by block alone do not do this: a block
 * as a whole takes longer in a slow turn.)
 *
 * Most instructions never show, as they retire with others, so blocks of them have hardly any
 * bursts: these are weighted, too, such that each block has its share.
 *
 * How often instructions ran must be known for this as far as samples and branches tell it.
 */
#ifndef CULPRIT_ANALYZE_EVEN_H
#define CULPRIT_ANALYZE_EVEN_H

#include "analyze/frequencies.h"

struct err;

/*
 * Gives the evidence of the rows of an image outcomes that are weighted so (evidence.h), by their
 * frequencies and the image's walks. Those that hardly differ from what they had stay as they are;
 * *changed tells, by row.
 */
int even_outcomes(struct selection *sel, const struct selected_image *im,
	struct frequencies_row *rows, size_t n, bool *changed, struct err *e);

#endif
