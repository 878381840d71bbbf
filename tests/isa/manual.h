/*
 * What the manual says of an instruction: whether all of its results are defined, and which flags
 * are not. By mnemonic and from the text of the manual rather than from Zydis, whose tables the
 * interpreter's are made from.
 */
#ifndef CULPRIT_TESTS_MANUAL_H
#define CULPRIT_TESTS_MANUAL_H

#include "isa/forms.h"
#include "isa/interp.h"

/* Instructions of programs on general registers, memory and flags: all of them must be known. */
static inline bool manual_is_integer(const struct form *f)
{
	switch (f->in.mnemonic) {
	case ZYDIS_MNEMONIC_CRC32:
	case ZYDIS_MNEMONIC_MOVNTI:
	case ZYDIS_MNEMONIC_LFENCE:
	case ZYDIS_MNEMONIC_MFENCE:
	case ZYDIS_MNEMONIC_SFENCE:
		return true;
	case ZYDIS_MNEMONIC_CPUID:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
		return false;
	default:
		break;
	}
	switch (f->in.meta.category) {
	case ZYDIS_CATEGORY_SYSTEM:
	case ZYDIS_CATEGORY_IO:
	case ZYDIS_CATEGORY_IOSTRINGOP:
	case ZYDIS_CATEGORY_SEGOP:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_X87_ALU:
	case ZYDIS_CATEGORY_FCMOV:
		return false;
	default:
		break;
	}
	switch (f->in.meta.isa_set) {
	case ZYDIS_ISA_SET_I86:
	case ZYDIS_ISA_SET_I186:
	case ZYDIS_ISA_SET_I286REAL:
	case ZYDIS_ISA_SET_I386:
	case ZYDIS_ISA_SET_I486:
	case ZYDIS_ISA_SET_I486REAL:
	case ZYDIS_ISA_SET_PENTIUMREAL:
	case ZYDIS_ISA_SET_PPRO:
	case ZYDIS_ISA_SET_CMOV:
	case ZYDIS_ISA_SET_LONGMODE:
	case ZYDIS_ISA_SET_LAHF:
	case ZYDIS_ISA_SET_FAT_NOP:
	case ZYDIS_ISA_SET_PREFETCH_NOP:
	case ZYDIS_ISA_SET_SSE_PREFETCH:
	case ZYDIS_ISA_SET_PAUSE:
	case ZYDIS_ISA_SET_BMI1:
	case ZYDIS_ISA_SET_BMI2:
	case ZYDIS_ISA_SET_LZCNT:
	case ZYDIS_ISA_SET_POPCNT:
	case ZYDIS_ISA_SET_MOVBE:
	case ZYDIS_ISA_SET_ADOX_ADCX:
	case ZYDIS_ISA_SET_CMPXCHG16B:
		return true;
	default:
		return false;
	}
}

/* Selectors are the system's. */
static inline bool manual_reads_segment(const struct form *f)
{
	for (int i = 0; i < f->in.operand_count_visible; i++) {
		if (f->ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			ZydisRegisterGetClass(f->ops[i].reg.value) == ZYDIS_REGCLASS_SEGMENT)
			return true;
	}
	return false;
}

static inline unsigned manual_operand_bits(const struct form *f)
{
	return f->ops[0].size;
}

/* The count of a shift or rotation, masked as the processor does. */
static inline unsigned manual_shift_count(const struct form *f, const struct native_state *s)
{
	const ZydisDecodedOperand *last = &f->ops[f->in.operand_count_visible - 1];
	uint64_t count =
		last->type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? last->imm.value.u : s->r[FORM_RCX];
	return count & (manual_operand_bits(f) == 64 ? 63 : 31);
}

static inline uint32_t manual_undefined_by_shift(const struct form *f, const struct native_state *s)
{
	unsigned count = manual_shift_count(f, s), bits = manual_operand_bits(f);
	uint32_t flags = count > 1 ? INTERP_OF : 0;
	switch (f->in.mnemonic) {
	case ZYDIS_MNEMONIC_ROL:
	case ZYDIS_MNEMONIC_ROR:
	case ZYDIS_MNEMONIC_RCL:
	case ZYDIS_MNEMONIC_RCR:
		return flags;
	case ZYDIS_MNEMONIC_SHLD:
	case ZYDIS_MNEMONIC_SHRD:
		return count > bits ? INTERP_FLAGS : count ? flags | INTERP_AF : 0;
	default:
		return !count ? 0 : flags | INTERP_AF | (count >= bits ? INTERP_CF : 0);
	}
}

/* The flags that the manual leaves undefined. */
static inline uint32_t manual_undefined_flags(const struct form *f, const struct native_state *s)
{
	switch (f->in.mnemonic) {
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_TEST:
		return INTERP_AF;
	case ZYDIS_MNEMONIC_ANDN:
	case ZYDIS_MNEMONIC_BLSI:
	case ZYDIS_MNEMONIC_BLSR:
	case ZYDIS_MNEMONIC_BLSMSK:
	case ZYDIS_MNEMONIC_BZHI:
		return INTERP_AF | INTERP_PF;
	case ZYDIS_MNEMONIC_BEXTR:
		return INTERP_AF | INTERP_PF | INTERP_SF;
	case ZYDIS_MNEMONIC_BSF:
	case ZYDIS_MNEMONIC_BSR:
		return INTERP_FLAGS & ~INTERP_ZF;
	case ZYDIS_MNEMONIC_BT:
	case ZYDIS_MNEMONIC_BTS:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTC:
		return INTERP_OF | INTERP_SF | INTERP_AF | INTERP_PF;
	case ZYDIS_MNEMONIC_TZCNT:
	case ZYDIS_MNEMONIC_LZCNT:
		return INTERP_OF | INTERP_SF | INTERP_AF | INTERP_PF;
	case ZYDIS_MNEMONIC_DIV:
	case ZYDIS_MNEMONIC_IDIV:
		return INTERP_FLAGS;
	case ZYDIS_MNEMONIC_MUL:
	case ZYDIS_MNEMONIC_IMUL:
		return INTERP_SF | INTERP_ZF | INTERP_AF | INTERP_PF;
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SAR:
	case ZYDIS_MNEMONIC_ROL:
	case ZYDIS_MNEMONIC_ROR:
	case ZYDIS_MNEMONIC_RCL:
	case ZYDIS_MNEMONIC_RCR:
	case ZYDIS_MNEMONIC_SHLD:
	case ZYDIS_MNEMONIC_SHRD:
		return manual_undefined_by_shift(f, s);
	default:
		return 0;
	}
}

/* Results that the manual leaves undefined. */
static inline bool manual_is_undefined(const struct form *f, const struct native_state *s)
{
	switch (f->in.mnemonic) {
	case ZYDIS_MNEMONIC_BSF:
	case ZYDIS_MNEMONIC_BSR:
		return true; /* of zero; which that is the flags tell */
	case ZYDIS_MNEMONIC_BSWAP:
		return manual_operand_bits(f) == 16;
	case ZYDIS_MNEMONIC_SHLD:
	case ZYDIS_MNEMONIC_SHRD:
		return manual_shift_count(f, s) > manual_operand_bits(f);
	default:
		return false;
	}
}

#endif
