#include <Zydis/Zydis.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "isa/decode.h"
#include "isa/mnemonic.h"

enum { NAME_WIDTH = 6 }; /* mnemonics are padded to this */

struct text {
	char *p;
	size_t n, size;
	enum isa_syntax syntax;
	const ZydisDecodedInstruction *in;
	const ZydisDecodedOperand *ops;
	uint64_t next; /* address of the following instruction */
	isa_namer *namer;
	void *arg;
	uint64_t referred; /* address for the comment behind a rip-relative operand */
	bool refers;
};

static void __attribute__((format(printf, 2, 3))) put(struct text *t, const char *fmt, ...)
{
	size_t left = t->n < t->size ? t->size - t->n : 0;
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(left ? t->p + t->n : NULL, left, fmt, args);
	va_end(args);
	t->n += n > 0 ? (size_t)n : 0;
}

static void put_address(struct text *t, uint64_t address)
{
	char name[512];
	put(t, "%" PRIx64, address);
	if (t->namer && t->namer(t->arg, address, name, sizeof name))
		put(t, " <%s>", name);
}

static void put_signed(struct text *t, int64_t v, bool plus)
{
	uint64_t magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
	put(t, "%s0x%" PRIx64, v < 0 ? "-" : plus ? "+" : "", magnitude);
}

/* ---- prefixes ---- */

static bool uses_address_size(const struct text *t)
{
	for (int i = 0; i < t->in->operand_count; i++) {
		if (t->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
			t->ops[i].encoding != ZYDIS_OPERAND_ENCODING_NONE)
			return true;
	}
	return mnemonic_is_string(t->in) || t->in->mnemonic == ZYDIS_MNEMONIC_JECXZ;
}

static bool uses_segment(const struct text *t, ZydisRegister segment)
{
	for (int i = 0; i < t->in->operand_count; i++) {
		if (t->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY && t->ops[i].mem.segment == segment)
			return true;
	}
	return false;
}

/* Which bits of a REX prefix (W 8, R 4, X 2, B 1) mean something here. */
static unsigned useful_rex(const struct text *t)
{
	const ZydisDecodedInstruction *in = t->in;
	unsigned bits = 0;

	switch (in->meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_POP:
	case ZYDIS_CATEGORY_PUSH:
	case ZYDIS_CATEGORY_UNCOND_BR:
		break;
	case ZYDIS_CATEGORY_RET:
		if (in->mnemonic == ZYDIS_MNEMONIC_RET &&
			in->meta.branch_type != ZYDIS_BRANCH_TYPE_FAR)
			break;
		/* fall through */
	default:
		bits |= in->operand_width == 64 ? 8 : 0;
	}
	if (in->attributes & ZYDIS_ATTRIB_HAS_MODRM)
		bits |= 1;
	if (in->attributes & ZYDIS_ATTRIB_HAS_SIB)
		bits |= 2;
	for (int i = 0; i < in->operand_count; i++) {
		if (t->ops[i].encoding == ZYDIS_OPERAND_ENCODING_MODRM_REG)
			bits |= 4;
		if (t->ops[i].encoding == ZYDIS_OPERAND_ENCODING_OPCODE)
			bits |= 1;
	}
	return bits;
}

static bool has_byte_register(const struct text *t)
{
	for (int i = 0; i < t->in->operand_count_visible; i++) {
		if (t->ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			ZydisRegisterGetClass(t->ops[i].reg.value) == ZYDIS_REGCLASS_GPR8)
			return true;
	}
	return false;
}

static const char *rex_name(const struct text *t, uint8_t value, bool last)
{
	static const char *const names[] = {"rex", "rex.B", "rex.X", "rex.XB", "rex.R", "rex.RB",
		"rex.RX", "rex.RXB", "rex.W", "rex.WB", "rex.WX", "rex.WXB", "rex.WR", "rex.WRB",
		"rex.WRX", "rex.WRXB"};
	unsigned bits = value & 0xf;
	bool useful = bits ? !(bits & ~useful_rex(t)) : has_byte_register(t);
	return last && useful ? NULL : names[bits];
}

