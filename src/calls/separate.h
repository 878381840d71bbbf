/*
 * How a program is to be changed so that a procedure and the height of its frame tell more call
 * paths apart (Mytkowicz, Coughlin and Diwan, OOPSLA 09, section 5). Nothing is edited here: from
 * contexts, and from what can be changed, follow changes and what they would do.
 *
 * In the paper's order: larger frames (5.1), wrapped calls (5.2: some bytes more of stack during
 * calls from one procedure to another), second copies of procedures (5.3: for calls from chosen
 * ones, with a frame size of their own).
 */
#ifndef CULPRIT_CALLS_SEPARATE_H
#define CULPRIT_CALLS_SEPARATE_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEPARATE_NONE UINT32_MAX

/* A path at a height. Its caller is another context, with a lower height. */
struct separate_context {
	uint32_t path;     /* equal: the same call path */
	uint32_t function; /* its innermost */
	uint32_t caller;   /* number, SEPARATE_NONE: it has none */
	uint32_t stack;    /* heights in different ones are never confused */
	int64_t height;
	double weight; /* samples */
};

/* Calls of one function by another that can be changed. */
struct separate_call {
	uint32_t caller, callee;
	bool wraps, clones;
};

struct separate_input {
	const struct separate_context *contexts;
	uint32_t n;
	const bool *pads; /* by function: its frame can be larger */
	uint32_t functions;
	const struct separate_call *calls; /* each pair once */
	uint32_t ncalls;
};

enum separate_method { SEPARATE_PAD, SEPARATE_WRAP, SEPARATE_CLONE, SEPARATE_METHODS };

struct separate_options {
	bool random;     /* the paper's search (5.1.1), of frame sizes only */
	double growth;   /* the deepest stack stays below so many times what it was; 0: any */
	uint64_t budget; /* contexts that are looked at again for one change after another; 0:
			    enough */
	uint64_t seed;
};

/* How much of all is in places (function, height) that only one path has. */
struct separate_state {
	double samples, paths; /* shares of the weights, of the contexts */
	int64_t deepest;
	double mean; /* extra bytes, weighted */
};

struct separate_change {
	enum separate_method method;
	uint32_t function; /* PAD: whose frame; else the callee */
	uint32_t caller;   /* else; SEPARATE_NONE: the frame of the second copy */
	uint32_t bytes;    /* a multiple of 16; CLONE with a caller: 0 */
};

/* Another path is at the context's place. */
enum { SHARED_BEFORE = 1, SHARED_AFTER = 2 };

struct separate_result {
	struct separate_state before, after[SEPARATE_METHODS]; /* after one method after another */
	VEC(struct separate_change) changes;                   /* by method, function, caller */
	int64_t *extra;  /* by context: how much higher it is then */
	uint8_t *shared; /* by context: SHARED bits */
	uint64_t tries, looks;
};

void separate_search(const struct separate_input *in, const struct separate_options *o,
	struct separate_result *out);
void separate_result_deinit(struct separate_result *r);

#endif
