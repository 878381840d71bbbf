/*
 * Between the files of edit/pad: where the stack pointer and the frame pointer are.
 */
#ifndef CULPRIT_EDIT_PAD_INTERNAL_H
#define CULPRIT_EDIT_PAD_INTERNAL_H

#include "edit/pad.h"
#include "isa/displace.h"
#include "isa/form.h"

/* What an instruction does; only of those that have to do with rsp or rbp. */
struct view {
	bool touches;
	struct form form;
	struct isa_memory memory;
};

enum {
	DEPTH_UNKNOWN = -1, /* below anything that was known */
	DEPTH_UNSEEN = -2,  /* control never comes here */
	ANCHOR_NONE = 0,
};

/*
 * Before an instruction: how far rsp is below the CFA, and the same of rbp if it was set from rsp
 * (if on some paths only: negative).
 */
struct spot {
	int32_t depth, anchor;
};

/* How the CFA is found before an instruction. */
struct frame_rule {
	uint8_t base; /* REG_RSP, REG_RBP; REG_NONE: nobody says */
	int32_t offset;
};

struct depths {
	const struct edit *e;
	const struct flow *flow;
	struct view *views; /* by instruction, as the next two */
	struct spot *spots;
	struct frame_rule *rules;
};

/* NULL, or why nothing is known. */
const char *depths_find(const struct edit *e, const struct flow *flow, struct depths *out);
void depths_deinit(struct depths *d);

bool depths_is_landing_pad(const struct edit *e, uint64_t address);

/* What an instruction makes of a spot. */
struct spot depths_step(const struct view *v, struct spot s);

static inline bool moves_by_constant(const struct form *f)
{
	return f->to.type == FORM_REGISTER && f->to.reg == REG_RSP && f->to.size == 8 &&
	       (((f->op == FORM_ADD || f->op == FORM_SUBTRACT) && f->from.type == FORM_IMMEDIATE) ||
		       (f->op == FORM_ADDRESS && f->base == REG_RSP && f->index == REG_NONE));
}

/* lea x(%rbp), %rsp and mov %rbp, %rsp */
static inline bool moves_to_anchor(const struct form *f)
{
	return f->to.type == FORM_REGISTER && f->to.reg == REG_RSP && f->to.size == 8 &&
	       ((f->op == FORM_ADDRESS && f->base == REG_RBP && f->index == REG_NONE) ||
		       (f->op == FORM_MOVE && f->from.type == FORM_REGISTER &&
			       f->from.reg == REG_RBP));
}

static inline bool sets_anchor(const struct form *f)
{
	return f->op == FORM_MOVE && f->to.type == FORM_REGISTER && f->to.reg == REG_RBP &&
	       f->to.size == 8 && f->from.type == FORM_REGISTER && f->from.reg == REG_RSP;
}

#endif
