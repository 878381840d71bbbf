/*
 * The procedures of an image, kept small: 24 bytes each and their raw names. A struct procedure
 * with its ranges and its demangled name is made when somebody first asks for it, and lives as long
 * as the table.
 */
#ifndef CULPRIT_IMAGE_PROCEDURES_H
#define CULPRIT_IMAGE_PROCEDURES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"
#include "image/image.h"

struct procedure_row {
	uint64_t start;
	uint64_t size : 56, source : 8;
	uint32_t name;     /* in names, 0: none */
	uint32_t fragment; /* the first, plus one; 0: none */
};

struct fragment_row {
	uint64_t start, size;
	uint32_t owner, next; /* next as in procedure_row */
};

struct procedures {
	VEC(struct procedure_row) rows;     /* by start, none overlap */
	VEC(struct fragment_row) fragments; /* by start, none overlap rows or each other */
	VEC(struct range) areas;            /* where code can be, by start */
	struct buf names;
	struct hmap made; /* struct made, by start */
	struct procedure *all;
	struct arena arena;
};

void procedures_deinit(struct procedures *ps);

/* The builders take rows in ascending order; what overlaps the one before is cut or dropped. */
void procedures_add_area(struct procedures *ps, uint64_t start, uint64_t size);
void procedures_add(struct procedures *ps, uint64_t start, uint64_t size,
	enum procedure_source source, const char *name, size_t name_size);
void procedures_add_fragment(struct procedures *ps, uint32_t owner, uint64_t start, uint64_t size);
void procedures_finish(struct procedures *ps); /* links fragments, gives back spare memory */

/*
 * The procedure that covers vaddr. Where an area has code that no row covers (padding, mostly) it
 * is a gap from the row before to the row behind, made when asked for.
 */
const struct procedure *procedures_at(struct procedures *ps, uint64_t vaddr);
size_t procedures_all(struct procedures *ps, const struct procedure **out);
size_t procedures_memory(const struct procedures *ps);

#endif
