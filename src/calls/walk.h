/*
 * Call paths from a copy of the stack: from the frame of the interrupted instruction to the root of
 * the thread, by the unwind rows of the images (image/frames.h). Nothing is asked of the process,
 * which may be gone.
 */
#ifndef CULPRIT_CALLS_WALK_H
#define CULPRIT_CALLS_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/frames.h"

struct walk_frame;

/* The registers of a thread, and the bytes of its stack from rsp on; DWARF's numbers. */
struct walk_start {
	uint64_t registers[FRAME_REGISTERS];
	uint32_t known; /* a bit for each register */
	const uint8_t *stack;
	size_t size;
	/* If not NULL, what was found in the same stack before, from the innermost frame to the
	   root. Frames whose return addresses are still there are not looked for again. */
	const struct walk_frame *last;
	size_t nlast;
};

/* The rows of the image that is at an address, and how far it lies from its virtual addresses. */
typedef const struct frames *walk_find_fn(void *arg, uint64_t pc, uint64_t *bias);

struct walk_frame {
	uint64_t pc;  /* the interrupted instruction, or where the call comes back */
	uint64_t cfa; /* 0: not known, of the last one */
	bool exact;   /* not behind a call: interrupted there, by the sample or a signal, or made */
	bool fixed;   /* it is as large whenever it is there: the row counts from rsp */
	bool guessed; /* found by the frame pointer, in code without rows */
};

/* Why there are no more. */
enum walk_end {
	WALK_ROOT,    /* nobody called the last one */
	WALK_CUT,     /* the copy of the stack ends */
	WALK_STRANGE, /* no rows are there for the last one's code */
	WALK_BROKEN,  /* the rows do not fit the stack */
	WALK_DEEP,    /* there is no room for more */
	WALK_ENDS,
};

/* Innermost first; at least one. */
enum walk_end walk_stack(const struct walk_start *start, walk_find_fn *find, void *arg,
	struct walk_frame *out, size_t space, size_t *n);

/*
 * The frame's address by a rule and registers alone, without memory. False when they do not tell.
 */
bool walk_cfa(const struct frames *f, const struct frame_rule *r,
	const uint64_t registers[FRAME_REGISTERS], uint32_t known, uint64_t *cfa);

const char *walk_end_words(enum walk_end end);

#endif
