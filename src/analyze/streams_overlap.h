/*
 * How much two profiles of hot data streams have in common: the "exact overlap" of Hirzel and
 * Chilimbi (2001, section 5.2). Addresses differ from run to run, so streams are the same when
 * their access signatures are: the instructions that make the references, in their order. The
 * overlap is the sum of the lesser of the two contributions that each signature makes to its
 * profile, which is all that is in hot streams: so a profile has an overlap of 1 with itself,
 * however much of its trace is in no stream.
 */
#ifndef CULPRIT_ANALYZE_STREAMS_OVERLAP_H
#define CULPRIT_ANALYZE_STREAMS_OVERLAP_H

#include "analyze/streams.h"

double streams_overlap(const struct streams *a, const struct streams *b); /* 0 to 1 */

#endif
