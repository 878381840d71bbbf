/*
 * Makes src/isa/interp_table.h, the interpreter's decode table, from what Zydis knows of every
 * opcode: lengths, operands, flags, and which registers and memory an instruction writes.
 *
 *	cc -Isrc -o interp_table tools/interp_table.c -lZydis && ./interp_table
 *>src/isa/interp_table.h
 */
#include <Zydis/Zydis.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "isa/interp.h"
#include "isa/interp_ops.h"

enum encoding { LEGACY, VEX, EVEX };

struct opcode {
	enum encoding encoding;
	int map;    /* 0 one byte, 1 0f, 2 0f38, 3 0f3a, 5, 6 */
	int prefix; /* 0, 1: 66, 2: f3, 3: f2 */
	int byte;
};

struct
try {
	bool w, o16;
	int vl;
	int reg, rm;
	bool direct; /* mod 3 */
	bool sib;
	bool alone; /* VEX.vvvv is not used */
};

struct decoded {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
};

static const struct {
	ZydisMnemonic mnemonic;
	enum interp_op op;
} integers[] = {
#define SAME(name)                                      \
	{                                               \
		ZYDIS_MNEMONIC_##name, INTERP_OP_##name \
	}
	SAME(ADD),
	SAME(OR),
	SAME(ADC),
	SAME(SBB),
	SAME(AND),
	SAME(SUB),
	SAME(XOR),
	SAME(CMP),
	SAME(TEST),
	SAME(MOV),
	SAME(LEA),
	SAME(INC),
	SAME(DEC),
	SAME(NOT),
	SAME(NEG),
	SAME(BSWAP),
	SAME(MOVBE),
	SAME(BT),
	SAME(BTS),
	SAME(BTR),
	SAME(BTC),
	SAME(BSF),
	SAME(BSR),
	SAME(TZCNT),
	SAME(LZCNT),
	SAME(POPCNT),
	SAME(ANDN),
	SAME(BLSI),
	SAME(BLSR),
	SAME(BLSMSK),
	SAME(BZHI),
	SAME(BEXTR),
	SAME(PDEP),
	SAME(PEXT),
	SAME(ADCX),
	SAME(ADOX),
	SAME(CRC32),
	SAME(ROL),
	SAME(ROR),
	SAME(RCL),
	SAME(RCR),
	SAME(SHL),
	SAME(SHR),
	SAME(SAR),
	SAME(SHLD),
	SAME(SHRD),
	SAME(RORX),
	SAME(SARX),
	SAME(SHLX),
	SAME(SHRX),
	SAME(XCHG),
	SAME(XADD),
	SAME(CMPXCHG),
	SAME(CMPXCHG8B),
	SAME(MUL),
	SAME(DIV),
	SAME(IDIV),
	SAME(MULX),
	SAME(PUSH),
	SAME(POP),
	SAME(LEAVE),
	SAME(ENTER),
	SAME(RET),
	SAME(LOOPNE),
	SAME(LOOPE),
	SAME(LOOP),
	SAME(JRCXZ),
	SAME(LAHF),
	SAME(SAHF),
	SAME(CLC),
	SAME(STC),
	SAME(CMC),
	SAME(CLD),
	SAME(STD),
	SAME(XLAT),
	SAME(NOP),
#undef SAME
	{ZYDIS_MNEMONIC_MOVNTI, INTERP_OP_MOV},
	{ZYDIS_MNEMONIC_MOVSXD, INTERP_OP_MOVSX32},
	{ZYDIS_MNEMONIC_CMPXCHG16B, INTERP_OP_CMPXCHG8B},
	{ZYDIS_MNEMONIC_PUSHFQ, INTERP_OP_PUSHF},
	{ZYDIS_MNEMONIC_POPFQ, INTERP_OP_POPF},
	{ZYDIS_MNEMONIC_JMP, INTERP_OP_JMP},
	{ZYDIS_MNEMONIC_CALL, INTERP_OP_CALL},
	{ZYDIS_MNEMONIC_CBW, INTERP_OP_CBW},
	{ZYDIS_MNEMONIC_CWDE, INTERP_OP_CBW},
	{ZYDIS_MNEMONIC_CDQE, INTERP_OP_CBW},
	{ZYDIS_MNEMONIC_CWD, INTERP_OP_CWD},
	{ZYDIS_MNEMONIC_CDQ, INTERP_OP_CWD},
	{ZYDIS_MNEMONIC_CQO, INTERP_OP_CWD},
	{ZYDIS_MNEMONIC_MOVSB, INTERP_OP_MOVS},
	{ZYDIS_MNEMONIC_MOVSW, INTERP_OP_MOVS},
	{ZYDIS_MNEMONIC_MOVSQ, INTERP_OP_MOVS},
	{ZYDIS_MNEMONIC_STOSB, INTERP_OP_STOS},
	{ZYDIS_MNEMONIC_STOSW, INTERP_OP_STOS},
	{ZYDIS_MNEMONIC_STOSD, INTERP_OP_STOS},
	{ZYDIS_MNEMONIC_STOSQ, INTERP_OP_STOS},
	{ZYDIS_MNEMONIC_LODSB, INTERP_OP_LODS},
	{ZYDIS_MNEMONIC_LODSW, INTERP_OP_LODS},
	{ZYDIS_MNEMONIC_LODSD, INTERP_OP_LODS},
	{ZYDIS_MNEMONIC_LODSQ, INTERP_OP_LODS},
	{ZYDIS_MNEMONIC_SCASB, INTERP_OP_SCAS},
	{ZYDIS_MNEMONIC_SCASW, INTERP_OP_SCAS},
	{ZYDIS_MNEMONIC_SCASD, INTERP_OP_SCAS},
	{ZYDIS_MNEMONIC_SCASQ, INTERP_OP_SCAS},
	{ZYDIS_MNEMONIC_CMPSB, INTERP_OP_CMPS},
	{ZYDIS_MNEMONIC_CMPSW, INTERP_OP_CMPS},
	{ZYDIS_MNEMONIC_CMPSQ, INTERP_OP_CMPS},
	{ZYDIS_MNEMONIC_RDFSBASE, INTERP_OP_RDBASE},
	{ZYDIS_MNEMONIC_RDGSBASE, INTERP_OP_RDBASE},
	{ZYDIS_MNEMONIC_ENDBR64, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_ENDBR32, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_PAUSE, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_LFENCE, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_MFENCE, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_SFENCE, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_PREFETCH, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_PREFETCHNTA, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_PREFETCHT0, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_PREFETCHT1, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_PREFETCHT2, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_PREFETCHW, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_PREFETCHWT1, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_CLFLUSH, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_CLFLUSHOPT, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_CLWB, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_CLAC, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_STAC, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_CLI, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_STI, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_SERIALIZE, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_FWAIT, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_FNOP, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_EMMS, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_LDMXCSR, INTERP_OP_NOP},
	{ZYDIS_MNEMONIC_VLDMXCSR, INTERP_OP_NOP},
};

