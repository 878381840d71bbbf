/*
 * Calling contexts as folded stacks: a line for each, the names of its procedures with semicolons
 * between, outermost first, and its own weight. Programs that draw flame graphs read it.
 */
#ifndef CULPRIT_EXPORT_FOLDED_H
#define CULPRIT_EXPORT_FOLDED_H

#include <stdio.h>

struct context_tree;

/* Contexts that weigh nothing themselves are left out. */
void folded_write(const struct context_tree *t, FILE *out);

#endif
