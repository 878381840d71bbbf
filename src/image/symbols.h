/*
 * The function symbols of ELF files, from as many symbol tables as there are.
 */
#ifndef CULPRIT_IMAGE_SYMBOLS_H
#define CULPRIT_IMAGE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "image/elf_file.h"

struct symbol {
	uint64_t start, size;
	const char *name; /* in strings, name_size bytes: without the version */
	uint16_t name_size;
	uint8_t rank;  /* 0 global, 1 weak, 2 local */
	bool function; /* else a label of assembly */
};

struct symbols {
	VEC(struct symbol) list;
	VEC(struct bytes) strings; /* kept for the names */
};
void symbols_deinit(struct symbols *s);

/* Adds the functions of a section's symbol table; one that is damaged adds what is sound. */
void symbols_read_section(struct symbols *s, const struct elf_file *f, const Elf64_Shdr *table);

/* .symtab and .dynsym; without section headers, what PT_DYNAMIC points to. */
void symbols_read_file(struct symbols *s, const struct elf_file *f);

/* Sorts by start and keeps one of each start: the name that people know best. */
void symbols_choose(struct symbols *s);

/*
 * The choice itself, also for kallsyms: below 0 when a is the better name. The lower rank, fewer
 * underscores in front, the shorter, the first in the alphabet.
 */
int symbol_name_compare(int rank_a, const char *a, size_t na, int rank_b, const char *b, size_t nb);

/* The name at an offset of a string table: its length without version, cut at SYMBOL_NAME_MAX. */
#define SYMBOL_NAME_MAX 4096
const char *symbol_name(const struct bytes *strings, uint64_t offset, uint16_t *size);

#endif
