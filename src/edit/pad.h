/*
 * Larger frames: a gap in a function's frame, above what it allocates and below what it saves.
 *
 * The depth of the stack pointer below the frame's address (CFA) is followed through the flow, and
 * must be what the unwind rows say. A frame has its gap at one depth; where the stack pointer is
 * beyond it, the gap is "open", and lies between. Instructions that open or close it move the
 * stack pointer farther, and those that reach over it get other displacements. Where a function
 * calls without any frame the gap is open during the call.
 */
#ifndef CULPRIT_EDIT_PAD_H
#define CULPRIT_EDIT_PAD_H

#include "base/vec.h"
#include "edit/edit_internal.h"

enum pad_kind {
	PAD_DISPLACE, /* `by` is added to the displacement, or to what rsp moves by */
	PAD_BEFORE,   /* `by` is added to rsp before the instruction */
	PAD_AFTER,    /* the same behind it */
	PAD_AROUND,   /* the same before it, and taken back behind */
	PAD_LEA,      /* mov %rbp, %rsp is to be lea by(%rbp), %rsp */
};

struct pad_change {
	uint32_t insn;
	uint8_t kind; /* enum pad_kind */
	int32_t by;
};

struct pad {
	uint32_t gap;                   /* its depth: what is saved at CFA - gap and above stays */
	uint32_t size;                  /* in bytes */
	bool *open;                     /* by instruction: before it */
	VEC(struct pad_change) changes; /* by instruction */
	VEC(uint8_t) words;             /* numbers of the variables that have them, from the top */
};

/* NULL, and constant words, when it cannot be proved that all of the frame is understood. */
struct pad *pad_create(struct edit *e, struct function *f, uint32_t size, const char **why);
struct pad *pad_create_none(const struct flow *flow); /* no gap, for changes of calls */
void pad_destroy(struct pad *p);                      /* takes NULL */

/* Where the address of a label is kept, control goes from a second copy to the first. */
bool pad_keeps_labels(const struct edit *e, const struct flow *flow);

static inline struct pad *pad_of(const struct function *f)
{
	return f->pad || !f->original ? f->pad : f->original->pad;
}

const struct pad_change *pad_change_at(const struct pad *p, uint32_t insn); /* or NULL */

/* The instruction as it is to be, or (PAD_BEFORE, PAD_AFTER) what is added; appends to out. */
void pad_write(const struct edit *e, const struct flow_insn *i, const struct pad_change *c,
	struct buf *out);

#endif
