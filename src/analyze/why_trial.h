/* What rules know of a stalled instruction, and what they are. */
#ifndef CULPRIT_ANALYZE_WHY_TRIAL_H
#define CULPRIT_ANALYZE_WHY_TRIAL_H

#include "analyze/why_internal.h"

/* A stalled instruction and what is known of it. */
struct why_trial {
	struct why_work *work;
	uint32_t insn;
	const struct why_fact *fact;
	double count, cpi, stall; /* cycles of each execution */
	double known;             /* what the model knows of a slow operation */
	struct why_front front;
	struct why_memory memory;
	enum why_place place; /* of what it loads or stores */
	int64_t stride;
	double left;   /* of the stall: more than all other culprits can have cost */
	uint32_t from; /* whom the rule at work would blame, or GRAPH_NONE */
};

/* The most cycles that the culprit can have cost; INFINITY: no idea. */
typedef double why_law_fn(struct why_trial *t);

struct why_law {
	struct why_rule_words words;
	why_law_fn *fn;
};

/* By number from 0, in the order in which they are applied; NULL: that is all. */
const struct why_law *why_law(size_t i);

#endif
