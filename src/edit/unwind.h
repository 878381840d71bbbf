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

struct buf;
struct elf_file;
struct err;
struct unwind;

/*
 * New code [at, at + size) stands for the old instruction at `old`: its unwind row and its exception
 * region hold here. rsp is `pushed` bytes lower than it was there.
 */
struct edit_span {
	uint64_t at, old;
	uint32_t size, pushed;
};

/* A contiguous piece of new code; spans ascending, what lies between them is never executed. */
struct edit_fragment {
	uint64_t start, size;
	uint64_t old_start;
	const struct edit_span *spans;
	size_t nspans;
};

/* Where an exception enters in place of the landing pad `old`; 0: the pad was not moved. */
typedef uint64_t edit_moved_fn(void *arg, uint64_t old);

/* What was written, all from the address that was given. */
struct unwind_layout {
	uint64_t lsda, lsda_size; /* data of exceptions; the size may be 0 */
	uint64_t eh_frame, eh_frame_size;
	uint64_t hdr, hdr_size;
};

/* -ENOENT when the file has no .eh_frame, -EBADMSG when it is damaged. The file may go away. */
int unwind_create(const struct elf_file *f, struct unwind **out, struct err *e);
void unwind_destroy(struct unwind *u);

/* Why code at this address must not be moved (a constant), or NULL: it may, or has no entry. */
const char *unwind_refusal(const struct unwind *u, uint64_t address);

/* Fragments in any order. Appends to out, whose start is at `address` (aligned to 8). */
int unwind_write(struct unwind *u, const struct edit_fragment *fragments, size_t n,
	edit_moved_fn *moved, void *arg, uint64_t address, struct buf *out,
	struct unwind_layout *where, struct err *e);

#endif
