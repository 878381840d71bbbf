/*
 * Stacks as a processed profile of the Firefox profiler (profiler.firefox.com; docs-developer of
 * github.com/firefox-devtools/profiler): a thread for each process, the heaviest first.
 *
 * What is stored are sums, so times are made up: samples stand one behind the other, as long as
 * they took together.
 */
#ifndef CULPRIT_EXPORT_FIREFOX_H
#define CULPRIT_EXPORT_FIREFOX_H

#include <stdio.h>

struct stacks;

void firefox_write(const struct stacks *s, const char *name, FILE *out);

#endif
