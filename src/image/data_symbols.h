/*
 * The data symbols of an ELF file: names of variables where there is no DWARF.
 */
#ifndef CULPRIT_IMAGE_DATA_SYMBOLS_H
#define CULPRIT_IMAGE_DATA_SYMBOLS_H

#include <stdint.h>

#include "base/hmap.h"
#include "base/vec.h"

struct data_symbol {
	uint64_t start, size;
	uint32_t name; /* of names */
};

struct data_symbols {
	VEC(struct data_symbol) list; /* by start; of several at one place the larger last */
	struct strtab names;
};

/* Of .symtab, or .dynsym where there is none; nothing when the file cannot be read. */
void data_symbols_read(struct data_symbols *s, const char *path);
void data_symbols_deinit(struct data_symbols *s);

const struct data_symbol *data_symbols_at(
	const struct data_symbols *s, uint64_t vaddr); /* or NULL */

#endif
