/*
 * The procedures of one image that got samples: what the store has to know of it, and enough to
 * place most samples without the image's own tables, which can be large and are dropped.
 *
 * What a flush adds is provisional until footprint_flushed; footprint_begin takes it back after a
 * flush that failed.
 */
#ifndef CULPRIT_COLLECT_IMAGE_CACHE_FOOTPRINT_H
#define CULPRIT_COLLECT_IMAGE_CACHE_FOOTPRINT_H

#include "base/vec.h"
#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct seen_procedure {
	uint64_t start;
	struct range *ranges;
	uint32_t nranges;
	enum procedure_source source;
	char *name;         /* until the store has it; the ranges until it has the code too */
	uint64_t samples;   /* up to the last flush that went well */
	uint64_t fresh;     /* since */
	bool stored, coded; /* the store has its name, its code (or nothing will ever have it) */
	bool storing, coding;
};

struct seen_range {
	uint64_t start, end;
	uint32_t procedure;
};

struct footprint {
	VEC(struct seen_procedure) procedures;
	VEC(struct seen_range) ranges; /* the first `sorted` by start */
	size_t sorted;
};

void footprint_deinit(struct footprint *f);

/* The number of the procedure that covers an address, or -1. */
ssize_t footprint_find(const struct footprint *f, uint64_t vaddr);
size_t footprint_add(struct footprint *f, const struct procedure *p);

void footprint_begin(struct footprint *f);
void footprint_flushed(struct footprint *f);

size_t footprint_memory(const struct footprint *f);

#endif
