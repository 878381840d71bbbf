/*
 * What pays, in words: rules over the values that one instruction saw.
 *
 * Every rule has its thresholds in one table: how many values it needs, what share of them must be
 * alike, how much of all time must be at stake. Shares are compared by their lower bound,
 * which holds for what the program did (95% confidence) and not only for what was sampled; each
 * advice names it with the number of values.
 */
#ifndef CULPRIT_ANALYZE_ADVICE_H
#define CULPRIT_ANALYZE_ADVICE_H

#include "isa/roles.h"
#include "values/values.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The targets of an indirect transfer, from edge samples; kinds of values end below. */
#define VALUE_TARGET 0x10000u

struct selected_image;

struct value_share {
	uint64_t value;
	uint64_t count, least, most;        /* of the samples: estimate and bounds */
	double share, low, high;            /* of what the program did */
	const struct selected_image *image; /* that a target is in; NULL: unknown */
};

/* Sets the shares from the counts: Wilson's interval around the bounds of the count. */
void value_share_set(struct value_share *v, uint64_t samples);
double value_share_low(uint64_t count, uint64_t samples);

struct advice_list {
	const struct value_share *values; /* by descending count */
	size_t n;
	uint64_t samples; /* 0: there is no list */
};

/* An instruction with all that is known of it. */
struct advice_case {
	const struct roles *roles; /* NULL: no code; then there are no texts either */
	const struct role_texts *texts;
	const char *procedure;
	bool is_stub;      /* of a PLT */
	bool in_code;      /* the procedure has the most frequent source as an immediate */
	bool is_stored;    /* the loop also stores to what it loads */
	bool in_loop;      /* stands in a loop of the procedure */
	uint32_t loop;     /* its instructions, when the branch behind this one closes it */
	uint8_t arguments; /* bit n: the procedure reads argument n before it writes it */
	bool leaves;       /* the target that is most frequent is in another image */
	double hot;        /* share of all samples: of the procedure, for what is about arguments */
	double near;       /* and of the run of code around the instruction, for all else */
	double waits;      /* share of the procedure's samples here and at the next instruction */
	struct advice_list lists[VALUE_KINDS], targets;
	const char *target; /* name of the most frequent target */
};

#define ADVICE_TEXT 320

struct advice {
	unsigned kind;    /* of the list that it is about */
	const char *rule; /* "specialise", "devirtualise", ... */
	char text[ADVICE_TEXT];
};

#define ADVICE_MOST 12
/* At most ADVICE_MOST; returns how many. */
size_t advise(const struct advice_case *c, struct advice out[ADVICE_MOST]);

/* Whether a value can only be an address: nobody specialises for it. */
bool value_is_pointer(uint64_t value);

/* Whether a procedure copies or fills memory, its third argument being the size. */
bool advice_is_copy(const char *procedure);

#endif
