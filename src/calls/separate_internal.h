/*
 * Between the files of calls/separate: contexts with sizes that change, and which of them are
 * alone.
 */
#ifndef CULPRIT_CALLS_SEPARATE_INTERNAL_H
#define CULPRIT_CALLS_SEPARATE_INTERNAL_H

#include "calls/separate.h"

/* A context; they are in preorder, so all that are called from one lie right behind it. */
struct spot {
	uint32_t path, function, caller, stack, number, end;
	uint32_t call;       /* by which it came; SEPARATE_NONE: by none that can be changed */
	uint32_t next, last; /* others at the same place */
	uint32_t place;
	bool copy;  /* of the second copy */
	bool turns; /* while it moves: to the other copy */
	int64_t height, extra, moves;
	double weight;
};

/* Where contexts cannot be told apart but by their path. */
struct place {
	uint32_t function; /* twice its number, 1 more of a copy */
	uint32_t stack;
	int64_t height;
	double weight;
	uint32_t first, n; /* spots, linked; n 0: the place is free, and the next such is first */
	uint32_t hash;
	bool alone; /* all of them are one path */
};

/* Places are found by open addressing; hashes stand beside their numbers to save looking there. */
struct slot {
	uint32_t hash, place; /* the number + 1; 0: free */
};

/* Numbers of spots, by function or call. */
struct occurrences {
	uint32_t *first, *list;
};

struct separation {
	const struct separate_input *in;
	struct spot *spots;
	struct place *places; /* as many as spots */
	uint32_t nplaces, free;
	struct slot *slots;
	uint32_t mask; /* their number less 1 */
	struct occurrences of_function, of_call;
	uint32_t *pad, *pad_copy, *wrap; /* bytes */
	bool *cloned;                    /* by call */
	double all, samples;             /* weights: of all, of those that are alone */
	uint32_t paths;                  /* spots that are alone */
	int64_t limit;                   /* no height may be above it */
	bool too_deep;                   /* one became so by the last changes */
	uint64_t looks;
};

void separation_init(struct separation *s, const struct separate_input *in);
void separation_deinit(struct separation *s);

/* Something else than it was; what is not allowed must not be asked for. */
struct knob {
	enum separate_method method;
	uint32_t number; /* a function, or a call; of a copy's size: a function, `own` */
	bool own;
	uint32_t value; /* bytes; of a call: whether it goes to the copy */
};
uint32_t separation_get(const struct separation *s, const struct knob *k);
void separation_set(struct separation *s, const struct knob *k);

double separation_score(const struct separation *s);
void separation_state(const struct separation *s, struct separate_state *out);

#endif
