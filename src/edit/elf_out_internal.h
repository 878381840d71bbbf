/* What the files of elf_out share. */
#ifndef CULPRIT_EDIT_ELF_OUT_INTERNAL_H
#define CULPRIT_EDIT_ELF_OUT_INTERNAL_H

#include <elf.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/vec.h"
#include "edit/elf_out.h"
#include "edit/note.h"
#include "image/elf_file.h"

enum { PAGE = 4096 };

struct out_segment {
	uint64_t vaddr, size;
	uint32_t flags;
	struct buf bytes; /* fewer than size: the rest is zero */
	bool absent;      /* from the file: all zero */
};

struct out_section {
	char *name;
	uint32_t type;
	uint64_t flags, vaddr, size, align;
};

struct out_symbol {
	char *name;
	uint64_t vaddr, size;
};

/* A section that is not loaded, and what it shall hold; without bytes it gets another name. */
struct out_replaced {
	char *name;
	struct buf bytes;
	bool retired;
};

/* A word that is relocated by where the file is loaded. */
struct out_slot {
	uint64_t at;
	uint64_t rela; /* file offset of its relocation; 0: the word is its own addend (RELR) */
};

struct elf_out {
	char *path;
	mode_t mode;
	struct elf_file file;
	struct buf image; /* the old file, patched */
	uint64_t base;    /* address of file offset 0 */
	uint64_t data, headers, headers_size;
	uint64_t unwind, unwind_size;
	bool is_library;
	bool slots_read;
	struct edit_note note;
	VEC(struct out_slot) slots;
	VEC(uint64_t) moved; /* dynamic symbols that say something else: their addresses */
	VEC(struct out_segment) segments;
	VEC(struct out_section) sections;
	VEC(struct out_symbol) symbols;
	VEC(struct out_replaced) replaced;
};

/* What the dynamic section says under a tag. */
bool out_dynamic(const struct elf_out *o, int64_t tag, uint64_t *value);

/* Where the loader says that a table is (two tags: its address and size), and its file offset. */
struct cursor out_table(const struct elf_out *o, int64_t where, int64_t how_long, uint64_t *offset);

/* File offset of an address in new segments and of the headers. */
static inline uint64_t out_offset(const struct elf_out *o, uint64_t vaddr)
{
	return vaddr - o->base;
}

/*
 * Sections: puts the tables of sections and symbols behind `at` (a file offset) and says in the ELF
 * header where they are; `out` begins at `at`.
 */
void out_sections(struct elf_out *o, Elf64_Ehdr *header, uint64_t at, struct buf *out);

#endif
