/*
 * The unwind tables of an edited file: .eh_frame with the original's entries and new ones for the
 * code that was moved, the data of its exceptions (LSDA), and the sorted .eh_frame_hdr.
 *
 * A new entry says for each stretch of new code what the original said for the instruction that it
 * stands for, so that exceptions, backtraces and debuggers see the frames they would have seen.
 * What is not understood is refused here by function, before anything is moved.
 */
#ifndef CULPRIT_EDIT_UNWIND_H
#define CULPRIT_EDIT_UNWIND_H

#include <stddef.h>
#include <stdint.h>

#include "edit/edit.h"

struct buf;
struct elf_file;
struct err;
struct unwind;

/* What was written. */
struct unwind_layout {
	uint64_t lsda, lsda_size; /* data of exceptions; the size may be 0 */
	uint64_t eh_frame, eh_frame_size;
	uint64_t hdr, hdr_size;
};

/*
 * Reads what the file has (with its section headers, elf_file_read_sections); it may go away then.
 * -ENOENT when there is no .eh_frame, -EBADMSG when it is damaged, -ENOTSUP for what no compiler of
 * today writes.
 */
int unwind_create(const struct elf_file *f, struct unwind **out, struct err *e);
void unwind_destroy(struct unwind *u);

/* Why code at this address must not be moved (constant words), or NULL: it may, or has no entry. */
const char *unwind_refusal(const struct unwind *u, uint64_t address);

/*
 * Registers (by bit, as the machine numbers them) that the frames of the function around here are
 * found by: code that is added to it must not even borrow them.
 */
uint16_t unwind_registers(const struct unwind *u, uint64_t address);
/* Registers whose value in the caller lies in the frame, there: whatever is in them, nobody who
 * walks the stack looks. */
uint16_t unwind_saved(const struct unwind *u, uint64_t address);

/*
 * Code that is not the file's, with an .eh_frame of its own: as it would be if the section were at
 * `vaddr`, but the code is `moved` bytes higher. The bytes must live until unwind_write.
 */
void unwind_add(struct unwind *u, const void *frames, size_t n, uint64_t vaddr, uint64_t moved);

/*
 * Appends to out (empty or aligned to 8), whose end is at `address`. Fragments in any order, with
 * nothing in them that is refused. -ERANGE when something lies farther away than 2 GB.
 */
int unwind_write(struct unwind *u, const struct edit_fragment *fragments, size_t n,
	edit_moved_fn *moved, void *arg, uint64_t address, struct buf *out,
	struct unwind_layout *where, struct err *e);

#endif
