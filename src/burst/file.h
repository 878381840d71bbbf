/*
 * The file that edited programs write their bursts to (rt/burst.h): made before they run, and read
 * afterwards. Reading trusts nothing: programs may have been killed, and may write anything.
 */
#ifndef CULPRIT_BURST_FILE_H
#define CULPRIT_BURST_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "burst/map.h"

struct buf;
struct err;

struct burst_rates {
	int64_t check, instr; /* nCheck:nInstr; instr 0: all that runs is one burst */
};
#define BURST_NEVER ((int64_t)1 << 62) /* as nCheck: after the first burst, none */

#define BURST_BYTES ((uint64_t)2 << 30) /* usual room for bursts */

/* Room for so many bytes of bursts. */
int burst_file_create(
	const char *path, const struct burst_rates *rates, uint64_t bytes, struct err *e);

struct burst_sum {
	uint64_t bursts, references, lost; /* lost: bursts or parts of them that found no room */
	uint64_t odd;                      /* references that no map knows */
};

/* Appends what it holds, as a profile of store/traces.h. */
int burst_file_read(const char *path, const struct burst_map *maps, size_t n, struct buf *packed,
	struct burst_sum *sum, struct err *e);

/* The same from its bytes: -EBADMSG. */
int burst_file_parse(const void *p, size_t size, const struct burst_map *maps, size_t n,
	struct buf *packed, struct burst_sum *sum);

#endif
