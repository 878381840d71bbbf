/*
 * The procedures of an image, kept small: 16 bytes each and their raw names, packed. A struct
 * procedure with its ranges and its demangled name is made when somebody first asks for it, and
 * lives as long as the table.
 */
#ifndef CULPRIT_IMAGE_PROCEDURES_H
#define CULPRIT_IMAGE_PROCEDURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"
#include "image/image.h"
#include "image/names.h"

struct procedure_row {
	int64_t start : 56; /* no address has more bits that count */
	uint64_t source : 8;
	uint32_t size;
	uint32_t name; /* in names, 0: none */
};

struct fragment_row {
	uint64_t start, size;
	uint32_t owner;
};

struct procedures {
	VEC(struct procedure_row) rows;     /* by start, none overlap */
	VEC(struct fragment_row) fragments; /* by start, none overlap rows or each other */
	VEC(uint32_t) by_owner;             /* the fragments by owner, then start */
	VEC(struct range) areas;            /* where code can be, by start */
	struct names names;
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
void procedures_finish(struct procedures *ps); /* orders fragments, gives back spare memory */

/*
 * The procedure that covers vaddr. Where an area has code that no row covers (padding, mostly) it
 * is a gap from the row before to the row behind, made when asked for.
 */
const struct procedure *procedures_at(struct procedures *ps, uint64_t vaddr);
/* Only where it starts; nothing is made. */
bool procedures_start(const struct procedures *ps, uint64_t vaddr, uint64_t *start);
size_t procedures_all(struct procedures *ps, const struct procedure **out);
void procedures_search(
	struct procedures *ps, image_likes_fn *likes, image_found_fn *found, void *arg);

/* Lets go of the procedures that were made for those who asked: they must be asked for again. */
void procedures_forget(struct procedures *ps);
size_t procedures_memory(const struct procedures *ps);

#endif
