/*
 * Scales that procedures have from each other: how often a procedure is entered is how often it is
 * called, so one whose scale is known tells that of those it calls and of those that call it.
 *
 * Returns that bursts saw (evidence.h) tell who calls whom, and how a procedure's entries are
 * shared out among its callers. What is passed on is passed from the surest to the less sure, each
 * time with the error of the step: that of the calls seen, of the frequencies of both ends relative
 * to their procedures, and of what is not known about any.
 */
#ifndef CULPRIT_ANALYZE_TIES_H
#define CULPRIT_ANALYZE_TIES_H

#include "analyze/frequencies.h"

/* Rows of one image, by procedure; changes those whose scale becomes known. */
void ties_apply(struct frequencies_row *rows, size_t n);

#endif
