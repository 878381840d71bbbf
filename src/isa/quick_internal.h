/*
 * Between quick.c, which takes instructions apart, and quick_form.c, which says what they do.
 */
#ifndef CULPRIT_ISA_QUICK_INTERNAL_H
#define CULPRIT_ISA_QUICK_INTERNAL_H

#include "isa/form.h"

struct quick {
	uint16_t opcode; /* 0x100 and on: behind 0x0f */
	uint8_t rex, length;
	bool memory;
	uint8_t reg, rm;            /* with what REX adds */
	uint8_t base, index, scale; /* of the memory operand; REG_NONE */
	bool rip;
	uint8_t behind; /* where its displacement ends */
	int32_t displacement;
	uint8_t immediate_size;
	int64_t immediate; /* sign-extended */
};

/* False for what is not known. */
bool quick_take_apart(const uint8_t *code, size_t n, struct quick *q);
enum insn_kind quick_kind(const struct quick *q);

#endif