static const char *repeat_name(const struct text *t, uint8_t value, ZydisPrefixType type)
{
	uint64_t has = t->in->attributes;
	if (type != ZYDIS_PREFIX_TYPE_IGNORED) {
		if (has & ZYDIS_ATTRIB_HAS_BND)
			return "bnd";
		if (has & ZYDIS_ATTRIB_HAS_XACQUIRE)
			return "xacquire";
		if (has & ZYDIS_ATTRIB_HAS_XRELEASE)
			return "xrelease";
		if (has & ZYDIS_ATTRIB_HAS_REP)
			return "rep";
		if (!(has & (ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)))
			return NULL;
	}
	return value == 0xf3 ? "repz" : "repnz";
}

static const char *segment_name(const struct text *t, uint8_t value)
{
	uint64_t has = t->in->attributes;
	switch (value) {
	case 0x64:
		return uses_segment(t, ZYDIS_REGISTER_FS) ? NULL : "fs";
	case 0x65:
		return uses_segment(t, ZYDIS_REGISTER_GS) ? NULL : "gs";
	case 0x26:
		return "es";
	case 0x36:
		return "ss";
	case 0x2e:
		return has & ZYDIS_ATTRIB_HAS_BRANCH_NOT_TAKEN ? NULL : "cs";
	default:
		return has & ZYDIS_ATTRIB_HAS_BRANCH_TAKEN ? NULL
		       : has & ZYDIS_ATTRIB_HAS_NOTRACK    ? "notrack"
							   : "ds";
	}
}

/* What objdump prints for a prefix byte: nothing when its meaning shows elsewhere. */
static const char *prefix_name(const struct text *t, int i)
{
	uint8_t value = t->in->raw.prefixes[i].value;
	ZydisPrefixType type = t->in->raw.prefixes[i].type;

	switch (value) {
	case 0xf0:
		return "lock";
	case 0xf2:
	case 0xf3:
		return repeat_name(t, value, type);
	case 0x66:
		return type == ZYDIS_PREFIX_TYPE_MANDATORY ||
				       (type == ZYDIS_PREFIX_TYPE_EFFECTIVE &&
					       t->in->operand_width == 16)
			       ? NULL
			       : "data16";
	case 0x67:
		return type == ZYDIS_PREFIX_TYPE_EFFECTIVE && uses_address_size(t) ? NULL
										   : "addr32";
	default:
		return (value & 0xf0) == 0x40 ? rex_name(t, value, i == t->in->raw.prefix_count - 1)
					      : segment_name(t, value);
	}
}

static void put_prefixes(struct text *t)
{
	for (int i = 0; i < t->in->raw.prefix_count; i++) {
		const char *name = prefix_name(t, i);
		if (name)
			put(t, "%s ", name);
	}
}

/* ---- operands ---- */

static void put_register(struct text *t, ZydisRegister reg, bool coded)
{
	const char *percent = t->syntax == ISA_ATT ? "%" : "";
	ZydisRegisterClass class = ZydisRegisterGetClass(reg);
	int id = ZydisRegisterGetId(reg);

	if (class == ZYDIS_REGCLASS_X87 && coded)
		put(t, "%sst(%d)", percent, id);
	else if (class == ZYDIS_REGCLASS_X87)
		put(t, "%sst", percent);
	else if (class == ZYDIS_REGCLASS_DEBUG && t->syntax == ISA_ATT)
		put(t, "%%db%d", id);
	else
		put(t, "%s%s", percent, ZydisRegisterGetString(reg));
}

static void put_immediate(struct text *t, const ZydisDecodedOperand *op)
{
	if (op->imm.is_relative) {
		put_address(t, t->next + op->imm.value.u);
		return;
	}
	uint64_t v = op->imm.value.u;
	if (op->imm.is_signed && t->in->operand_width < 64)
		v &= ((uint64_t)1 << t->in->operand_width) - 1;
	if (op->visibility == ZYDIS_OPERAND_VISIBILITY_IMPLICIT) /* shl eax,1 */
		put(t, "%" PRIu64, v);
	else
		put(t, "%s0x%" PRIx64, t->syntax == ISA_ATT ? "$" : "", v);
}

/* An index that is none is still written where the encoding has room for one. */
static bool has_empty_index(const struct text *t, const ZydisDecodedOperand *op)
{
	return t->in->attributes & ZYDIS_ATTRIB_HAS_SIB &&
	       op->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM &&
	       op->mem.index == ZYDIS_REGISTER_NONE &&
	       (t->in->raw.sib.scale ||
		       (op->mem.base != ZYDIS_REGISTER_NONE && t->in->raw.sib.base != 4));
}

