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

/* What the store must be told. */
struct seen_detail {
	char *name; /* until the store has it */
	struct range ranges[];
};

/* There are tens of thousands of them, and most are never looked at again. */
struct seen_procedure {
	uint64_t start;
	union {
		struct seen_detail *detail;
		uint64_t size; /* of its only range, when that is all that is still needed */
	};
	uint32_t samples; /* up to the last flush that went well; stays at its most */
	uint32_t fresh;   /* since */
	uint32_t nranges;
	uint8_t source; /* enum procedure_source */
	bool detailed : 1;
	bool stored : 1, coded : 1; /* the store has its name, its code (or nothing ever will) */
	bool storing : 1, coding : 1;
};

struct seen_range {
	uint64_t start;
	uint32_t size, procedure;
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

/* Of one without all of its code in the store; an only range may be put into *only. */
const struct range *seen_ranges(const struct seen_procedure *p, struct range *only);
const char *seen_name(const struct seen_procedure *p); /* NULL: none, or the store has it */

void footprint_begin(struct footprint *f);
void footprint_flushed(struct footprint *f);

size_t footprint_memory(const struct footprint *f);

#endif
