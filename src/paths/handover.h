/*
 * Where one reading of a metric serves two procedures: a caller reads before it calls and the
 * callee would read again at once, and so when it comes back. Readings are passed on in words of
 * the thread (RT_WORD_CLOCK).
 *
 * A procedure takes the reading at its entry if all who can call it are measured procedures of the
 * file, by name: each leaves one right before. It gives one to its callers if it comes back only by
 * returns of its own, or of procedures that give. Who is called otherwise reads for himself.
 */
#ifndef CULPRIT_PATHS_HANDOVER_H
#define CULPRIT_PATHS_HANDOVER_H

#include "paths/choose.h"

/* By function, as edit_functions lists them. */
struct handover {
	bool *takes, *gives;
};

/* The choosing's scene is used, and its model written to. Without words in threads nobody does. */
void handover_find(struct handover *h, struct choosing *c, const bool *measured);
void handover_deinit(struct handover *h);

/* The function that an instruction calls or jumps to by name, or how many there are. */
size_t handover_callee(const struct exact_scene *s, const struct flow_insn *i);

/* Whether a call is taken apart: the path ends with it. */
bool handover_is_apart(const struct exact_function *f, uint32_t block);

#endif
