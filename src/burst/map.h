/*
 * What the numbers in bursts mean (rt/burst.h): for each place of an edited file that records
 * something, the instruction and what it does.
 *
 * Kept as bytes (map.c); reading trusts nothing.
 */
#ifndef CULPRIT_BURST_MAP_H
#define CULPRIT_BURST_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"
#include "image/image.h"

enum burst_kind { BURST_LOAD = 1, BURST_STORE = 2 }; /* both: it changes what is there */

struct burst_site {
	uint64_t procedure, at; /* where it begins; the instruction */
	uint8_t kind;
	uint16_t size; /* bytes */
};

struct burst_map {
	struct image_id id;
	char *path;     /* of the original */
	uint64_t first; /* the number of the first place */
	uint64_t procedures;
	VEC(struct burst_site) sites;
};

uint64_t burst_map_key(const struct burst_map *m); /* of the image, store/edges.h */
/* Numbers of an image's places, that other images hardly have, too. */
uint64_t burst_map_first(const struct image_id *id);

void burst_map_put(const struct burst_map *m, struct buf *out);
int burst_map_read(struct burst_map *m, const void *p, size_t n); /* -EBADMSG */
/* The path of the original, in the bytes of a map that can be read. */
const char *burst_map_path(const void *p, size_t n);
void burst_map_deinit(struct burst_map *m);

#endif
