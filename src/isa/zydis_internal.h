/* What the files over Zydis share. */
#ifndef CULPRIT_ISA_ZYDIS_INTERNAL_H
#define CULPRIT_ISA_ZYDIS_INTERNAL_H

#include <Zydis/Zydis.h>
#include <stdint.h>

#include "isa/form.h"

/* An instruction with its operands, as Zydis sees it. */
struct decoded {
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

/* Of the general register that one is a part of; REG_NONE: it is none. */
static inline uint8_t number_of(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64)
		return REG_NONE;
	return (uint8_t)(ZydisRegisterGetId(whole) & 15);
}

/* What isa_decode says of it. */
void insn_of_zydis(const ZydisDecodedInstruction *in, uint64_t address, struct insn *out);

#endif
