/* What the halves of types share: types.c makes them, types_find.c finds variables. */
#ifndef CULPRIT_IMAGE_TYPES_INTERNAL_H
#define CULPRIT_IMAGE_TYPES_INTERNAL_H

#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"
#include "image/lines_internal.h"
#include "image/types.h"

#include <elfutils/libdw.h>

struct types {
	struct lines *lines;
	struct hmap made;  /* by where a type is described */
	struct hmap named; /* structs by name and size */
	struct strtab names;
	struct arena arena;
	VEC(struct type_variable) variables; /* by address, once they are read */
	bool read;
};

/* The text, kept as long as the types; "" for NULL. */
const char *types_name(struct types *t, const char *name);
/* The type that a thing's DW_AT_type says; NULL when nothing is known of it. */
const struct type *types_of(struct types *t, Dwarf_Die *die);
/* The type that is described here; the name is for one that has none of its own. */
const struct type *types_described(struct types *t, Dwarf_Die *die, const char *name);
/* What a thing of pointer type points to; NULL when it is no pointer, or nothing is known. */
const struct type *types_pointee(struct types *t, Dwarf_Die *die);

#define TYPES_DEPTH 64 /* what no sound file has: deeper nests are cut off */

#endif
