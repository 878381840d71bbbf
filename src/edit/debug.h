/*
 * Debug information (DWARF 2 to 5) that speaks of the new code: what it said of code that was moved
 * is said of where that is now, so that debuggers show lines, functions (also inlined ones),
 * variables and breakpoints where the program really runs.
 *
 * Units stay where they are, and numbers in them are patched; line tables, lists of ranges and
 * lists of locations are written anew behind the old ones. Of old code that is dead nothing is said
 * any more.
 */
#ifndef CULPRIT_EDIT_DEBUG_H
#define CULPRIT_EDIT_DEBUG_H

#include <stddef.h>

struct edit;
struct edit_fragment;

/*
 * After all code is placed. A file without debug information keeps what it has; so does one with
 * some that is not understood (split, damaged): then constant words say why, else it is NULL.
 */
const char *debug_write(struct edit *e, const struct edit_fragment *fragments, size_t n);

/* What is known of that before anything is written. */
const char *debug_judge(const struct edit *e);

#endif