static const char *index_name(const struct text *t, const ZydisDecodedOperand *op)
{
	if (op->mem.index != ZYDIS_REGISTER_NONE)
		return ZydisRegisterGetString(op->mem.index);
	if (has_empty_index(t, op))
		return t->in->address_width == 64 ? "riz" : "eiz";
	return NULL;
}

static unsigned index_scale(const struct text *t, const ZydisDecodedOperand *op)
{
	return op->mem.scale ? op->mem.scale : 1u << t->in->raw.sib.scale;
}

static void put_segment(struct text *t, const ZydisDecodedOperand *op)
{
	ZydisRegister s = op->mem.segment;
	bool shown = mnemonic_is_string(t->in) || s == ZYDIS_REGISTER_FS || s == ZYDIS_REGISTER_GS;
	if (shown)
		put(t, "%s%s:", t->syntax == ISA_ATT ? "%" : "", ZydisRegisterGetString(s));
}

static void note_reference(struct text *t, const ZydisDecodedOperand *op)
{
	if (op->mem.base != ZYDIS_REGISTER_RIP && op->mem.base != ZYDIS_REGISTER_EIP)
		return;
	t->refers = true;
	t->referred = t->next + (uint64_t)op->mem.disp.value;
	if (t->in->address_width == 32)
		t->referred &= UINT32_MAX;
}

static void put_att_memory(struct text *t, const ZydisDecodedOperand *op)
{
	const char *base = op->mem.base ? ZydisRegisterGetString(op->mem.base) : NULL;
	const char *index = index_name(t, op);

	put_segment(t, op);
	if (!base && !index) {
		put(t, "0x%" PRIx64, (uint64_t)op->mem.disp.value);
		return;
	}
	if (op->mem.disp.has_displacement || !base)
		put_signed(t, op->mem.disp.value, false);
	put(t, "(%s%s", base ? "%" : "", base ? base : "");
	if (index)
		put(t, ",%%%s,%u", index, index_scale(t, op));
	put(t, ")");
}

/* Where objdump disagrees with the size in the instruction tables; NULL where it does not. */
static const char *odd_intel_size(const ZydisDecodedInstruction *in)
{
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_ENQCMD:
	case ZYDIS_MNEMONIC_ENQCMDS:
	case ZYDIS_MNEMONIC_INVPCID:
	case ZYDIS_MNEMONIC_LDDQU:
	case ZYDIS_MNEMONIC_LGDT:
	case ZYDIS_MNEMONIC_LIDT:
	case ZYDIS_MNEMONIC_MOVDIR64B:
	case ZYDIS_MNEMONIC_SGDT:
	case ZYDIS_MNEMONIC_SIDT:
	case ZYDIS_MNEMONIC_VLDDQU:
		return "";
	case ZYDIS_MNEMONIC_CLFLUSH:
	case ZYDIS_MNEMONIC_CLFLUSHOPT:
	case ZYDIS_MNEMONIC_CLWB:
		return "BYTE PTR ";
	case ZYDIS_MNEMONIC_CMPXCHG16B:
	case ZYDIS_MNEMONIC_INVEPT:
	case ZYDIS_MNEMONIC_INVVPID:
		return "OWORD PTR ";
	default:
		return in->raw.disp.size == 64 ? "" : NULL;
	}
}

static const char *intel_size(const struct text *t, const ZydisDecodedOperand *op)
{
	static const struct {
		uint16_t bits;
		const char *whole, *one; /* one: an element that is broadcast */
	} sizes[] = {{8, "BYTE PTR ", "BYTE PTR "}, {16, "WORD PTR ", "WORD BCST "},
		{32, "DWORD PTR ", "DWORD BCST "}, {48, "FWORD PTR ", NULL},
		{64, "QWORD PTR ", "QWORD BCST "}, {80, "TBYTE PTR ", NULL},
		{128, "XMMWORD PTR ", NULL}, {256, "YMMWORD PTR ", NULL},
		{512, "ZMMWORD PTR ", NULL}};
	bool one = t->in->avx.broadcast.mode && !t->in->avx.broadcast.is_static;
	const char *odd = odd_intel_size(t->in);

	if (odd || op->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
		return odd ? odd : "";
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		if (sizes[i].bits == op->size)
			return one && sizes[i].one ? sizes[i].one : sizes[i].whole;
	}
	return "";
}

