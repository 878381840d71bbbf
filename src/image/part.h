/*
 * A part of the code while the functions of an ELF file are put together: what one FDE, one symbol
 * or one stub covers. functions.c makes them, fragments.c says which belong to others.
 */
#ifndef CULPRIT_IMAGE_PART_H
#define CULPRIT_IMAGE_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "image/image.h"

#define PART_NONE UINT32_MAX

struct part {
	uint64_t start, size;
	const char *name; /* name_size bytes; NULL: none */
	uint16_t name_size;
	uint32_t order; /* of its FDE in .eh_frame, PART_NONE without one */
	uint32_t owner; /* the part that it is a fragment of, PART_NONE for a function */
	uint8_t source; /* enum procedure_source */
	bool midframe;  /* as in struct fde */
};

struct parts {
	VEC(struct part) list; /* by start and without overlaps, once settled */
};

/* Sorts by start and cuts each where the next begins; of those with one start the longest stays. */
void parts_settle(struct parts *ps);

/* The part that covers vaddr, or PART_NONE. */
uint32_t parts_at(const struct parts *ps, uint64_t vaddr);

#endif
