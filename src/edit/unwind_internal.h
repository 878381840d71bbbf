/*
 * Between the files of edit/unwind: frames of the original, and pieces of new code that each get
 * an entry of their own.
 */
#ifndef CULPRIT_EDIT_UNWIND_INTERNAL_H
#define CULPRIT_EDIT_UNWIND_INTERNAL_H

#include "base/buf.h"
#include "base/vec.h"
#include "edit/unwind.h"
#include "image/cfi.h"
#include "image/lsda.h"

/* What every compiler and assembler for x86-64 uses; offsets are written as multiples of it. */
enum { DATA_ALIGN = -8 };

struct unwind_cie {
	struct eh_cie cie;
	struct cfi_row initial;
	bool understood;
	uint64_t at; /* the address of the new one */
};

struct unwind_frame {
	struct eh_fde fde;
	uint32_t cie;
	uint16_t registers; /* that its rules are based on, as the machine numbers them */
	const char *refused;
};

struct unwind_area {
	uint64_t vaddr;
	struct bytes bytes;
};

struct unwind_row {
	uint64_t pc; /* up to the next one's */
	struct cfi_row row;
};

struct unwind_rows {
	VEC(struct unwind_row) list;
};

struct unwind {
	bool fixed; /* ET_EXEC: what is absolute is known */
	struct eh_section section;
	VEC(struct unwind_cie) cies;
	VEC(struct unwind_frame) frames; /* by address */
	VEC(struct unwind_area) lsdas;   /* of each segment, from its first one on */
	struct {
		const void *frames;
		size_t n;
		uint64_t vaddr, moved;
	} added; /* code that is not the file's */
};

/* New code of one old frame: [start, end) of spans, the first and the last of which may go beyond.
 */
struct unwind_piece {
	bool twin;
	uint32_t gap, pad;
	uint32_t frame;
	const struct edit_span *spans;
	size_t nspans;
	uint64_t start, end;
	uint64_t lsda; /* the address of the new one, 0: none */
};

struct unwind_frame *unwind_find_frame(const struct unwind *u, uint64_t address); /* or NULL */

struct edit_span unwind_clip(const struct unwind_piece *p, const struct edit_span *s);

/*
 * A pointer that is written again, relative to its place: what it leads to, and its new encoding.
 * An absolute one that the loader fills in is reached through where it stood (`at`). False when it
 * can only be known at run time.
 */
bool unwind_pointer(
	uint8_t encoding, uint64_t raw, uint64_t at, bool fixed, uint8_t *fresh, uint64_t *target);

/* The 4 bytes at `address` that lead to target (0 stays 0); false when it is too far away. */
bool unwind_put_relative(struct buf *out, uint64_t address, uint64_t target);

/* ---- rows (unwind_rows.c) ---- */

/* All rows of a frame; false when there are instructions that are not understood. */
bool unwind_read_rows(
	const struct unwind *u, const struct unwind_frame *f, struct unwind_rows *out);

/* Whether all can be written anew. Adds the registers they are based on, as DWARF numbers them. */
bool unwind_check_rows(const struct unwind_rows *rows, uint32_t *registers);

/* Appends the instructions that bring a piece's rows about. */
void unwind_put_rows(const struct unwind_cie *cie, const struct unwind_rows *rows,
	const struct unwind_piece *piece, struct buf *out);

/* ---- data of exceptions (unwind_lsda.c) ---- */

/* NULL, or why it cannot be written anew. */
const char *unwind_check_lsda(const struct unwind *u, const struct unwind_frame *f);

/* Appends that of a piece, to be at `address`; false when something is too far away. */
bool unwind_put_lsda(const struct unwind *u, const struct unwind_piece *piece, edit_moved_fn *moved,
	void *arg, uint64_t address, struct buf *out);

#endif
