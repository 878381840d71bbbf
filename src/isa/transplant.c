#include "isa/transplant.h"

#include <string.h>

#include "isa/zydis_internal.h"

/* ---- what cannot be taken elsewhere ---- */

/* They mean a state of the chip or the kernel that a copy of registers and memory is not. */
static bool is_bound(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_RDFSBASE:
	case ZYDIS_MNEMONIC_RDGSBASE:
	case ZYDIS_MNEMONIC_WRFSBASE:
	case ZYDIS_MNEMONIC_WRGSBASE:
	case ZYDIS_MNEMONIC_WRPKRU:
	case ZYDIS_MNEMONIC_XBEGIN:
	case ZYDIS_MNEMONIC_XEND:
	case ZYDIS_MNEMONIC_XABORT:
	case ZYDIS_MNEMONIC_XTEST:
	case ZYDIS_MNEMONIC_UMONITOR:
	case ZYDIS_MNEMONIC_UMWAIT:
	case ZYDIS_MNEMONIC_TPAUSE:
	case ZYDIS_MNEMONIC_MONITORX:
	case ZYDIS_MNEMONIC_MWAITX:
	case ZYDIS_MNEMONIC_CLZERO: /* store to memory that is no operand */
	case ZYDIS_MNEMONIC_ENQCMD:
	case ZYDIS_MNEMONIC_INCSSPD:
	case ZYDIS_MNEMONIC_INCSSPQ:
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFQ:
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ:
		return true;
	default:
		return false;
	}
}

static bool is_system(const ZydisDecodedInstruction *in)
{
	switch (in->meta.category) {
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSTEM:
	case ZYDIS_CATEGORY_IO:
	case ZYDIS_CATEGORY_IOSTRINGOP:
	case ZYDIS_CATEGORY_SEGOP:
	case ZYDIS_CATEGORY_XSAVE:
	case ZYDIS_CATEGORY_XSAVEOPT:
	case ZYDIS_CATEGORY_GATHER:
	case ZYDIS_CATEGORY_SCATTER:
	case ZYDIS_CATEGORY_AMX_TILE:
		return true;
	default:
		return (in->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) != 0 || is_bound(in->mnemonic);
	}
}

/* Bits of memory are counted from a register, and may be anywhere. */
static bool is_bit_of_memory(const struct decoded *d)
{
	switch (d->in.mnemonic) {
	case ZYDIS_MNEMONIC_BT:
	case ZYDIS_MNEMONIC_BTC:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTS:
		return d->ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		       d->ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
	default:
		return false;
	}
}

