#include "isa/hazards.h"

#include <Zydis/Zydis.h>
#include <stdbool.h>

static bool divides(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_DIV:
	case ZYDIS_MNEMONIC_IDIV:
	case ZYDIS_MNEMONIC_DIVSS:
	case ZYDIS_MNEMONIC_DIVSD:
	case ZYDIS_MNEMONIC_DIVPS:
	case ZYDIS_MNEMONIC_DIVPD:
	case ZYDIS_MNEMONIC_SQRTSS:
	case ZYDIS_MNEMONIC_SQRTSD:
	case ZYDIS_MNEMONIC_SQRTPS:
	case ZYDIS_MNEMONIC_SQRTPD:
	case ZYDIS_MNEMONIC_VDIVSS:
	case ZYDIS_MNEMONIC_VDIVSD:
	case ZYDIS_MNEMONIC_VDIVPS:
	case ZYDIS_MNEMONIC_VDIVPD:
	case ZYDIS_MNEMONIC_VSQRTSS:
	case ZYDIS_MNEMONIC_VSQRTSD:
	case ZYDIS_MNEMONIC_VSQRTPS:
	case ZYDIS_MNEMONIC_VSQRTPD:
	case ZYDIS_MNEMONIC_FDIV:
	case ZYDIS_MNEMONIC_FDIVP:
	case ZYDIS_MNEMONIC_FDIVR:
	case ZYDIS_MNEMONIC_FDIVRP:
	case ZYDIS_MNEMONIC_FIDIV:
	case ZYDIS_MNEMONIC_FIDIVR:
	case ZYDIS_MNEMONIC_FSQRT:
	case ZYDIS_MNEMONIC_FPREM:
	case ZYDIS_MNEMONIC_FPREM1:
		return true;
	default:
		return false;
	}
}

static bool serialises(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_MFENCE:
	case ZYDIS_MNEMONIC_LFENCE:
	case ZYDIS_MNEMONIC_SFENCE:
	case ZYDIS_MNEMONIC_SERIALIZE:
	case ZYDIS_MNEMONIC_CPUID:
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_WRMSR:
	case ZYDIS_MNEMONIC_INVLPG:
	case ZYDIS_MNEMONIC_INVPCID:
	case ZYDIS_MNEMONIC_SWAPGS:
	case ZYDIS_MNEMONIC_STI:
	case ZYDIS_MNEMONIC_CLI:
	case ZYDIS_MNEMONIC_POPFQ:
	case ZYDIS_MNEMONIC_LDMXCSR:
	case ZYDIS_MNEMONIC_VLDMXCSR:
	case ZYDIS_MNEMONIC_WRPKRU:
	case ZYDIS_MNEMONIC_XSAVE:
	case ZYDIS_MNEMONIC_XSAVEC:
	case ZYDIS_MNEMONIC_XRSTOR:
		return true;
	default:
		return false;
	}
}

static bool pauses(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_PAUSE:
	case ZYDIS_MNEMONIC_TPAUSE:
	case ZYDIS_MNEMONIC_UMWAIT:
	case ZYDIS_MNEMONIC_MWAIT:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_RDTSC:
	case ZYDIS_MNEMONIC_RDTSCP:
	case ZYDIS_MNEMONIC_RDRAND:
	case ZYDIS_MNEMONIC_RDSEED:
	case ZYDIS_MNEMONIC_RDMSR:
	case ZYDIS_MNEMONIC_RDPMC:
		return true;
	default:
		return false;
	}
}

/* Moves and logic do not look at what the numbers are. */
static bool computes_floats(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	switch (in->meta.category) {
	case ZYDIS_CATEGORY_X87_ALU:
		return in->mnemonic != ZYDIS_MNEMONIC_FNSTCW &&
		       in->mnemonic != ZYDIS_MNEMONIC_FLDCW;
	case ZYDIS_CATEGORY_SSE:
	case ZYDIS_CATEGORY_AVX:
	case ZYDIS_CATEGORY_AVX512:
	case ZYDIS_CATEGORY_VFMA:
	case ZYDIS_CATEGORY_FMA4:
	case ZYDIS_CATEGORY_CONVERT:
		break;
	default:
		return false;
	}
	for (int i = 0; i < in->operand_count_visible; i++)
		if (ops[i].element_type == ZYDIS_ELEMENT_TYPE_FLOAT32 ||
			ops[i].element_type == ZYDIS_ELEMENT_TYPE_FLOAT64)
			return true;
	return false;
}

static bool exchanges(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	return in->mnemonic == ZYDIS_MNEMONIC_XCHG &&
	       (ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY ||
		       ops[1].type == ZYDIS_OPERAND_TYPE_MEMORY);
}

/* An operand-size prefix in front of an immediate of two bytes (Intel 248966, "Length-Changing
 * Prefixes"); moves to registers are spared on newer cores, but say so nowhere. */
static bool changes_length(const ZydisDecodedInstruction *in)
{
	return in->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE && in->raw.imm[0].size == 16 &&
	       in->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
	       in->meta.category != ZYDIS_CATEGORY_UNCOND_BR;
}

unsigned isa_hazards(const void *code, size_t n)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	ZydisDecoder decoder;
	unsigned set = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!n || ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code, n, &in, ops)))
		return 0;
	if (in.attributes & ZYDIS_ATTRIB_HAS_LOCK || exchanges(&in, ops))
		set |= HAZARD_LOCKED;
	if (divides(in.mnemonic))
		set |= HAZARD_DIVIDES;
	if (computes_floats(&in, ops))
		set |= HAZARD_FLOAT;
	if (serialises(in.mnemonic))
		set |= HAZARD_SERIALISING;
	if (in.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
		set |= HAZARD_REPEATS;
	if (changes_length(&in))
		set |= HAZARD_LENGTH;
	if (pauses(in.mnemonic))
		set |= HAZARD_PAUSES;
	return set;
}
