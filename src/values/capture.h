/*
 * Which values of an interpreted instruction are kept: results, chosen operands, addresses,
 * strides, lengths of string operations, and the argument registers at calls.
 */
#ifndef CULPRIT_VALUES_CAPTURE_H
#define CULPRIT_VALUES_CAPTURE_H

#include "isa/interp.h"
#include "values/values.h"

#include <stdbool.h>

#define CAPTURE_PLACES 64 /* instructions of a burst whose last address is remembered */

/* Of one burst. */
struct capture {
	struct {
		uint64_t ip, address;
	} last[CAPTURE_PLACES];
	uint64_t count; /* rcx before the instruction */
	bool goes_on;   /* the instruction is the rest of a long string operation */
};

/* `rcx` is its first value. */
void capture_begin(struct capture *c, uint64_t rcx);

/* `pc` is the instruction, or the entry that was called; `site` the call, 0 where there is none. */
typedef void capture_fn(void *arg, uint64_t pc, unsigned kind, uint64_t site, uint64_t value);

/* After each instruction; m->effect tells what it did. */
void capture_step(struct capture *c, const struct interp *m, capture_fn *fn, void *arg);

#endif
