/*
 * Who may call whom, and how far apart their frames are then, by the code alone: direct calls, with
 * the unwind row of the call site. For paths that nobody has seen (the paper's section 4.1, whose
 * static path maps we make lazily, upwards from the frame in question).
 *
 * Not there are calls through pointers, and jumps to other procedures. A call through a stub is one
 * of the procedure with that name, in whatever image.
 */
#ifndef CULPRIT_CALLS_CALLERS_H
#define CULPRIT_CALLS_CALLERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call_callers;
struct frames;
struct image;

struct call_callers *call_callers_create(void);
void call_callers_destroy(struct call_callers *c); /* takes NULL */

/*
 * Reads the code of an image, once; keys are those of store/edges.h. Images with more than
 * CALLERS_CODE_MOST bytes are left alone, since that takes about a second.
 */
#define CALLERS_CODE_MOST (6 << 20)
void call_callers_add(
	struct call_callers *c, uint64_t key, struct image *im, const struct frames *frames);
bool call_callers_has(const struct call_callers *c, uint64_t key);

struct call_caller {
	uint64_t image, procedure;
	uint32_t down; /* bytes that its frame address is above the callee's */
	uint32_t next; /* of the same callee; CALLERS_NONE */
};
#define CALLERS_NONE UINT32_MAX

/* The lists of callers by address and by name, either may be CALLERS_NONE. */
void call_callers_of(
	const struct call_callers *c, uint64_t image, uint64_t procedure, uint32_t lists[2]);
const struct call_caller *call_callers_get(const struct call_callers *c, uint32_t number);

#endif
