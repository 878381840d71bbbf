/*
 * What the numbers in bursts mean (rt/burst.h): for each point of an edited file where something is
 * recorded, how many words follow its number, and which events they tell. An event is a reference
 * to memory, a call, a path, a value; several may be told by one word, as addresses that differ by
 * a constant are. What the numbers of paths mean, a map of paths says (paths/map.h), which is part
 * of this one.
 *
 * Kept as bytes (map.c); reading trusts nothing.
 */
#ifndef CULPRIT_BURST_MAP_H
#define CULPRIT_BURST_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"
#include "image/image.h"

#define BURST_WORDS   4    /* of a point, at most */
#define BURST_NO_WORD 0x7f /* an event that is told without one */

struct burst_event {
	uint64_t at;   /* the instruction */
	uint8_t kind;  /* TRACE_LOAD and the like, store/traces.h */
	uint8_t word;  /* its address or value is this word, or 0, ... */
	bool thread;   /* ... and the thread pointer ... */
	int64_t by;    /* ... and this */
	uint16_t size; /* bytes */
};

struct burst_point {
	uint64_t procedure; /* where it begins */
	uint32_t first, n;  /* of the events */
	uint8_t words;
};

struct burst_map {
	struct image_id id;
	char *path;     /* of the original */
	uint64_t first; /* the number of the first point */
	uint64_t procedures;
	VEC(struct burst_point) points;
	VEC(struct burst_event) events; /* by point */
	struct buf paths;               /* bytes of a map of paths; none: there are no paths */
};

uint64_t burst_map_key(const struct burst_map *m); /* of the image, store/edges.h */
/* Numbers of an image's points, that other images hardly have, too. */
uint64_t burst_map_first(const struct image_id *id);

void burst_map_put(const struct burst_map *m, struct buf *out);
int burst_map_read(struct burst_map *m, const void *p, size_t n); /* -EBADMSG */
/* The path of the original, in the bytes of a map that can be read. */
const char *burst_map_path(const void *p, size_t n);
void burst_map_deinit(struct burst_map *m);

#endif