static const struct {
	ZydisMnemonic mnemonic;
	enum interp_op op;
} vectors[] = {
#define BOTH(name, op)                                 \
	{ZYDIS_MNEMONIC_##name, INTERP_OP_##op},       \
	{                                              \
		ZYDIS_MNEMONIC_V##name, INTERP_OP_##op \
	}
	BOTH(MOVDQA, XMOV),
	BOTH(MOVDQU, XMOV),
	BOTH(MOVAPS, XMOV),
	BOTH(MOVUPS, XMOV),
	BOTH(MOVAPD, XMOV),
	BOTH(MOVUPD, XMOV),
	BOTH(LDDQU, XMOV),
	BOTH(MOVNTDQA, XMOV),
	BOTH(MOVNTDQ, XSTORE),
	BOTH(MOVNTPS, XSTORE),
	BOTH(MOVNTPD, XSTORE),
	BOTH(MOVQ, XMOVQ),
	BOTH(MOVD, XFROM),
	BOTH(MOVSS, XMOVS),
	BOTH(MOVSD, XMOVS),
	BOTH(MOVLPS, XLOW),
	BOTH(MOVLPD, XLOW),
	BOTH(MOVHLPS, XLOW),
	BOTH(MOVHPS, XHIGH),
	BOTH(MOVHPD, XHIGH),
	BOTH(MOVLHPS, XHIGH),
	BOTH(PAND, XAND),
	BOTH(ANDPS, XAND),
	BOTH(ANDPD, XAND),
	BOTH(PANDN, XANDN),
	BOTH(ANDNPS, XANDN),
	BOTH(ANDNPD, XANDN),
	BOTH(POR, XOR_),
	BOTH(ORPS, XOR_),
	BOTH(ORPD, XOR_),
	BOTH(PXOR, XXOR),
	BOTH(XORPS, XXOR),
	BOTH(XORPD, XXOR),
	BOTH(PADDB, XADD8),
	BOTH(PADDW, XADD16),
	BOTH(PADDD, XADD32),
	BOTH(PADDQ, XADD64),
	BOTH(PSUBB, XSUB8),
	BOTH(PSUBW, XSUB16),
	BOTH(PSUBD, XSUB32),
	BOTH(PSUBQ, XSUB64),
	BOTH(PCMPEQB, XEQ8),
	BOTH(PCMPEQW, XEQ16),
	BOTH(PCMPEQD, XEQ32),
	BOTH(PMINUB, XMINU8),
	BOTH(PMOVMSKB, XMASK8),
	BOTH(PUNPCKLQDQ, XUNPACKLQ),
	BOTH(UNPCKLPD, XUNPACKLQ),
	BOTH(PUNPCKHQDQ, XUNPACKHQ),
	BOTH(UNPCKHPD, XUNPACKHQ),
	BOTH(PSHUFD, XSHUF32),
	BOTH(PSLLDQ, XSHL128),
	BOTH(PSRLDQ, XSHR128),
	BOTH(PTEST, XPTEST),
	BOTH(PCMPGTB, XGREATER8),
	BOTH(PCMPGTW, XGREATER16),
	BOTH(PCMPGTD, XGREATER32),
	BOTH(PMAXUB, XMAXU8),
	BOTH(PUNPCKLBW, XUNPACKL8),
	BOTH(PUNPCKLWD, XUNPACKL16),
	BOTH(PUNPCKLDQ, XUNPACKL32),
	BOTH(UNPCKLPS, XUNPACKL32),
	BOTH(PUNPCKHBW, XUNPACKH8),
	BOTH(PUNPCKHWD, XUNPACKH16),
	BOTH(PUNPCKHDQ, XUNPACKH32),
	BOTH(UNPCKHPS, XUNPACKH32),
	BOTH(PSHUFLW, XSHUFL16),
	BOTH(PSHUFHW, XSHUFH16),
	BOTH(MOVMSKPS, XMASK32),
	BOTH(MOVMSKPD, XMASK64),
	BOTH(COMISS, XCOMPARE32),
	BOTH(UCOMISS, XCOMPARE32),
	BOTH(COMISD, XCOMPARE64),
	BOTH(UCOMISD, XCOMPARE64),
	BOTH(CVTSS2SD, XWIDEN),
#undef BOTH
};

/* They leave what the interpreter can see. */
static bool is_system(const struct decoded *d)
{
	static const ZydisMnemonic some[] = {ZYDIS_MNEMONIC_SYSCALL, ZYDIS_MNEMONIC_SYSENTER,
		ZYDIS_MNEMONIC_INT, ZYDIS_MNEMONIC_INT1, ZYDIS_MNEMONIC_INT3, ZYDIS_MNEMONIC_UD0,
		ZYDIS_MNEMONIC_UD1, ZYDIS_MNEMONIC_UD2, ZYDIS_MNEMONIC_HLT, ZYDIS_MNEMONIC_IRET,
		ZYDIS_MNEMONIC_IRETD, ZYDIS_MNEMONIC_IRETQ, ZYDIS_MNEMONIC_XBEGIN,
		ZYDIS_MNEMONIC_XABORT, ZYDIS_MNEMONIC_XEND, ZYDIS_MNEMONIC_WRFSBASE,
		ZYDIS_MNEMONIC_WRGSBASE, ZYDIS_MNEMONIC_WRPKRU, ZYDIS_MNEMONIC_SWAPGS,
		ZYDIS_MNEMONIC_SYSRET, ZYDIS_MNEMONIC_SYSEXIT, ZYDIS_MNEMONIC_IN,
		ZYDIS_MNEMONIC_OUT, ZYDIS_MNEMONIC_INSB, ZYDIS_MNEMONIC_INSW, ZYDIS_MNEMONIC_INSD,
		ZYDIS_MNEMONIC_OUTSB, ZYDIS_MNEMONIC_OUTSW, ZYDIS_MNEMONIC_OUTSD,
		ZYDIS_MNEMONIC_WRMSR, ZYDIS_MNEMONIC_XSAVE, ZYDIS_MNEMONIC_XSAVE64,
		ZYDIS_MNEMONIC_XSAVEC, ZYDIS_MNEMONIC_XSAVEC64, ZYDIS_MNEMONIC_XSAVEOPT,
		ZYDIS_MNEMONIC_XSAVEOPT64, ZYDIS_MNEMONIC_XSAVES, ZYDIS_MNEMONIC_XSAVES64,
		ZYDIS_MNEMONIC_FXSAVE, ZYDIS_MNEMONIC_FXSAVE64, ZYDIS_MNEMONIC_FNSAVE,
		ZYDIS_MNEMONIC_FNSTENV, ZYDIS_MNEMONIC_ENQCMD, ZYDIS_MNEMONIC_ENQCMDS,
		ZYDIS_MNEMONIC_SENDUIPI, ZYDIS_MNEMONIC_LDTILECFG, ZYDIS_MNEMONIC_MOVDIR64B,
		ZYDIS_MNEMONIC_RSM, ZYDIS_MNEMONIC_SAVEPREVSSP, ZYDIS_MNEMONIC_RSTORSSP,
		ZYDIS_MNEMONIC_UIRET, ZYDIS_MNEMONIC_MWAIT, ZYDIS_MNEMONIC_MONITOR};
	if (d->insn.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED)
		return true;
	for (size_t i = 0; i < sizeof some / sizeof *some; i++)
		if (d->insn.mnemonic == some[i])
			return true;
	for (int i = 0; i < d->insn.operand_count; i++) {
		const ZydisDecodedOperand *o = &d->operand[i];
		if (o->type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		if (d->insn.mnemonic == ZYDIS_MNEMONIC_PUSH &&
			ZydisRegisterGetClass(o->reg.value) == ZYDIS_REGCLASS_SEGMENT)
			return true;
		ZydisRegisterClass class = ZydisRegisterGetClass(o->reg.value);
		bool written = o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
		if (written &&
			(class == ZYDIS_REGCLASS_SEGMENT || class == ZYDIS_REGCLASS_CONTROL ||
				class == ZYDIS_REGCLASS_DEBUG))
			return true;
		if (written && class == ZYDIS_REGCLASS_TABLE)
			return true;
	}
	return false;
}

/* ---- decoding ---- */

static ZydisDecoder decoder;

/* VEX.vvvv, inverted: edx, another one for gathers, or none. */
static int unused_or(const struct try *t)
{
	return t->alone ? 0xf : t->sib ? (t->reg == 7 ? 0xb : 0x8) : 0xd;
}

static size_t encode(const struct opcode *o, const struct try *t, uint8_t *p)
{
	static const uint8_t prefix[] = {0, 0x66, 0xf3, 0xf2};
	size_t n = 0;
	if (t->o16)
		p[n++] = 0x66;
	if (o->encoding == LEGACY) {
		if (o->prefix && !(t->o16 && o->prefix == 1))
			p[n++] = prefix[o->prefix];
		if (t->w)
			p[n++] = 0x48;
		if (o->map)
			p[n++] = 0x0f;
		if (o->map > 1)
			p[n++] = o->map == 2 ? 0x38 : 0x3a;
	} else if (o->encoding == VEX) {
		p[n++] = 0xc4;
		p[n++] = (uint8_t)(0xe0 | o->map);
		p[n++] = (uint8_t)(t->w << 7 | unused_or(t) << 3 | (t->vl & 1) << 2 | o->prefix);
	} else {
		p[n++] = 0x62;
		p[n++] = (uint8_t)(0xf0 | o->map);
		p[n++] = (uint8_t)(t->w << 7 | unused_or(t) << 3 | 4 | o->prefix);
		p[n++] = (uint8_t)(t->vl << 5 | 8 | (t->sib ? 1 : 0)); /* gathers need a mask */
	}
	p[n++] = (uint8_t)o->byte;
	p[n++] = (uint8_t)((t->direct ? 0xc0 | t->rm : t->sib ? 4 : 0) | t->reg << 3);
	memset(p + n, 0, 16);
	if (t->sib)
		p[n] = (uint8_t)((t->reg == 5 ? 6 : 5) << 3); /* gathers want three registers */
	return n + 12;
}

static bool decode(const struct opcode *o, const struct try *t, struct decoded *d)
{
	uint8_t code[32];
	size_t n = encode(o, t, code);
	if (n > 15)
		n = 15;
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, n, &d->insn, d->operand));
}

