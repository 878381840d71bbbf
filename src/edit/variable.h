/*
 * Where the variables of snippets are kept in a function: in a register that is dead in all of
 * their blocks and that nobody there touches; or in a word of the stack.
 *
 * A word lies below the stack where nothing is called, in the red zone; or in the gap of a larger
 * frame (pad.h), right below what the function saves. That is below the stack pointer while the
 * frame is not made yet, or is gone again, but still in the red zone: so the word can be used
 * from the first instruction to the last.
 */
#ifndef CULPRIT_EDIT_VARIABLE_H
#define CULPRIT_EDIT_VARIABLE_H

#include "edit/edit_internal.h"

/* From rsp or rbp, as they are before an instruction. */
struct variable_word {
	uint8_t base; /* REG_NONE: control never comes here */
	int32_t offset;
};

struct variable {
	uint8_t number, reg;           /* REG_NONE: a word */
	bool *blocks;                  /* NULL: all of them */
	struct variable_word *by_insn; /* NULL: at the same distance everywhere, `word` */
	struct variable_word word;
};

/* Tells a snippet where the variables are at a place: one that has the stack of an instruction,
 * in a block or on the way from one to another. */
void variables_at(const struct function *f, uint32_t insn, uint32_t from, uint32_t to,
	struct snippet_place *place);
void variables_deinit(struct function *f);

#endif