static void put_intel_memory(struct text *t, const ZydisDecodedOperand *op)
{
	const char *base = op->mem.base ? ZydisRegisterGetString(op->mem.base) : NULL;
	const char *index = index_name(t, op);

	put(t, "%s", intel_size(t, op));
	put_segment(t, op);
	if (!base && !index) {
		bool bare = op->mem.segment == ZYDIS_REGISTER_DS;
		put(t, "%s0x%" PRIx64, bare ? "ds:" : "", (uint64_t)op->mem.disp.value);
		return;
	}
	put(t, "[%s", base ? base : "");
	if (index)
		put(t, "%s%s*%u", base ? "+" : "", index, index_scale(t, op));
	if (op->mem.base == ZYDIS_REGISTER_RIP) /* never negative, to objdump */
		put(t, "+0x%" PRIx64, (uint64_t)op->mem.disp.value);
	else if (op->mem.disp.has_displacement || !base)
		put_signed(t, op->mem.disp.value, true);
	put(t, "]");
}

static void put_broadcast(struct text *t)
{
	static const char *const names[] = {[ZYDIS_BROADCAST_MODE_1_TO_2] = "{1to2}",
		[ZYDIS_BROADCAST_MODE_1_TO_4] = "{1to4}",
		[ZYDIS_BROADCAST_MODE_1_TO_8] = "{1to8}",
		[ZYDIS_BROADCAST_MODE_1_TO_16] = "{1to16}",
		[ZYDIS_BROADCAST_MODE_1_TO_32] = "{1to32}"};
	ZydisBroadcastMode mode = t->in->avx.broadcast.mode;
	if (t->in->avx.broadcast.is_static || mode >= sizeof names / sizeof *names || !names[mode])
		return;
	if (t->syntax == ISA_ATT)
		put(t, "%s", names[mode]);
}

static void put_memory(struct text *t, const ZydisDecodedOperand *op)
{
	note_reference(t, op);
	if (t->syntax == ISA_ATT)
		put_att_memory(t, op);
	else
		put_intel_memory(t, op);
	put_broadcast(t);
}

/* Masks as destinations are always zeroed, which goes without saying. */
static void put_mask(struct text *t)
{
	ZydisRegister k = t->in->avx.mask.reg;
	bool zeroing = t->in->avx.mask.mode == ZYDIS_MASK_MODE_ZEROING &&
		       !(t->ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			       ZydisRegisterGetClass(t->ops[0].reg.value) == ZYDIS_REGCLASS_MASK);
	if (k == ZYDIS_REGISTER_NONE || k == ZYDIS_REGISTER_K0)
		return;
	put(t, "{");
	put_register(t, k, true);
	put(t, "}%s", zeroing ? "{z}" : "");
}

static void put_rounding(struct text *t)
{
	static const char *const names[] = {[ZYDIS_ROUNDING_MODE_RN] = "{rn-sae}",
		[ZYDIS_ROUNDING_MODE_RD] = "{rd-sae}",
		[ZYDIS_ROUNDING_MODE_RU] = "{ru-sae}",
		[ZYDIS_ROUNDING_MODE_RZ] = "{rz-sae}"};
	ZydisRoundingMode mode = t->in->avx.rounding.mode;
	put(t, "%s", mode ? names[mode] : "{sae}");
}

/* Ports are written as if dx were an address. */
static bool is_port(const struct text *t, const ZydisDecodedOperand *op)
{
	return op->reg.value == ZYDIS_REGISTER_DX && t->syntax == ISA_ATT &&
	       (t->in->meta.category == ZYDIS_CATEGORY_IO ||
		       t->in->meta.category == ZYDIS_CATEGORY_IOSTRINGOP);
}

/* Of the register moved to a segment register only 16 bits count; objdump shows 32. */
static ZydisRegister shown_register(const struct text *t, const ZydisDecodedOperand *op)
{
	ZydisRegister reg = op->reg.value;
	if (t->in->mnemonic != ZYDIS_MNEMONIC_MOV || t->in->opcode != 0x8e ||
		ZydisRegisterGetClass(reg) != ZYDIS_REGCLASS_GPR16)
		return reg;
	return ZydisRegisterEncode(ZYDIS_REGCLASS_GPR32, (ZyanU8)ZydisRegisterGetId(reg));
}

