/*
 * A grammar that stands for one sequence: rule 0 is the sequence, the others are what repeats in
 * it. Made online by Sequitur (sequitur.h) or, from a sequence that is there as a whole, by Re-Pair
 * (repair.h).
 *
 * Where the sequence is cut nothing repeats across: what comes before and behind is never joined.
 */
#ifndef CULPRIT_ANALYZE_GRAMMAR_H
#define CULPRIT_ANALYZE_GRAMMAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

/* A symbol: a terminal, which is below GRAMMAR_RULE; GRAMMAR_RULE and a number; or a cut. */
#define GRAMMAR_RULE (UINT32_C(1) << 30)
#define GRAMMAR_CUT  (UINT32_C(2) << 30)

/* Zeroed at first. */
struct grammar {
	VEC(uint32_t) begins;  /* by rule: its first symbol */
	VEC(uint32_t) symbols; /* of all rules; one that is not used has none */
};

static inline uint32_t grammar_rules(const struct grammar *g)
{
	return (uint32_t)g->begins.n;
}

static inline uint32_t grammar_end(const struct grammar *g, uint32_t rule)
{
	return rule + 1 < g->begins.n ? g->begins.p[rule + 1] : (uint32_t)g->symbols.n;
}

#define grammar_each_symbol(it, g, rule)                                           \
	for (const uint32_t *it = (g)->symbols.p + (g)->begins.p[rule],            \
			    *end_##it = (g)->symbols.p + grammar_end((g), (rule)); \
		it < end_##it; it++)

/*
 * By symbol whether it is joined to the one before it in its rule: whether the two terminals that
 * meet there do so at least so often in the sequence. To be freed.
 */
bool *grammar_joints(const struct grammar *g, uint64_t least);
/* The sequence again: its terminals and cuts; with joints, cut as well where none is. */
typedef void grammar_fn(void *arg, uint32_t symbol);
void grammar_each(const struct grammar *g, const bool *joints, grammar_fn *fn, void *arg);

void grammar_deinit(struct grammar *g);

#endif
