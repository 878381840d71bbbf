/*
 * A grammar that stands for one sequence: rule 0 is the sequence, the others are what repeats in
 * it. Made online by Sequitur (sequitur.h) or, from a sequence that is there as a whole, by Re-Pair
 * (repair.h).
 *
 * Where the sequence is cut nothing repeats across: what comes before and behind is never joined.
 */
#ifndef CULPRIT_ANALYZE_GRAMMAR_H
#define CULPRIT_ANALYZE_GRAMMAR_H

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

/* By rule how long what it stands for is; UINT32_MAX: longer than `most`, or nothing. To be freed.
 */
uint32_t *grammar_lengths(const struct grammar *g, uint32_t most);
/* What a rule stands for; not nested deeper than it is long. */
void grammar_expand(const struct grammar *g, uint32_t rule, uint32_t **to);
/* The sequence again: its terminals and cuts. */
typedef void grammar_fn(void *arg, uint32_t symbol);
void grammar_each(const struct grammar *g, grammar_fn *fn, void *arg);

void grammar_deinit(struct grammar *g);

#endif