static bool has_modrm(const struct decoded *d)
{
	return d->insn.attributes & ZYDIS_ATTRIB_HAS_MODRM;
}

/* ---- entries ---- */

static u64 register_result(const ZydisDecodedOperand *o)
{
	ZydisRegisterClass class = ZydisRegisterGetClass(o->reg.value);
	bool general = class >= ZYDIS_REGCLASS_GPR8 && class <= ZYDIS_REGCLASS_GPR64;
	bool vector = class >= ZYDIS_REGCLASS_XMM && class <= ZYDIS_REGCLASS_ZMM;
	if (!general && !vector)
		return 0;
	switch (o->encoding) {
	case ZYDIS_OPERAND_ENCODING_MODRM_REG:
		return general ? INTERP_E_REG : INTERP_E_XREG;
	case ZYDIS_OPERAND_ENCODING_MODRM_RM:
		return general ? INTERP_E_RM : INTERP_E_XRM;
	case ZYDIS_OPERAND_ENCODING_NDSNDD:
		return general ? INTERP_E_V : INTERP_E_XV;
	case ZYDIS_OPERAND_ENCODING_OPCODE:
		return 0; /* only instructions that are interpreted */
	default:
		break;
	}
	if (vector)
		return INTERP_E_XMM0;
	switch (ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, o->reg.value)) {
	case ZYDIS_REGISTER_RAX:
		return INTERP_E_RAX;
	case ZYDIS_REGISTER_RCX:
		return INTERP_E_RCX;
	case ZYDIS_REGISTER_RDX:
		return INTERP_E_RDX;
	case ZYDIS_REGISTER_RBX:
		return INTERP_E_RBX;
	default:
		return 0;
	}
}

