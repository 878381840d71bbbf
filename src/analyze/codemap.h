/*
 * Which procedure covers an address: the procedures of one image as disjoint ranges in order.
 *
 * Profiles are sorted by offset, so a walk steps along the ranges beside them (a merge join) and
 * looks nothing up while samples stay in one procedure. Where ranges overlap, the one that starts
 * last wins. The map owns its ranges; procedures are numbered as in the list it was made from.
 */
#ifndef CULPRIT_ANALYZE_CODEMAP_H
#define CULPRIT_ANALYZE_CODEMAP_H

#include "image/image.h"

#include <stddef.h>
#include <stdint.h>

#define CODE_NOWHERE UINT32_MAX

struct code_range {
	uint64_t start, end;
	uint32_t procedure;
};

struct code_map {
	struct code_range *ranges;
	size_t n;
};

void code_map_init(struct code_map *m, const struct procedure *list, size_t n);
void code_map_deinit(struct code_map *m);

/* A walk over ascending offsets of an image; others are right too, only slower. */
struct code_walk {
	const struct code_map *map;
	const struct segment *segments, *segment;
	size_t nsegments, at;
};
struct code_walk code_walk_start(
	const struct code_map *m, const struct segment *segments, size_t nsegments);

/* The procedure at a file offset or CODE_NOWHERE; *vaddr is always set. */
uint32_t code_walk_to(struct code_walk *w, uint64_t offset, uint64_t *vaddr);

#endif
