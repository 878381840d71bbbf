/* What the halves of source lines share: lines.c and inlines.c. */
#ifndef CULPRIT_IMAGE_LINES_INTERNAL_H
#define CULPRIT_IMAGE_LINES_INTERNAL_H

#include "base/buf.h"
#include "base/hmap.h"
#include "base/vec.h"
#include "image/lines.h"

#include <elfutils/libdwfl.h>
#include <stdbool.h>

/* A source file, each newline replaced by a NUL. */
struct source {
	bool read;
	struct buf text;
	VEC(uint32_t) lines; /* where each begins */
};

/* Code of one function that another was inlined into, which depth: how deep it is nested. */
struct inline_range {
	uint64_t start, end;
	uint32_t depth;
	const char *function, *linkage; /* the inlined one */
	int declared;
	const char *call_file; /* where it was called */
	int call_line;
	unsigned call_discriminator;
};

/* The function that was asked for last; addresses mostly come in order. */
struct inline_function {
	uint64_t start, end; /* of the range that was asked for; none when equal */
	const char *name, *linkage;
	int declared;
	VEC(struct inline_range) ranges;
};

/* Code of a compilation unit. */
struct unit_range {
	uint64_t start, end; /* as in the DWARF file */
	Dwarf_Off unit;      /* of its DIE */
};

struct lines {
	Dwfl *dwfl;
	Dwfl_Module *module;
	GElf_Addr bias;
	struct strtab files;        /* and names of functions */
	VEC(struct source) sources; /* by number of the file */
	struct inline_function function;
	VEC(struct unit_range) units; /* by start */
	bool units_read;
};

/* The compilation unit of an address, and the address as in the DWARF file; false: none. */
bool lines_unit(struct lines *l, uint64_t vaddr, Dwarf_Die *unit, uint64_t *pc);

/* The text, kept as long as the lines; relative to the folder if it is given. */
const char *lines_file(struct lines *l, const char *dir, const char *file);

#endif
