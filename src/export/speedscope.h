/*
 * Stacks as a file of speedscope (www.speedscope.app, its file-format-schema.json): a sampled
 * profile for each process, the heaviest first. A frame is a function, also an inlined one.
 */
#ifndef CULPRIT_EXPORT_SPEEDSCOPE_H
#define CULPRIT_EXPORT_SPEEDSCOPE_H

#include <stdio.h>

struct stacks;

void speedscope_write(const struct stacks *s, const char *name, FILE *out);

#endif