/* Segments are the caller's own: his thread-local data is behind one. */
static bool changes_segment(const struct decoded *d)
{
	for (unsigned i = 0; i < d->in.operand_count_visible; i++)
		if (d->ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			ZydisRegisterGetClass(d->ops[i].reg.value) == ZYDIS_REGCLASS_SEGMENT &&
			(d->ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			return true;
	return false;
}

/* ---- the memory operand ---- */

static const ZydisDecodedOperand *memory_of(const struct decoded *d)
{
	for (unsigned i = 0; i < d->in.operand_count_visible; i++)
		if (d->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			return &d->ops[i];
	return NULL;
}

static bool names_hidden_memory(const struct decoded *d)
{
	for (unsigned i = d->in.operand_count_visible; i < d->in.operand_count; i++)
		if (d->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			return true;
	return false;
}

static uint8_t segment_of(const ZydisDecodedOperand *op)
{
	return op->mem.segment == ZYDIS_REGISTER_FS   ? 1
	       : op->mem.segment == ZYDIS_REGISTER_GS ? 2
						      : 0;
}

static void take_address(
	const struct decoded *d, const ZydisDecodedOperand *op, uint64_t ip, struct transplant *out)
{
	ZydisRegister base = op->mem.base;

	out->base = number_of(base);
	out->index = number_of(op->mem.index);
	out->scale = op->mem.scale;
	out->segment = segment_of(op);
	out->narrow = d->in.address_width == 32;
	out->displacement = (uint64_t)op->mem.disp.value;
	if (base == ZYDIS_REGISTER_RIP || base == ZYDIS_REGISTER_EIP)
		out->displacement += ip + d->in.length;
}

/* Zydis says of those that they store, not that they may leave some of it. */
static bool is_masked_by_vector(ZydisMnemonic m)
{
	return m == ZYDIS_MNEMONIC_VMASKMOVPS || m == ZYDIS_MNEMONIC_VMASKMOVPD ||
	       m == ZYDIS_MNEMONIC_VPMASKMOVD || m == ZYDIS_MNEMONIC_VPMASKMOVQ;
}

/* false: it is too large, or no plain place in memory. */
static bool take_memory(
	const struct decoded *d, const ZydisDecodedOperand *op, uint64_t ip, struct transplant *out)
{
	bool masked = (d->in.avx.mask.reg != ZYDIS_REGISTER_NONE &&
			      d->in.avx.mask.reg != ZYDIS_REGISTER_K0) ||
		      is_masked_by_vector(d->in.mnemonic);

	if (op->mem.type != ZYDIS_MEMOP_TYPE_MEM || op->size == 0 || op->size % 8 ||
		op->size / 8 > TRANSPLANT_OPERAND)
		return false;
	take_address(d, op, ip, out);
	out->size = (uint8_t)(op->size / 8);
	out->stores = (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
	out->loads = (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0 || masked ||
		     (op->actions & ZYDIS_OPERAND_ACTION_CONDWRITE) != 0;
	return true;
}

/* ---- the copy ---- */

/* Prefixes about addresses; and a REX in front of another prefix, which means nothing there. */
static bool is_left_out(const struct decoded *d, size_t i, uint8_t byte)
{
	if (i >= d->in.raw.prefix_count)
		return false;
	return byte == 0x67 || byte == 0x64 || byte == 0x65 ||
	       ((byte & 0xf0) == 0x40 && i + 1u < d->in.raw.prefix_count);
}

/*
 * Everything up to the bytes that say where the operand is, without prefixes that do; a
 * displacement from rip; then what stands behind. false: it has become too long for the chip.
 */
static bool copy_moved(const struct decoded *d, const uint8_t *code, struct transplant *out)
{
	size_t modrm = d->in.raw.modrm.offset, n = 0, behind;

	for (size_t i = 0; i < modrm; i++)
		if (!is_left_out(d, i, code[i]))
			out->code[n++] = code[i];
	out->code[n++] = (uint8_t)((code[modrm] & 0x38) | 5);
	out->moved = (uint8_t)n;
	memset(out->code + n, 0, 4);
	n += 4;
	behind = modrm + 1 + (d->in.attributes & ZYDIS_ATTRIB_HAS_SIB ? 1 : 0) +
		 d->in.raw.disp.size / 8;
	memcpy(out->code + n, code + behind, d->in.length - behind);
	n += d->in.length - behind;
	out->ncode = (uint8_t)(n > ZYDIS_MAX_INSTRUCTION_LENGTH ? 0 : n);
	return out->ncode;
}

static void copy_whole(const struct decoded *d, const uint8_t *code, struct transplant *out)
{
	memcpy(out->code, code, d->in.length);
	out->ncode = d->in.length;
}

/* ---- kinds ---- */

static uint8_t take_branch(const struct decoded *d, uint64_t ip, struct transplant *out)
{
	uint8_t opcode = d->in.opcode;

	out->target = ip + d->in.length + (uint64_t)d->in.raw.imm[0].value.s;
	out->condition = opcode & 15;
	if (d->in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && opcode >= 0xe0 && opcode <= 0xe3)
		out->condition = (uint8_t)(TRANSPLANT_LOOPNE + opcode - 0xe0);
	return out->condition >= TRANSPLANT_LOOPNE && d->in.address_width != 64 ? TRANSPLANT_STOP
										: TRANSPLANT_BRANCH;
}

/* A register, or memory of eight bytes. */
static bool take_one(const struct decoded *d, uint64_t ip, struct transplant *out)
{
	const ZydisDecodedOperand *op = &d->ops[0];

	if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
		return op->size == 64 && take_memory(d, op, ip, out);
	out->reg = op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->size == 64
			   ? number_of(op->reg.value)
			   : REG_NONE;
	return out->reg != REG_NONE;
}

static uint8_t take_transfer(const struct decoded *d, uint64_t ip, struct transplant *out)
{
	bool call = d->in.meta.category == ZYDIS_CATEGORY_CALL;

	if (d->in.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || d->in.operand_width == 16)
		return TRANSPLANT_STOP;
	if (d->ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		out->target = ip + d->in.length + (uint64_t)d->in.raw.imm[0].value.s;
		return call ? TRANSPLANT_CALL : TRANSPLANT_JUMP;
	}
	if (!take_one(d, ip, out))
		return TRANSPLANT_STOP;
	return call ? TRANSPLANT_CALL_INDIRECT : TRANSPLANT_JUMP_INDIRECT;
}

static uint8_t take_return(const struct decoded *d, struct transplant *out)
{
	if (d->in.mnemonic != ZYDIS_MNEMONIC_RET || d->in.operand_width == 16 ||
		d->in.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return TRANSPLANT_STOP;
	out->target = d->in.raw.imm[0].size ? d->in.raw.imm[0].value.u : 0;
	return TRANSPLANT_RETURN;
}

static uint8_t take_stack(const struct decoded *d, uint64_t ip, struct transplant *out)
{
	bool push = d->in.mnemonic == ZYDIS_MNEMONIC_PUSH;

	if ((!push && d->in.mnemonic != ZYDIS_MNEMONIC_POP) || d->in.operand_width != 64)
		return TRANSPLANT_STOP;
	if (push && d->ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		out->target = (uint64_t)d->ops[0].imm.value.s;
		return TRANSPLANT_PUSH;
	}
	if (!take_one(d, ip, out))
		return TRANSPLANT_STOP;
	return push ? TRANSPLANT_PUSH : TRANSPLANT_POP;
}

static uint8_t take_string(const struct decoded *d, struct transplant *out)
{
	static const struct {
		ZydisMnemonic mnemonic;
		uint8_t kind, size;
	} known[] = {
		{ZYDIS_MNEMONIC_MOVSB, TRANSPLANT_MOVS, 1},
		{ZYDIS_MNEMONIC_MOVSW, TRANSPLANT_MOVS, 2},
		{ZYDIS_MNEMONIC_MOVSD, TRANSPLANT_MOVS, 4},
		{ZYDIS_MNEMONIC_MOVSQ, TRANSPLANT_MOVS, 8},
		{ZYDIS_MNEMONIC_STOSB, TRANSPLANT_STOS, 1},
		{ZYDIS_MNEMONIC_STOSW, TRANSPLANT_STOS, 2},
		{ZYDIS_MNEMONIC_STOSD, TRANSPLANT_STOS, 4},
		{ZYDIS_MNEMONIC_STOSQ, TRANSPLANT_STOS, 8},
		{ZYDIS_MNEMONIC_LODSB, TRANSPLANT_LODS, 1},
		{ZYDIS_MNEMONIC_LODSW, TRANSPLANT_LODS, 2},
		{ZYDIS_MNEMONIC_LODSD, TRANSPLANT_LODS, 4},
		{ZYDIS_MNEMONIC_LODSQ, TRANSPLANT_LODS, 8},
		{ZYDIS_MNEMONIC_SCASB, TRANSPLANT_SCAS, 1},
		{ZYDIS_MNEMONIC_SCASW, TRANSPLANT_SCAS, 2},
		{ZYDIS_MNEMONIC_SCASD, TRANSPLANT_SCAS, 4},
		{ZYDIS_MNEMONIC_SCASQ, TRANSPLANT_SCAS, 8},
		{ZYDIS_MNEMONIC_CMPSB, TRANSPLANT_CMPS, 1},
		{ZYDIS_MNEMONIC_CMPSW, TRANSPLANT_CMPS, 2},
		{ZYDIS_MNEMONIC_CMPSD, TRANSPLANT_CMPS, 4},
		{ZYDIS_MNEMONIC_CMPSQ, TRANSPLANT_CMPS, 8},
	};

	if (d->in.address_width != 64 ||
		(d->in.attributes & (ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS)))
		return TRANSPLANT_STOP;
	out->repeat = d->in.attributes & ZYDIS_ATTRIB_HAS_REPNE ? TRANSPLANT_REPEAT_NOT
		      : d->in.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE)
			      ? TRANSPLANT_REPEAT
			      : TRANSPLANT_ONCE;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].mnemonic == d->in.mnemonic) {
			out->size = known[i].size;
			return known[i].kind;
		}
	return TRANSPLANT_STOP;
}

static uint8_t take_lea(
	const struct decoded *d, const uint8_t *code, uint64_t ip, struct transplant *out)
{
	const ZydisDecodedOperand *op = &d->ops[1];
	bool relative = op->mem.base == ZYDIS_REGISTER_RIP || op->mem.base == ZYDIS_REGISTER_EIP;

	if (!relative) {
		copy_whole(d, code, out);
		return TRANSPLANT_COPY;
	}
	take_address(d, op, ip, out);
	out->base = out->index = REG_NONE;
	out->segment = 0;
	out->reg = number_of(d->ops[0].reg.value);
	out->reg_size = (uint8_t)(d->ops[0].size / 8);
	return out->reg_size < 4 ? TRANSPLANT_STOP : TRANSPLANT_ADDRESS;
}

static uint8_t take_other(
	const struct decoded *d, const uint8_t *code, uint64_t ip, struct transplant *out)
{
	const ZydisDecodedOperand *op = memory_of(d);

	if (names_hidden_memory(d) || is_bit_of_memory(d) || changes_segment(d))
		return TRANSPLANT_STOP;
	if (!op) {
		copy_whole(d, code, out);
		return TRANSPLANT_COPY;
	}
	if (!(d->in.attributes & ZYDIS_ATTRIB_HAS_MODRM) || !take_memory(d, op, ip, out) ||
		!copy_moved(d, code, out))
		return TRANSPLANT_STOP;
	return TRANSPLANT_COPY;
}

static uint8_t take(
	const struct decoded *d, const uint8_t *code, uint64_t ip, struct transplant *out)
{
	if (is_system(&d->in))
		return TRANSPLANT_STOP;
	switch (d->in.meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		return d->in.operand_width == 16 ? TRANSPLANT_STOP : take_branch(d, ip, out);
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_CALL:
		return take_transfer(d, ip, out);
	case ZYDIS_CATEGORY_RET:
		return take_return(d, out);
	case ZYDIS_CATEGORY_PUSH:
	case ZYDIS_CATEGORY_POP:
		return take_stack(d, ip, out);
	case ZYDIS_CATEGORY_STRINGOP:
		return take_string(d, out);
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
	case ZYDIS_CATEGORY_PREFETCH:
		return TRANSPLANT_SKIP;
	default:
		break;
	}
	switch (d->in.mnemonic) {
	case ZYDIS_MNEMONIC_LEAVE:
		return d->in.operand_width == 64 ? TRANSPLANT_LEAVE : TRANSPLANT_STOP;
	case ZYDIS_MNEMONIC_CLD:
	case ZYDIS_MNEMONIC_STD:
		out->target = d->in.mnemonic == ZYDIS_MNEMONIC_STD;
		return TRANSPLANT_DIRECTION;
	case ZYDIS_MNEMONIC_LEA:
		return take_lea(d, code, ip, out);
	case ZYDIS_MNEMONIC_CLFLUSH:
	case ZYDIS_MNEMONIC_CLFLUSHOPT:
	case ZYDIS_MNEMONIC_CLWB:
		return TRANSPLANT_SKIP;
	default:
		return take_other(d, code, ip, out);
	}
}

void isa_transplant(const void *code, size_t n, uint64_t address, struct transplant *out)
{
	ZydisDecoder decoder;
	struct decoded d;

	*out = (struct transplant){.base = REG_NONE, .index = REG_NONE, .reg = REG_NONE};
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, n, &d.in, d.ops)))
		return;
	out->length = d.in.length;
	out->kind = take(&d, code, address, out);
}
