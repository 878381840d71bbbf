/*
 * The file that edited programs write their bursts to (rt/burst.h): made before they run, and read
 * afterwards. Reading trusts nothing: programs may have been killed, and may write anything.
 */
#ifndef CULPRIT_BURST_FILE_H
#define CULPRIT_BURST_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "burst/map.h"
#include "rt/burst_rates.h"

struct buf;
struct err;

#define BURST_BYTES ((uint64_t)2 << 30) /* usual room for bursts */

/* Room for so many bytes of bursts; if the rates are fixed, the environment has no say. */
int burst_file_create(const char *path, const struct burst_rates *rates, bool fixed, uint64_t bytes,
	struct err *e);
/* Other rates for the programs that write to a file, while they run. */
int burst_file_set(const char *path, const struct burst_rates *rates, struct err *e);

struct burst_sum {
	uint64_t bursts, events, lost; /* lost: bursts or parts of them that found no room */
	uint64_t odd;                  /* words that make no sense */
};

/* Appends what it holds, as a profile of store/traces.h. */
int burst_file_read(const char *path, const struct burst_map *maps, size_t n, struct buf *packed,
	struct burst_sum *sum, struct err *e);

/* The same from its bytes: -EBADMSG. */
int burst_file_parse(const void *p, size_t size, const struct burst_map *maps, size_t n,
	struct buf *packed, struct burst_sum *sum);

#endif
