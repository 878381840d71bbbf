#include "isa/decode.h"

#include <errno.h>

#include "isa/quick.h"
#include "isa/zydis_internal.h"

static enum insn_kind classify(const ZydisDecodedInstruction *in)
{
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
		return INSN_TRAP;
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_UIRET:
	case ZYDIS_MNEMONIC_RSM:
	case ZYDIS_MNEMONIC_SYSEXIT:
		return INSN_RETURN;
	case ZYDIS_MNEMONIC_SYSENTER:
		return INSN_SYSCALL;
	case ZYDIS_MNEMONIC_XBEGIN:
		return INSN_BRANCH;
	default:
		break;
	}

	bool direct = in->raw.imm[0].is_relative;
	switch (in->meta.category) {
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (in->meta.branch_type == ZYDIS_BRANCH_TYPE_NONE) /* xabort */
			return INSN_PLAIN;
		return direct ? INSN_JUMP : INSN_JUMP_INDIRECT;
	case ZYDIS_CATEGORY_COND_BR:
		return direct ? INSN_BRANCH : INSN_PLAIN;
	case ZYDIS_CATEGORY_CALL:
		return direct ? INSN_CALL : INSN_CALL_INDIRECT;
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSRET:
		return INSN_RETURN;
	case ZYDIS_CATEGORY_SYSCALL:
		return INSN_SYSCALL;
	case ZYDIS_CATEGORY_INTERRUPT:
		return in->mnemonic == ZYDIS_MNEMONIC_INT ? INSN_SYSCALL : INSN_TRAP;
	default:
		return INSN_PLAIN;
	}
}

static bool is_rip_relative(const ZydisDecodedInstruction *in)
{
	return in->attributes & ZYDIS_ATTRIB_HAS_MODRM &&
	       in->attributes & ZYDIS_ATTRIB_IS_RELATIVE && in->raw.modrm.mod == 0 &&
	       in->raw.modrm.rm == 5;
}

static bool is_filler(const ZydisDecodedInstruction *in)
{
	return in->mnemonic == ZYDIS_MNEMONIC_NOP || in->mnemonic == ZYDIS_MNEMONIC_INT3 ||
	       (in->mnemonic == ZYDIS_MNEMONIC_XCHG && in->opcode == 0x90 &&
		       !(in->attributes & ZYDIS_ATTRIB_HAS_REX));
}

void insn_of_zydis(const ZydisDecodedInstruction *in, uint64_t address, struct insn *out)
{
	struct insn insn = {.address = address, .length = in->length, .kind = classify(in)};
	uint64_t next = address + in->length;

	if (in->raw.imm[0].is_relative)
		insn.target = next + in->raw.imm[0].value.u;
	else if (in->raw.imm[0].size >= 32)
		insn.value = in->raw.imm[0].value.u;
	insn.filler = is_filler(in);
	if (is_rip_relative(in)) {
		insn.relative = true;
		insn.memory = next + (uint64_t)in->raw.disp.value;
		insn.behind = (uint8_t)(in->length - in->raw.disp.offset - 4);
		insn.low = in->address_width == 32;
	}
	if (insn.low)
		insn.memory &= UINT32_MAX;
	*out = insn;
}

/* Sweeps over whole images come through here, so operands are left undecoded. */
int decode_by_zydis(const void *code, size_t n, uint64_t address, struct insn *out)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction in;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!n || ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, NULL, code, n, &in)))
		return -EBADMSG;
	insn_of_zydis(&in, address, out);
	return 0;
}

int isa_decode(const void *code, size_t n, uint64_t address, struct insn *out)
{
	return quick_decode(code, n, address, out) ? 0 : decode_by_zydis(code, n, address, out);
}
