/*
 * The key by which machine models know an instruction: its mnemonic and the kinds and sizes of its
 * visible operands, with what else chips tell apart. The generator of the tables
 * (tools/models/generate.cc) and the look-up compute it here. For src/isa and the generator only.
 */
#ifndef CULPRIT_ISA_MODEL_KEY_H
#define CULPRIT_ISA_MODEL_KEY_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stdint.h>

/* What an operand is: five bits. */
enum model_operand {
	MODEL_NONE,
	MODEL_I, /* immediate, or the target of a transfer */
	MODEL_R8,
	MODEL_R16,
	MODEL_R32,
	MODEL_R64,
	MODEL_X,
	MODEL_Y,
	MODEL_Z,
	MODEL_K,
	MODEL_MM,
	MODEL_ST,
	MODEL_S, /* any other register */
	MODEL_M8,
	MODEL_M16,
	MODEL_M32,
	MODEL_M64,
	MODEL_M80,
	MODEL_M128,
	MODEL_M256,
	MODEL_M512,
	MODEL_MO, /* memory of another size */
	MODEL_VX, /* memory by a vector of addresses */
	MODEL_VY,
	MODEL_VZ,
	MODEL_A, /* an address that is only computed */
};

/* Operands in their order from the lowest bits on; above them: */
#define MODEL_OPERANDS 4
#define MODEL_MASKED   (1u << 20) /* by k1 to k7 */
#define MODEL_ZEROED   (1u << 21)
#define MODEL_ROUNDED  (1u << 22) /* by the instruction itself */
#define MODEL_SAME     (1u << 23) /* the last two registers are one */
#define MODEL_LONG     (1u << 24) /* lea of base, index and displacement */
#define MODEL_SCALED   (1u << 25) /* lea with a scaled index */
#define MODEL_EVEX     (1u << 26)
/* Not in the tables of forms; the corrections know them. */
#define MODEL_LOCKED   (1u << 27)
#define MODEL_REPEATED (1u << 28)

#define MODEL_FORM(a, b, c, d) ((a) | (b) << 5 | (c) << 10 | (d) << 15)

static inline unsigned model_register_kind(const ZydisDecodedOperand *op)
{
	switch (ZydisRegisterGetClass(op->reg.value)) {
	case ZYDIS_REGCLASS_GPR8:
		return MODEL_R8;
	case ZYDIS_REGCLASS_GPR16:
		return MODEL_R16;
	case ZYDIS_REGCLASS_GPR32:
		return MODEL_R32;
	case ZYDIS_REGCLASS_GPR64:
		return MODEL_R64;
	case ZYDIS_REGCLASS_XMM:
		return MODEL_X;
	case ZYDIS_REGCLASS_YMM:
		return MODEL_Y;
	case ZYDIS_REGCLASS_ZMM:
		return MODEL_Z;
	case ZYDIS_REGCLASS_MASK:
		return MODEL_K;
	case ZYDIS_REGCLASS_MMX:
		return MODEL_MM;
	case ZYDIS_REGCLASS_X87:
		return MODEL_ST;
	default:
		return MODEL_S;
	}
}

static inline unsigned model_memory_kind(const ZydisDecodedOperand *op)
{
	if (op->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
		return MODEL_A;
	if (op->mem.type == ZYDIS_MEMOP_TYPE_VSIB) {
		switch (ZydisRegisterGetClass(op->mem.index)) {
		case ZYDIS_REGCLASS_XMM:
			return MODEL_VX;
		case ZYDIS_REGCLASS_YMM:
			return MODEL_VY;
		default:
			return MODEL_VZ;
		}
	}
	switch (op->size) {
	case 8:
		return MODEL_M8;
	case 16:
		return MODEL_M16;
	case 32:
		return MODEL_M32;
	case 64:
		return MODEL_M64;
	case 80:
		return MODEL_M80;
	case 128:
		return MODEL_M128;
	case 256:
		return MODEL_M256;
	case 512:
		return MODEL_M512;
	default:
		return MODEL_MO;
	}
}

static inline uint32_t model_address_flags(const ZydisDecodedOperandMem *mem)
{
	uint32_t flags = 0;

	if (mem->type != ZYDIS_MEMOP_TYPE_AGEN || mem->index == ZYDIS_REGISTER_NONE)
		return 0;
	if (mem->base != ZYDIS_REGISTER_NONE && mem->disp.has_displacement && mem->disp.value)
		flags |= MODEL_LONG;
	if (mem->scale > 1)
		flags |= MODEL_SCALED;
	return flags;
}

static inline uint32_t model_prefix_flags(const ZydisDecodedInstruction *in)
{
	uint32_t flags = 0;

	if (in->attributes & ZYDIS_ATTRIB_HAS_LOCK)
		flags |= MODEL_LOCKED;
	if (in->attributes &
		(ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
		flags |= MODEL_REPEATED;
	if (in->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX) {
		flags |= MODEL_EVEX;
		if (in->raw.evex.aaa)
			flags |= MODEL_MASKED;
		if (in->raw.evex.z)
			flags |= MODEL_ZEROED;
		if (in->raw.evex.b && in->raw.modrm.mod == 3)
			flags |= MODEL_ROUNDED;
	}
	return flags;
}

/* The form of an instruction; the mnemonic is the other half of the key. */
static inline uint32_t model_form(
	const ZydisDecodedInstruction *in, const ZydisDecodedOperand *operands)
{
	uint32_t form = model_prefix_flags(in);
	ZydisRegister last = ZYDIS_REGISTER_NONE;
	bool same = false;
	unsigned n = 0;

	for (unsigned i = 0; i < in->operand_count_visible && n < MODEL_OPERANDS; i++) {
		const ZydisDecodedOperand *op = &operands[i];
		unsigned kind = MODEL_I;

		if (op->encoding == ZYDIS_OPERAND_ENCODING_MASK)
			continue;
		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			kind = model_register_kind(op);
			same = op->reg.value == last;
			last = op->reg.value;
		} else if (op->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			kind = model_memory_kind(op);
			form |= model_address_flags(&op->mem);
			last = ZYDIS_REGISTER_NONE;
			same = false;
		}
		form |= kind << 5 * n++;
	}
	return same ? form | MODEL_SAME : form;
}

/* Where a form is not in the tables its figures are those of this one, and so on. */
static inline uint32_t model_wider_form(uint32_t form)
{
	const uint32_t flags[] = {MODEL_SCALED, MODEL_LONG, MODEL_SAME, MODEL_ROUNDED, MODEL_ZEROED,
		MODEL_MASKED, MODEL_EVEX};

	for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++) {
		if (form & flags[i])
			return form & ~flags[i];
	}
	return form;
}

#endif
