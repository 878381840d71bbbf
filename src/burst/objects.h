/*
 * The log of allocations (rt/objects.h): made before programs run, and read afterwards. Reading
 * trusts nothing: programs may have been killed, and may write anything.
 */
#ifndef CULPRIT_BURST_OBJECTS_H
#define CULPRIT_BURST_OBJECTS_H

#include <stddef.h>
#include <stdint.h>

#include "edit/returns.h"
#include "store/objects.h"

struct buf;
struct err;

#define OBJECTS_BYTES ((uint64_t)512 << 20) /* usual room */

int burst_objects_create(const char *path, uint64_t bytes, struct err *e);

/* A file that was edited. */
struct burst_image {
	const char *path;
	uint64_t key;
	struct edit_returns returns;
};

struct burst_objects_sum {
	uint64_t objects, touched, lost;
};

/* Those that bursts (a profile of store/traces.h) touched, and how they came to be. */
int burst_objects_read(const char *path, const struct burst_image *images, size_t n,
	const struct buf *traces, struct object_set *out, struct burst_objects_sum *sum,
	struct err *e);
/* The same from its bytes: -EBADMSG. */
int burst_objects_parse(const void *p, size_t size, const struct burst_image *images, size_t n,
	const struct buf *traces, struct object_set *out, struct burst_objects_sum *sum);

#endif
