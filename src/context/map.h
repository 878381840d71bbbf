/*
 * What the numbers in a calling context tree mean (rt/context.h): for each procedure of an edited
 * file where it begins, and which call sites its counts and slots stand for. Whoever reads contexts
 * needs nothing else of the file.
 *
 * Kept as bytes (map.c); reading trusts nothing.
 */
#ifndef CULPRIT_CONTEXT_MAP_H
#define CULPRIT_CONTEXT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"
#include "image/image.h"
#include "store/metrics.h"

struct context_site {
	uint64_t at;     /* the call instruction */
	uint32_t callee; /* of one that is counted: the number of the procedure */
};

struct context_procedure {
	uint64_t start;
	uint32_t site;          /* its first; those that are counted come before those with slots */
	uint16_t counts, slots; /* how many of each */
	uint16_t paths; /* words of a record for its paths (path_words.h), right before it */
	bool tree;      /* one: the root of a tree of them */
};

struct context_map {
	struct image_id id;
	char *path;     /* of the original */
	uint32_t first; /* the number of the first procedure in trees */
	struct metric_names metrics;
	uint32_t stride; /* words of a path, with its metrics; 0: paths are not counted */
	VEC(struct context_procedure) procedures;
	VEC(struct context_site) sites;
};

/* Words before all records that are no counts: of the second metric, unless paths have theirs. */
static inline uint32_t context_map_before(const struct context_map *m)
{
	return m->metrics.n > 1 && !m->stride ? m->metrics.n - 1 : 0;
}

uint64_t context_map_key(const struct context_map *m); /* of the image, store/edges.h */
/* The number of the procedure that starts there, or how many there are. */
size_t context_map_find(const struct context_map *m, uint64_t start);

/* Numbers for so many procedures of an image that other images hardly have, too. */
uint32_t context_map_first(const struct image_id *id, uint32_t procedures);

void context_map_put(const struct context_map *m, struct buf *out);
int context_map_read(struct context_map *m, const void *p, size_t n); /* -EBADMSG */
/* The path of the original, in the bytes of a map that can be read. */
const char *context_map_path(const void *p, size_t n);
void context_map_deinit(struct context_map *m);

#endif
