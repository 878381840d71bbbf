/*
 * Where the entry of each function is in .eh_frame, so that one can be read without the others: by
 * the table that linkers make for unwinders (.eh_frame_hdr, LSB "Exception Frames"), or for want of
 * one by going through the section.
 */
#ifndef CULPRIT_IMAGE_EH_INDEX_H
#define CULPRIT_IMAGE_EH_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct eh_reader;
struct eh_section;
struct elf_file;

struct eh_place {
	uint32_t at;  /* where the function begins, from `low` on */
	uint32_t fde; /* offset of its entry in the section */
};

struct eh_index {
	uint64_t low;
	VEC(struct eh_place) list; /* by address */
};

#define EH_INDEX_NONE SIZE_MAX

/* Of a file, whose section was read. -ENOENT when it has no table that can be used. */
int eh_index_read(const struct elf_file *f, const struct eh_section *s, struct eh_index *out);
/* Of a section, from where the reader stands to its end. */
void eh_index_scan(struct eh_reader *r, struct eh_index *out);
void eh_index_deinit(struct eh_index *x);

/* The last function that begins at or before an address; it may end before it, too. */
size_t eh_index_find(const struct eh_index *x, uint64_t vaddr);

#endif
