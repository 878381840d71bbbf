/*
 * Stacks as a table (RFC 4180): a heading, then a line for each stack with its numbers, where its
 * innermost frame is, and all its procedures.
 */
#ifndef CULPRIT_EXPORT_CSV_H
#define CULPRIT_EXPORT_CSV_H

#include <stdio.h>

struct stacks;

void csv_write(const struct stacks *s, FILE *out);

#endif