/* All that the instruction writes, taken as unknown. */
static u64 results(const struct decoded *d)
{
	u64 e = 0;
	for (int i = 0; i < d->insn.operand_count; i++) {
		const ZydisDecodedOperand *o = &d->operand[i];
		if (!(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (o->type == ZYDIS_OPERAND_TYPE_REGISTER)
			e |= register_result(o);
	}
	if (d->insn.mnemonic == ZYDIS_MNEMONIC_VZEROALL ||
		d->insn.mnemonic == ZYDIS_MNEMONIC_XRSTOR ||
		d->insn.mnemonic == ZYDIS_MNEMONIC_FXRSTOR)
		e |= INTERP_E_XALL;
	return e;
}

/* Bytes of memory that it stores to; 0 none. */
static unsigned stored_bytes(const struct decoded *d)
{
	for (int i = 0; i < d->insn.operand_count; i++) {
		const ZydisDecodedOperand *o = &d->operand[i];
		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY &&
			o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			return o->mem.type == ZYDIS_MEMOP_TYPE_VSIB ||
					       o->encoding != ZYDIS_OPERAND_ENCODING_MODRM_RM
				       ? 255
				       : (o->size + 7) / 8;
	}
	return 0;
}

/* How many bytes in all its forms: a number, as many as the vector has, 4 or 8 by W, or who knows.
 */
static unsigned store_code(
	const struct opcode *o, const struct try *t, unsigned bytes, unsigned size)
{
	bool fixed = true, vector = true, by_w = size == INTERP_S_Y && bytes == 4;
	if (!bytes)
		return 0;
	for (int k = 0; k < 6; k++) {
		struct try other = *t;
		struct decoded d;
		other.w = k & 1;
		other.vl = k >> 1;
		if ((o->encoding == VEX && other.vl > 1) || (o->encoding == LEGACY && other.vl) ||
			!decode(o, &other, &d))
			continue;
		/* These store some of the vector. */
		if (strstr(ZydisMnemonicGetString(d.insn.mnemonic), "compress"))
			return INTERP_E_STORE_ANY;
		unsigned n = stored_bytes(&d);
		fixed &= n == bytes;
		vector &= o->encoding != LEGACY && n == 16u << other.vl;
		by_w &= n == (other.w ? 8 : 4);
	}
	if (!fixed && vector)
		return INTERP_E_STORE_VL;
	if (!fixed && !by_w)
		return INTERP_E_STORE_ANY;
	for (unsigned code = 1; code <= 5; code++)
		if (bytes == 1u << (code - 1))
			return code;
	return bytes == 10 ? 5 : INTERP_E_STORE_ANY; /* and INTERP_E_TEN */
}

static u64 flags(const struct decoded *d)
{
	const ZydisAccessedFlags *f = d->insn.cpu_flags;
	if (!f)
		return 0;
	u64 keep = INTERP_FLAGS;
	u64 set = (f->modified | f->set_0 | f->set_1) & keep;
	u64 undefined = f->undefined & keep;
	/* Zydis is wrong about these. */
	if (strstr(ZydisMnemonicGetString(d->insn.mnemonic), "test") && f->modified & INTERP_CF &&
		!(f->modified & INTERP_SF))
		set = INTERP_FLAGS; /* ptest, vtestps */
	if (d->insn.mnemonic == ZYDIS_MNEMONIC_SBB)
		set |= INTERP_AF, undefined &= ~(u64)INTERP_AF;
	if (d->insn.mnemonic == ZYDIS_MNEMONIC_BEXTR)
		set |= INTERP_CF | INTERP_OF, undefined &= ~(u64)(INTERP_CF | INTERP_OF);
	return (set & ~undefined) << 24 | undefined << 36;
}

static unsigned immediate(const struct opcode *o, const struct try *t, const struct decoded *d)
{
	const ZydisDecodedInstruction *i = &d->insn;
	struct decoded other;
	struct try w = *t, o16 = *t;
	if (!has_modrm(d) && i->raw.disp.size == 64)
		return INTERP_I_ADDRESS;
	if (i->raw.imm[0].size == 16 && i->raw.imm[1].size == 8)
		return INTERP_I_24;
	if (i->raw.imm[0].size == 8)
		return i->raw.imm[1].size == 8 ? INTERP_I_16 : INTERP_I_8;
	if (i->raw.imm[0].size == 16)
		return INTERP_I_16;
	if (i->raw.imm[0].size != 32)
		return INTERP_I_NONE;
	w.w = true;
	if (decode(o, &w, &other) && other.insn.raw.imm[0].size == 64)
		return INTERP_I_V;
	o16.o16 = true;
	if (!i->raw.imm[0].is_relative && decode(o, &o16, &other) &&
		other.insn.raw.imm[0].size == 16)
		return INTERP_I_Z;
	return INTERP_I_32;
}

/* Whether a vector in memory that is not aligned to its length is a fault (the manual's 2.7). */
static bool is_aligned(const struct decoded *d)
{
	switch (d->insn.mnemonic) {
	case ZYDIS_MNEMONIC_MOVUPS:
	case ZYDIS_MNEMONIC_MOVUPD:
	case ZYDIS_MNEMONIC_MOVDQU:
	case ZYDIS_MNEMONIC_LDDQU:
	case ZYDIS_MNEMONIC_PCMPESTRI:
	case ZYDIS_MNEMONIC_PCMPESTRM:
	case ZYDIS_MNEMONIC_PCMPISTRI:
	case ZYDIS_MNEMONIC_PCMPISTRM:
		return false;
	case ZYDIS_MNEMONIC_CVTPD2PI:
	case ZYDIS_MNEMONIC_CVTTPD2PI:
		return true;
	default:
		break;
	}
	switch (d->insn.meta.exception_class) {
	case ZYDIS_EXCEPTION_CLASS_SSE1:
	case ZYDIS_EXCEPTION_CLASS_SSE2:
	case ZYDIS_EXCEPTION_CLASS_SSE4:
		for (int i = 0; i < d->insn.operand_count_visible; i++)
			if (d->operand[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
				return d->operand[i].size == 128;
		return false;
	case ZYDIS_EXCEPTION_CLASS_AVX1:
	case ZYDIS_EXCEPTION_CLASS_E1:
	case ZYDIS_EXCEPTION_CLASS_E1NF:
		return true;
	default:
		return false;
	}
}

static unsigned form(const struct decoded *d)
{
	static const struct {
		const char *operands;
		enum interp_form form;
	} forms[] = {{"mr", INTERP_F_RM_R}, {"rm", INTERP_F_R_RM}, {"mi", INTERP_F_RM_I},
		{"m", INTERP_F_RM}, {"rmi", INTERP_F_R_RM_I}, {"oi", INTERP_F_O_I},
		{"o", INTERP_F_O}, {"ai", INTERP_F_A_I}, {"mc", INTERP_F_RM_CL},
		{"m1", INTERP_F_RM_1}, {"rvm", INTERP_F_R_V_RM}, {"rmv", INTERP_F_R_RM_V},
		{"vm", INTERP_F_V_RM}, {"mri", INTERP_F_RM_R_I}, {"mrc", INTERP_F_RM_R_I},
		{"oa", INTERP_F_O}, {"ao", INTERP_F_O}, {"ad", INTERP_F_R_RM},
		{"da", INTERP_F_RM_R}, {"vmi", INTERP_F_V_RM}};
	char text[8] = "";
	int n = 0;
	for (int i = 0; i < d->insn.operand_count_visible && n < 6; i++) {
		const ZydisDecodedOperand *o = &d->operand[i];
		switch (o->encoding) {
		case ZYDIS_OPERAND_ENCODING_MODRM_REG:
			text[n++] = 'r';
			break;
		case ZYDIS_OPERAND_ENCODING_MODRM_RM:
			text[n++] = 'm';
			break;
		case ZYDIS_OPERAND_ENCODING_NDSNDD:
			text[n++] = 'v';
			break;
		case ZYDIS_OPERAND_ENCODING_OPCODE:
			text[n++] = 'o';
			break;
		case ZYDIS_OPERAND_ENCODING_NONE:
			if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
				text[n++] = '1';
			else if (o->type == ZYDIS_OPERAND_TYPE_REGISTER)
				text[n++] = o->reg.value == ZYDIS_REGISTER_CL ? 'c' : 'a';
			else
				text[n++] = '?';
			break;
		default:
			text[n++] = o->type == ZYDIS_OPERAND_TYPE_MEMORY ? 'd' : 'i';
			break;
		}
	}
	text[n] = 0;
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (!strcmp(text, forms[i].operands))
			return forms[i].form;
	return INTERP_F_NONE;
}

static unsigned size_kind(const struct opcode *o, const struct try *t, const struct decoded *d)
{
	struct try w = *t, o16 = *t;
	struct decoded dw, d16;
	unsigned plain = d->operand[0].size, wide = 0, narrow = 0;
	w.w = o16.o16 = true;
	w.o16 = false;
	if (decode(o, &w, &dw))
		wide = dw.operand[0].size;
	if (o->encoding == LEGACY && decode(o, &o16, &d16))
		narrow = d16.operand[0].size;
	switch (plain) {
	case 8:
		return INTERP_S_8;
	case 16:
		return wide == 64 ? INTERP_S_V : INTERP_S_16; /* the slot of prefix 66 */
	case 32:
		if (wide != 64)
			return INTERP_S_32;
		return narrow == 16 ? INTERP_S_V : INTERP_S_Y;
	case 64:
		return INTERP_S_64;
	case 128:
		return INTERP_S_128;
	default:
		return INTERP_S_V;
	}
}

static bool is_vector(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       ZydisRegisterGetClass(o->reg.value) == ZYDIS_REGCLASS_XMM;
}

static enum interp_op vector_op(
	const struct opcode *o, const struct try *t, const struct decoded *d)
{
	enum interp_op op = INTERP_OP_RESULT;
	bool any = false, to_memory = d->operand[0].encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM;
	for (int i = 0; i < d->insn.operand_count_visible; i++)
		any |= is_vector(&d->operand[i]);
	if (o->encoding == EVEX || !any)
		return INTERP_OP_RESULT;
	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
		if (vectors[i].mnemonic == d->insn.mnemonic)
			op = vectors[i].op;
	switch (op) {
	case INTERP_OP_XMOV:
		return to_memory ? INTERP_OP_XSTORE : INTERP_OP_XMOV;
	case INTERP_OP_XMOVQ:
	case INTERP_OP_XFROM: /* movd and movq share two opcodes with general registers */
		if (o->byte == 0x6e)
			return INTERP_OP_XFROM;
		if (o->byte == 0x7e && o->prefix == 1)
			return INTERP_OP_XTO;
		return o->byte == 0xd6 ? INTERP_OP_XSTOREQ : INTERP_OP_XMOVQ;
	case INTERP_OP_XMOVS:
		if (t->direct)
			return INTERP_OP_RESULT;
		return to_memory ? INTERP_OP_XSTOREQ : INTERP_OP_XMOVS;
	case INTERP_OP_XLOW:
		return to_memory ? INTERP_OP_XSTOREQ : INTERP_OP_XLOW;
	case INTERP_OP_XHIGH:
		return to_memory ? INTERP_OP_XSTOREHIGH : INTERP_OP_XHIGH;
	default:
		return op;
	}
}

static enum interp_op choose_op(
	const struct opcode *o, const struct try *t, const struct decoded *d)
{
	ZydisMnemonic m = d->insn.mnemonic;
	/* Eight instructions for each modrm.reg; interp_flow.h knows the harmless ones. */
	if (o->encoding == LEGACY && o->map == 1 && o->byte == 1 && t->direct)
		return INTERP_OP_SYSTEM;
	if (is_system(d))
		return INTERP_OP_SYSTEM;
	if (o->encoding == LEGACY && o->map == 1 && (o->byte & 0xf0) == 0x90)
		return INTERP_OP_SETCC;
	if (o->encoding == LEGACY && o->map == 1 && (o->byte & 0xf0) == 0x40)
		return INTERP_OP_CMOVCC;
	if (o->encoding == LEGACY && ((o->map == 1 && (o->byte & 0xf0) == 0x80) ||
					     (o->map == 0 && (o->byte & 0xf0) == 0x70)))
		return INTERP_OP_JCC;
	if (o->encoding == LEGACY && o->map == 0 && o->byte == 0xa5)
		return INTERP_OP_MOVS; /* movsd: the mnemonic is a vector's too */
	if (o->encoding == LEGACY && o->map == 0 && o->byte == 0xa7)
		return INTERP_OP_CMPS;
	if (m == ZYDIS_MNEMONIC_MOVZX)
		return d->operand[1].size == 8 ? INTERP_OP_MOVZX8 : INTERP_OP_MOVZX16;
	if (m == ZYDIS_MNEMONIC_MOVSX)
		return d->operand[1].size == 8 ? INTERP_OP_MOVSX8 : INTERP_OP_MOVSX16;
	if (m == ZYDIS_MNEMONIC_IMUL)
		return d->insn.operand_count_visible == 1   ? INTERP_OP_IMUL1
		       : d->insn.operand_count_visible == 2 ? INTERP_OP_IMUL
							    : INTERP_OP_IMUL3;
	if (m == ZYDIS_MNEMONIC_MOV)
		for (int i = 0; i < 2; i++)
			if (d->operand[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
				ZydisRegisterGetClass(d->operand[i].reg.value) >
					ZYDIS_REGCLASS_GPR64)
				return INTERP_OP_RESULT; /* from segment and control registers */
	for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
		if (integers[i].mnemonic != m)
			continue;
		bool through = has_modrm(d);
		if (m == ZYDIS_MNEMONIC_JMP && through)
			return d->insn.raw.modrm.reg == 5 ? INTERP_OP_SYSTEM : INTERP_OP_JMPI;
		if (m == ZYDIS_MNEMONIC_CALL && through)
			return d->insn.raw.modrm.reg == 3 ? INTERP_OP_SYSTEM : INTERP_OP_CALLI;
		if (m == ZYDIS_MNEMONIC_RET && o->byte >= 0xca)
			return INTERP_OP_SYSTEM; /* far */
		return integers[i].op;
	}
	return vector_op(o, t, d);
}

static bool only_writes(enum interp_op op)
{
	switch (op) {
	case INTERP_OP_SETCC:
	case INTERP_OP_MOVBE:
	case INTERP_OP_TZCNT:
	case INTERP_OP_LZCNT:
	case INTERP_OP_POPCNT:
	case INTERP_OP_BSF:
	case INTERP_OP_BSR:
		return true;
	default:
		return op >= INTERP_OP_MOV && op <= INTERP_OP_LEA;
	}
}

static unsigned source_size(enum interp_op op)
{
	switch (op) {
	case INTERP_OP_MOVZX8:
	case INTERP_OP_MOVSX8:
		return 1;
	case INTERP_OP_MOVZX16:
	case INTERP_OP_MOVSX16:
		return 2;
	case INTERP_OP_MOVSX32:
		return 3;
	default:
		return 0;
	}
}

/* Where interp_alu finds its operands; a register without modrm is rm, the accumulator reg. */
static u64 operands(enum interp_op op, unsigned f)
{
	static const u8 where[][3] = {
		/* first, second, destination */
		[INTERP_F_RM_R] = {INTERP_N_RM, INTERP_N_REG, INTERP_N_RM},
		[INTERP_F_R_RM] = {INTERP_N_REG, INTERP_N_RM, INTERP_N_REG},
		[INTERP_F_RM_I] = {INTERP_N_RM, INTERP_N_OTHER, INTERP_N_RM},
		[INTERP_F_RM] = {INTERP_N_RM, INTERP_N_OTHER, INTERP_N_RM},
		[INTERP_F_R_RM_I] = {INTERP_N_RM, INTERP_N_OTHER, INTERP_N_REG},
		[INTERP_F_O_I] = {INTERP_N_RM, INTERP_N_OTHER, INTERP_N_RM},
		[INTERP_F_O] = {INTERP_N_RM, INTERP_N_OTHER, INTERP_N_RM},
		[INTERP_F_A_I] = {INTERP_N_REG, INTERP_N_OTHER, INTERP_N_REG},
		[INTERP_F_R_V_RM] = {INTERP_N_V, INTERP_N_RM, INTERP_N_REG},
		[INTERP_F_R_RM_V] = {INTERP_N_RM, INTERP_N_V, INTERP_N_REG},
		[INTERP_F_V_RM] = {INTERP_N_OTHER, INTERP_N_RM, INTERP_N_V},
	};
	bool two = f == INTERP_F_RM_R || f == INTERP_F_R_RM;
	bool compares = op == INTERP_OP_CMP || op == INTERP_OP_TEST || op == INTERP_OP_BT;
	bool stores = where[f][2] == INTERP_N_RM &&
		      (op == INTERP_OP_MOV || op == INTERP_OP_SETCC || op == INTERP_OP_MOVBE);
	u64 e = (u64)where[f][0] << 48 | (u64)where[f][1] << 50 | (u64)source_size(op) << 54;
	e |= (u64)(compares ? INTERP_N_OTHER : where[f][2]) << 52;
	if (!only_writes(op))
		e |= INTERP_E_USES_A;
	if (!stores && op != INTERP_OP_LEA)
		e |= INTERP_E_LOADS;
	if (op == INTERP_OP_MOV || op == INTERP_OP_MOVZX8 || op == INTERP_OP_MOVZX16 ||
		op == INTERP_OP_LEA)
		e |= INTERP_E_COPIES;
	if (e & INTERP_E_COPIES ||
		(op <= INTERP_OP_TEST && op != INTERP_OP_ADC && op != INTERP_OP_SBB) ||
		(op >= INTERP_OP_MOVSX8 && op <= INTERP_OP_MOVSX32) || op == INTERP_OP_INC ||
		op == INTERP_OP_DEC || op == INTERP_OP_SETCC || op == INTERP_OP_CMOVCC ||
		op == INTERP_OP_IMUL || op == INTERP_OP_IMUL3)
		e |= INTERP_E_QUICK;
	if (two && (op == INTERP_OP_XOR || op == INTERP_OP_SUB || op == INTERP_OP_SBB ||
			   op == INTERP_OP_CMP))
		e |= INTERP_E_CANCELS;
	return e;
}

/* The opcode's entry for one modrm, or BAD with just what its length needs. */
static u64 make_entry(const struct opcode *o, int reg, bool direct)
{
	struct decoded d, longer;
	struct try t = {.reg = reg, .direct = direct};
	bool found = false;
	for (int k = 0; k < 24 && !found; k++) {
		t.w = k & 1;
		t.vl = k >> 1 & 1;
		t.alone = k % 8 >= 4;
		t.sib = k / 8 == 1 && !direct;
		if (k / 8 == 2)
			t.vl = 2;
		for (int rm = 1; rm <= 8 && !found; rm++) { /* some need a certain register */
			t.rm = rm & 7;
			found = decode(o, &t, &d) && (direct || rm == 1);
		}
	}
	/* Moves to and from control registers ignore modrm.mod; nobody writes such. */
	if (o->encoding == LEGACY && o->map == 1 && (o->byte & 0xfc) == 0x20 && !direct)
		found = false;
	if (!found)
		return INTERP_OP_BAD | (o->map || o->encoding != LEGACY ? INTERP_E_MODRM : 0);
	struct try t2 = t;
	t2.vl = 1;
	enum interp_op op = choose_op(o, &t, &d);
	unsigned size = op >= INTERP_OP_MOVS && op <= INTERP_OP_CMPS
				? (o->byte & 1 ? INTERP_S_V : INTERP_S_8)
			: op == INTERP_OP_CMPXCHG8B                     ? INTERP_S_Y
			: op >= INTERP_OP_PUSH && op <= INTERP_OP_CALLI ? INTERP_S_64
			: op == INTERP_OP_CBW || op == INTERP_OP_CWD    ? INTERP_S_V
			: op == INTERP_OP_XLAT                          ? INTERP_S_8
									: size_kind(o, &t, &d);
	if (d.insn.mnemonic == ZYDIS_MNEMONIC_MOVSS || d.insn.mnemonic == ZYDIS_MNEMONIC_VMOVSS)
		size = INTERP_S_32;
	if (op == INTERP_OP_XFROM || op == INTERP_OP_XTO)
		size = INTERP_S_Y;
	u64 e = op | (u64)form(&d) << 8 | (u64)immediate(o, &t, &d) << 12 | (u64)size << 16;
	if (has_modrm(&d))
		e |= INTERP_E_MODRM;
	e |= flags(&d);
	if (op < INTERP_OP_ROL)
		return e | operands(op, form(&d));
	if (op < INTERP_OP_XMOV)
		return e;
	if (!direct && is_aligned(&d))
		e |= INTERP_E_ALIGNED;
	if (stored_bytes(&d) == 10)
		e |= INTERP_E_TEN;
	e |= results(&d) | (u64)store_code(o, &t, stored_bytes(&d), size) << 61;
	if (o->encoding != LEGACY && decode(o, &t2, &longer))
		e |= results(&longer); /* vzeroall is a longer vzeroupper */
	return e;
}

/* ---- the table ---- */

static u64 entry[1 << 16];
static u16 slot[INTERP_SLOTS];
static size_t nentries;

static u16 add_entries(const u64 *e, size_t n)
{
	for (size_t i = INTERP_FIRST_ENTRIES; i + n <= nentries; i++)
		if (!memcmp(&entry[i], e, n * sizeof *e))
			return (u16)i;
	memcpy(&entry[nentries], e, n * sizeof *e);
	nentries += n;
	return (u16)(nentries - n);
}

/* The opcode's entry, which may stand for others. */
static u64 fill(const struct opcode *o)
{
	u64 all[16];
	bool group = false, split = false;
	for (int i = 0; i < 16; i++)
		all[i] = make_entry(o, i >> 1, i & 1);
	for (int i = 2; i < 16; i++)
		group |= all[i] != all[i & 1];
	split = all[0] != all[1];
	if (!(all[0] & INTERP_E_MODRM) && !(all[1] & INTERP_E_MODRM))
		group = split = false;
	if (!group && !split)
		return all[0];
	for (int i = 0; i < 16; i++)
		all[i] |= INTERP_E_MODRM;
	return (u64)add_entries(all, group ? 16 : 2) << 24 | INTERP_E_MODRM |
	       (group ? INTERP_E_GROUP : INTERP_E_SPLIT);
}

/* Opcodes of one byte and of two without a prefix, among them what only leads to others. */
static void fill_first(void)
{
	static const struct {
		u8 byte, bit;
	} prefixes[] = {{0x66, INTERP_P_16}, {0x67, INTERP_P_ADDR32}, {0xf3, INTERP_P_REP},
		{0xf2, INTERP_P_REPNE}, {0xf0, INTERP_P_LOCK}, {0x64, INTERP_P_FS},
		{0x65, INTERP_P_GS}, {0x2e, INTERP_P_OTHER}, {0x36, INTERP_P_OTHER},
		{0x3e, INTERP_P_OTHER}, {0x26, INTERP_P_OTHER}};
	static const u16 escapes[] = {
		0x0f, 0xc4, 0xc5, 0x62, INTERP_ENTRY_0F + 0x38, INTERP_ENTRY_0F + 0x3a};
	nentries = INTERP_FIRST_ENTRIES;
	for (int byte = 0; byte < 256; byte++)
		entry[byte] = (byte & 0xf0) == 0x40 /* REX */
				      ? INTERP_OP_BAD
				      : fill(&(struct opcode){LEGACY, 0, 0, byte});
	for (int byte = 0; byte < 256; byte++)
		entry[INTERP_ENTRY_0F + byte] = fill(&(struct opcode){LEGACY, 1, 0, byte});
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		entry[prefixes[i].byte] = INTERP_E_PREFIX | (u64)prefixes[i].bit << 24;
	for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
		entry[escapes[i]] = INTERP_E_ESCAPE;
}

/* With the four mandatory prefixes, of which opcodes of two bytes have had the first: none. */
static void fill_map(int at, enum encoding encoding, int map)
{
	for (int i = at == INTERP_SLOT_0F ? 256 : 0; i < 4 * 256; i++) {
		u64 e = fill(&(struct opcode){encoding, map, i / 256, i % 256});
		slot[at + i] = add_entries(&e, 1);
	}
}

static void print_numbers(const char *type, const char *name, size_t n, int each, int digits)
{
	printf("static const %s %s[%zu] = {", type, name, n);
	for (size_t i = 0; i < n; i++) {
		printf("%s", i % (size_t)each ? " " : "\n\t");
		printf("0x%0*llx,", digits, (unsigned long long)(digits == 4 ? slot[i] : entry[i]));
	}
	puts("\n};\n");
}

int main(void)
{
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	fill_first();
	for (int byte = 0; byte < 256; byte++)
		slot[INTERP_SLOT_0F + byte] = (u16)(INTERP_ENTRY_0F + byte);
	fill_map(INTERP_SLOT_0F, LEGACY, 1);
	fill_map(INTERP_SLOT_0F38, LEGACY, 2);
	fill_map(INTERP_SLOT_0F3A, LEGACY, 3);
	for (int map = 1; map <= 3; map++)
		fill_map(INTERP_SLOT_VEX + (map - 1) * 1024, VEX, map);
	for (int map = 1; map <= 3; map++)
		fill_map(INTERP_SLOT_EVEX + (map - 1) * 1024, EVEX, map);
	fill_map(INTERP_SLOT_EVEX + 3072, EVEX, 5);
	fill_map(INTERP_SLOT_EVEX + 4096, EVEX, 6);
	size_t power = 1;
	while (power < nentries)
		power *= 2;
	puts("/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */\n"
	     "/* Made by tools/interp_table.c; do not edit. See interp_ops.h for the layout. */\n"
	     "#ifndef CULPRIT_ISA_INTERP_TABLE_H\n#define CULPRIT_ISA_INTERP_TABLE_H\n\n"
	     "/* clang-format off */");
	printf("#define INTERP_ENTRIES %zu /* a power of two, so that an index can be masked "
	       "*/\n\n",
		power);
	print_numbers("u16", "interp_slot", INTERP_SLOTS, 12, 4);
	print_numbers("u64", "interp_entry", power, 4, 16);
	puts("#endif");
	return 0;
}
