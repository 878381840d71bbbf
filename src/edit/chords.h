/*
 * Which edges of a graph need counters so that the counts of all others follow (Knuth and
 * Stevenson, BIT 13, 1973; Ball and Larus, TOPLAS 16, 1994): those that are not in a spanning tree.
 * The tree is the heaviest one, so that counters are on the edges that weigh least.
 *
 * One node stands for everything outside, where flow comes from and goes to. If it shall be checked
 * that nothing is lost inside, the edges that touch it are counted, all that can be, although one
 * of them could do without: what came into the procedure and what left it are then known apart, and
 * each part of the graph has a balance.
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
	uint32_t *part; /* by node: the part it is in; what is outside belongs to all */
	bool *balanced; /* by part: all edges between it and the outside are counted */
	uint32_t parts;
};

/*
 * Weights are by edge; a negative one marks an edge that cannot be counted. -ENOSPC when so many
 * cannot that the rest does not follow.
 */
int chords_choose(struct chords *c, const struct graph *g, uint32_t outside, const double *weight,
	bool check);
/* The same from a choice that was made before. -EBADMSG when it is none. */
int chords_recall(struct chords *c, const struct graph *g, uint32_t outside, const bool *counted);
void chords_deinit(struct chords *c);

/*
 * count[] has the counted edges, and gets the others. lost[] says by node how much of what came in
 * did not go on (NULL: nothing anywhere). Returns whether no count is negative; those that would be
 * are set to 0.
 */
bool chords_solve(const struct chords *c, const uint64_t *lost, uint64_t *count);

/* By part: what came in from outside less what went there; 0 where that is not known. */
void chords_balance(const struct chords *c, const uint64_t *count, int64_t *balance);

#endif