static void put_operand(struct text *t, const ZydisDecodedOperand *op)
{
	bool indirect = t->in->meta.branch_type && t->syntax == ISA_ATT;
	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		put(t, "%s%s", indirect ? "*" : "", is_port(t, op) ? "(" : "");
		put_register(t, shown_register(t, op), op->encoding != ZYDIS_OPERAND_ENCODING_NONE);
		put(t, "%s", is_port(t, op) ? ")" : "");
		break;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		put(t, "%s", indirect ? "*" : "");
		put_memory(t, op);
		break;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		put_immediate(t, op);
		break;
	default:
		break;
	}
	if (op == t->ops)
		put_mask(t);
}

/* ---- the whole ---- */

enum { MOST_SHOWN = ZYDIS_MAX_OPERAND_COUNT + 1 };

static bool is_shown(const struct text *t, const ZydisDecodedOperand *op, bool has_predicate)
{
	bool immediate = op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	if (op->encoding == ZYDIS_OPERAND_ENCODING_MASK)
		return false;
	if (t->in->meta.category == ZYDIS_CATEGORY_WIDENOP)
		return op == t->ops;
	if (immediate && has_predicate)
		return false;
	if (t->in->mnemonic == ZYDIS_MNEMONIC_FUCOMP && op == t->ops)
		return false; /* the top of the stack, as in all other comparisons */
	if (immediate && op->visibility == ZYDIS_OPERAND_VISIBILITY_IMPLICIT)
		return t->syntax == ISA_INTEL;
	return true;
}

/* The operands in Intel's order; NULL stands for the rounding mode. */
static int choose_operands(
	const struct text *t, bool has_predicate, const ZydisDecodedOperand **shown)
{
	int n = 0, count = mnemonic_operands(t->in);
	bool rounds = t->in->avx.rounding.mode || t->in->avx.has_sae;

	for (int i = 0; i < count; i++) {
		const ZydisDecodedOperand *op = &t->ops[i];
		if (rounds && op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
			shown[n++] = NULL;
			rounds = false;
		}
		if (is_shown(t, op, has_predicate))
			shown[n++] = op;
	}
	if (rounds)
		shown[n++] = NULL;
	return n;
}

static void put_operands(struct text *t, bool has_predicate)
{
	const ZydisDecodedOperand *shown[MOST_SHOWN];
	int n = choose_operands(t, has_predicate, shown);
	bool turned = t->syntax == ISA_ATT && t->in->mnemonic != ZYDIS_MNEMONIC_ENTER;
	for (int i = 0; i < n; i++) {
		const ZydisDecodedOperand *op = shown[turned ? n - 1 - i : i];
		bool attached = !op && t->syntax == ISA_INTEL;
		put(t, "%s", attached ? "" : i ? "," : " ");
		if (op)
			put_operand(t, op);
		else
			put_rounding(t);
	}
}

/* 66 90 exchanges ax with itself, to objdump; everybody else calls it a nop. */
static bool is_wide_nop(const ZydisDecodedInstruction *in)
{
	return in->mnemonic == ZYDIS_MNEMONIC_NOP && in->opcode == 0x90 &&
	       in->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE;
}

static void put_padded(struct text *t, const char *name)
{
	put(t, "%s", name);
	if (t->n < NAME_WIDTH)
		put(t, "%*s", (int)(NAME_WIDTH - t->n), "");
}

static void drop_padding(struct text *t)
{
	while (t->n && t->n < t->size && t->p[t->n - 1] == ' ')
		t->p[--t->n] = 0;
}

static void put_instruction(struct text *t)
{
	struct mnemonic name;
	put_prefixes(t);
	if (is_wide_nop(t->in)) {
		put_padded(t, "xchg");
		put(t, t->syntax == ISA_ATT ? " %%ax,%%ax" : " ax,ax");
		return;
	}
	mnemonic_name(t->in, t->ops, t->syntax, &name);
	put_padded(t, name.text);
	put_operands(t, name.has_predicate);
	drop_padding(t);
	if (t->refers) {
		put(t, "        # ");
		put_address(t, t->referred);
	}
}

size_t isa_text(const void *code, size_t n, uint64_t address, enum isa_syntax syntax,
	isa_namer *namer, void *arg, char *text, size_t size)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];

	if (size)
		text[0] = 0;
	if (!n)
		return 0;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code, n, &in, ops))) {
		snprintf(text, size, "(bad)");
		return 1;
	}
	struct text t = {.p = text,
		.size = size,
		.syntax = syntax,
		.in = &in,
		.ops = ops,
		.next = address + in.length,
		.namer = namer,
		.arg = arg};
	put_instruction(&t);
	return in.length;
}
