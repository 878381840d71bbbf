/*
 * Which edges of a graph need counters so that the counts of all others follow (Knuth and
 * Stevenson, BIT 13, 1973; Ball and Larus, TOPLAS 16, 1994): those that are not in a spanning tree.
 * The tree is the heaviest one, so that counters are on the edges that weigh least.
 *
 * One node stands for everything outside, where flow comes from and goes to. At some nodes flow may
 * be lost (calls that do not come back), which the counts shall show. So no way that is not counted
 * leads from them to the outside: what hangs together with them by edges that are not counted has
 * counters all around, one more than it needs, and a balance. Where nothing can be lost that is
 * spared; so are the ways through a procedure that calls nobody on them.
 */
#ifndef CULPRIT_EDIT_CHORDS_H
#define CULPRIT_EDIT_CHORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "flow/graph.h"

struct chords {
	const struct graph *graph; /* must outlive it */
	uint32_t outside;
	bool *counted;  /* by edge */
	uint32_t *part; /* by node but the outside: what hangs together by edges not counted */
	bool *balanced; /* by part: it does not hang together with the outside */
	uint32_t parts;
};

/*
 * Weights are by edge; a negative one marks an edge that cannot be counted. loses is by node (NULL:
 * none does). -ENOSPC when so many cannot be counted that the rest does not follow.
 */
int chords_choose(struct chords *c, const struct graph *g, uint32_t outside, const double *weight,
	const bool *loses);
/* The same from a choice that was made before. -EBADMSG when it is none. */
int chords_recall(struct chords *c, const struct graph *g, uint32_t outside, const bool *counted);
void chords_deinit(struct chords *c);

/*
 * count[] has the counted edges, and gets the others. lost[] says by node how much of what came in
 * did not go on (NULL: nothing anywhere). Returns whether no count is negative; those that would be
 * are set to 0.
 */
bool chords_solve(const struct chords *c, const uint64_t *lost, uint64_t *count);

/* By part: what came in less what left it; 0 where that is not known. */
void chords_balance(const struct chords *c, const uint64_t *count, int64_t *balance);

#endif
