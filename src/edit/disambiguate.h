/*
 * A program whose call paths are told apart by the heights of its stack: frames are made larger,
 * calls wrapped, functions duplicated, as a search over the contexts that were seen says
 * (calls/separate.h; Mytkowicz, Coughlin and Diwan, OOPSLA 09, section 5). Only functions that
 * change are moved.
 */
#ifndef CULPRIT_EDIT_DISAMBIGUATE_H
#define CULPRIT_EDIT_DISAMBIGUATE_H

#include "base/vec.h"
#include "calls/separate.h"
#include "edit/edit.h"

struct err;

/* Why functions on stacks that are confused keep their frames. */
struct disambiguate_reason {
	const char *words;
	uint32_t functions;
	double samples; /* confused ones that have some of these on their stacks, a share of all */
};

/* A change that was made; functions are the edit's. */
struct disambiguate_change {
	enum separate_method method;
	const struct edit_function *function;
	const struct edit_function *caller; /* NULL: of the function's frame */
	uint32_t bytes;
};

struct disambiguated {
	struct separate_state before, after[SEPARATE_METHODS];
	uint32_t contexts, functions; /* functions: of the file, on stacks */
	uint32_t resizable;           /* of them */
	VEC(struct disambiguate_change) changes;
	VEC(struct disambiguate_reason) reasons; /* most samples first */
	uint64_t tries;
};

struct disambiguate_options {
	const char *database;
	bool random;
};

/* Changes the edit, which is to be written then. -ENOENT when the database has no call paths. */
int disambiguate(struct edit *e, const struct disambiguate_options *o, struct disambiguated *out,
	struct err *err);
void disambiguated_deinit(struct disambiguated *d);

#endif
