/*
 * Stacks as a profile of pprof (profile.proto of github.com/google/pprof, compressed with gzip).
 *
 * Addresses are file virtual addresses, as everywhere in culprit, and so are the mappings': those
 * of two images may overlap, and what tells them apart is the mapping of a location.
 */
#ifndef CULPRIT_EXPORT_PPROF_H
#define CULPRIT_EXPORT_PPROF_H

#include <stdio.h>

struct stacks;

void pprof_write(const struct stacks *s, FILE *out);

#endif
