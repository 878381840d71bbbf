/*
 * Reads the file of bursts (rt/burst.h) while programs write to it, and what is left at the end.
 * Pages that nobody has touched yet are dear, so chunks that were read are used again; what is kept
 * of them is a profile of store/traces.h. Reading trusts nothing: programs may have been killed,
 * and may write anything.
 */
#ifndef CULPRIT_BURST_READER_H
#define CULPRIT_BURST_READER_H

#include <stddef.h>
#include <stdint.h>

#include "burst/map.h"

struct buf;
struct burst_reader;
struct err;

struct burst_sum {
	uint64_t bursts, events, lost; /* lost: bursts or parts of them that found no room */
	uint64_t odd;                  /* words that make no sense */
};

/* The maps must outlive it. */
int burst_reader_create(const char *path, const struct burst_map *maps, size_t n,
	struct burst_reader **out, struct err *e);
void burst_reader_destroy(struct burst_reader *r);

/* Takes the chunks that are full; to be called now and then. */
void burst_reader_drain(struct burst_reader *r);
/* When nobody writes any more: takes what is left, and appends the profile. */
void burst_reader_end(struct burst_reader *r, struct buf *packed, struct burst_sum *sum);

#endif
