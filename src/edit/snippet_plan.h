/*
 * What the place makes cheapest for a snippet: which registers it uses, what has to be saved,
 * whether memory is changed in one instruction or through a register.
 */
#ifndef CULPRIT_EDIT_SNIPPET_PLAN_H
#define CULPRIT_EDIT_SNIPPET_PLAN_H

#include "edit/snippet_internal.h"

#define PLAN_HELPERS 5 /* at most */

struct saved {
	uint8_t reg, in; /* REG_NONE: in a slot below the stack */
	int32_t slot;
};

struct plan {
	/* What is planned for. */
	const struct snippet *snippet;
	const uint64_t *arguments;
	const struct snippet_place *place;

	bool in_one;                    /* memory is changed by one instruction */
	uint8_t kept_flags;             /* enum form_flag: to be saved */
	uint8_t reg[SNIPPET_REGISTERS]; /* of the machine; REG_NONE: a word of the frame */
	uint16_t helpers;               /* registers for what has no name */
	uint16_t taken;                 /* rax and rdx where somebody needs them: not rdtsc's */
	struct saved saved[SNIPPET_REGISTERS + PLAN_HELPERS];
	unsigned nsaved;
	int32_t lowered; /* rsp is, in the body */
	int32_t reach;   /* what is in use below rsp, in the body */
};

#define PLAN_CLOCK (1u << REG_RAX | 1u << REG_RDX) /* what rdtsc writes */

void plan_make(struct plan *p);

/* Registers that code may borrow: never rsp, and rbp as little, for frames are found by it. */
#define PLAN_CANDIDATES (REGS_ALL & ~(1u << REG_RSP | 1u << REG_RBP))
uint8_t plan_choose(uint16_t set); /* the best of them, or REG_NONE */

/* What an operand without registers amounts to. */
uint64_t plan_sum(const struct plan *p, const struct operand *o);
/* A constant that instructions can hold, also negated. */
bool plan_is_immediate(const struct plan *p, const struct operand *o);
bool plan_is_memory(const struct plan *p, const struct operand *o);
bool plan_in_frame(const struct plan *p, uint8_t reg);

/* A register from which memory is subtracted: no helper is needed. */
bool plan_takes_memory(const struct plan *p, const struct statement *s);

/* Memory of the image whose address an instruction can say, rather than how far it is. */
bool plan_is_absolute(const struct plan *p, const struct operand *o);

bool plan_is_step(const struct plan *p, const struct statement *s); /* by 1 or -1 */
/* Whether the flags of the sum before tell what a comparison with 0 asks: ==, !=, <, >=. */
bool plan_is_told(const struct snippet *s, unsigned statement);

#endif
