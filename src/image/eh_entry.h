/*
 * The entries of an .eh_frame section as they stand there: frame description entries (FDE), each
 * with the common information entry (CIE) that it shares with others. What their instructions mean
 * is in image/cfi.h.
 */
#ifndef CULPRIT_IMAGE_EH_ENTRY_H
#define CULPRIT_IMAGE_EH_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "image/elf_file.h"

struct eh_cie {
	uint64_t offset;     /* of its length field in the section */
	uint8_t pointers;    /* encodings (image/eh_pointer.h) */
	uint8_t lsda;        /* PE_OMIT: FDEs have none */
	uint8_t personality; /* PE_OMIT: none */
	bool augmented;      /* FDEs have augmentation data, too */
	bool signal;         /* frames of signal handlers' callers */
	bool foreign;        /* its augmentation says what we do not know */
	uint64_t routine;    /* the personality: its value before the base is added, ... */
	uint64_t routine_at; /* ... and the address of that field */
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_column;
	struct cursor instructions;
};

struct eh_fde {
	uint64_t offset; /* of its length field in the section */
	uint64_t start, size;
	uint64_t lsda; /* an address, 0: none */
	struct cursor instructions;
};

struct eh_reader {
	struct cursor section, at;
	uint64_t vaddr;  /* of the section */
	bool terminated; /* a terminator ends it; crt files may leave one between others */
	bool damaged;    /* something was left out so far */
	struct eh_cie cie;
};

void eh_reader_init(struct eh_reader *r, const void *p, size_t n, uint64_t vaddr, bool terminated);

/* The next FDE; r->cie is its CIE. Entries that make no sense are left out. False at the end. */
bool eh_reader_next(struct eh_reader *r, struct eh_fde *out);

/* The FDE whose length field is at an offset; false when none is there that makes sense. */
bool eh_reader_at(struct eh_reader *r, uint64_t offset, struct eh_fde *out);

/* The bytes of a file's section. */
struct eh_section {
	struct bytes bytes;
	uint64_t vaddr;
	bool terminated;
};

/* By its section header, or through PT_GNU_EH_FRAME. -ENOENT when it has none. */
int eh_section_read(const struct elf_file *f, struct eh_section *out);

#endif
