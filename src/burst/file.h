/*
 * The file that edited programs write their bursts to (rt/burst.h): made before they run; reader.h
 * reads it.
 */
#ifndef CULPRIT_BURST_FILE_H
#define CULPRIT_BURST_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "rt/burst_rates.h"

struct err;

#define BURST_BYTES ((uint64_t)2 << 30) /* usual room for bursts */

/* Room for so many bytes of bursts; if the rates are fixed, the environment has no say. */
int burst_file_create(const char *path, const struct burst_rates *rates, bool fixed, uint64_t bytes,
	struct err *e);
/* Other rates for the programs that write to a file, while they run. */
int burst_file_set(const char *path, const struct burst_rates *rates, struct err *e);

#endif
