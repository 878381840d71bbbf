/*
 * What has to be known of a file's functions before contexts can be counted in it: who calls whom
 * from where, who may be called by others, and who has words to keep a record in.
 */
#ifndef CULPRIT_CONTEXT_SURVEY_H
#define CULPRIT_CONTEXT_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "edit/edit.h"

#define SURVEY_ANYBODY UINT32_MAX

/* A call, or a jump that leaves the function for good. */
struct survey_call {
	uint64_t at;     /* the instruction */
	uint32_t insn;   /* its number */
	uint32_t edge;   /* of a jump, that leaves */
	uint32_t callee; /* number of the function, if it is certain; SURVEY_ANYBODY */
	double often;    /* a guess, of an activation */
	bool jumps;
	bool ends_thread; /* it is pthread_exit */
};

struct survey_function {
	struct edit_function *function;
	bool moved;   /* else nothing can be put into it */
	bool outside; /* may be called by somebody who announces nothing */
	bool wide;    /* may find other procedures in the slot it is called from */
	bool keeps; /* v0 can be had, and v1 if it calls: it has its record, announces its calls */
	bool recorded;         /* it needs its record for more than calls */
	bool counted;          /* calls nobody, and all its callers can count for it */
	uint32_t first, calls; /* the most frequent ones first, by a guess */
};

struct survey {
	struct survey_function *functions; /* as edit_functions lists them */
	size_t n;
	VEC(struct survey_call) calls;
};

/*
 * Takes variables for the functions that need them; all do that are to be measured. `recorded` says
 * of each function whether it needs its record also if it calls nobody; NULL: none does.
 */
void survey_make(struct survey *s, struct edit *e, bool measured, const bool *recorded);
void survey_deinit(struct survey *s);

#endif
