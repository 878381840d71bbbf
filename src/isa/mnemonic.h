/*
 * The names objdump gives to instructions, where they are not those of Zydis; private to this room.
 */
#ifndef CULPRIT_ISA_MNEMONIC_H
#define CULPRIT_ISA_MNEMONIC_H

#include <Zydis/Zydis.h>

#include "isa/decode.h"

struct mnemonic {
	char text[40];
	bool has_predicate; /* the name says what the last immediate operand would say */
};

/* ops are all operands of the instruction, hidden ones too. */
void mnemonic_name(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops,
	enum isa_syntax syntax, struct mnemonic *out);

/* Operations on the memory at rsi, rdi or rbx: written out with the segment though none is coded.
 */
bool mnemonic_is_string(const ZydisDecodedInstruction *in);

/* How many operands objdump writes out, counted from the first. */
int mnemonic_operands(const ZydisDecodedInstruction *in);

#endif
