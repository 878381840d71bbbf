#include "isa/mnemonic.h"

#include <stdio.h>
#include <string.h>

#define N(name) ZYDIS_MNEMONIC_##name

/* AT&T and Intel. */
static const char *const renamed[ZYDIS_MNEMONIC_MAX_VALUE + 1][2] = {
	[N(JZ)] = {"je", "je"},
	[N(JNZ)] = {"jne", "jne"},
	[N(JNB)] = {"jae", "jae"},
	[N(JNBE)] = {"ja", "ja"},
	[N(JNL)] = {"jge", "jge"},
	[N(JNLE)] = {"jg", "jg"},
	[N(SETZ)] = {"sete", "sete"},
	[N(SETNZ)] = {"setne", "setne"},
	[N(SETNB)] = {"setae", "setae"},
	[N(SETNBE)] = {"seta", "seta"},
	[N(SETNL)] = {"setge", "setge"},
	[N(SETNLE)] = {"setg", "setg"},
	[N(CMOVZ)] = {"cmove", "cmove"},
	[N(CMOVNZ)] = {"cmovne", "cmovne"},
	[N(CMOVNB)] = {"cmovae", "cmovae"},
	[N(CMOVNBE)] = {"cmova", "cmova"},
	[N(CMOVNL)] = {"cmovge", "cmovge"},
	[N(CMOVNLE)] = {"cmovg", "cmovg"},
	[N(CBW)] = {"cbtw", "cbw"},
	[N(CWDE)] = {"cwtl", "cwde"},
	[N(CDQE)] = {"cltq", "cdqe"},
	[N(CWD)] = {"cwtd", "cwd"},
	[N(CDQ)] = {"cltd", "cdq"},
	[N(CQO)] = {"cqto", "cqo"},
	[N(PUSHF)] = {"pushfw", "pushfw"},
	[N(POPF)] = {"popfw", "popfw"},
	[N(PUSHFQ)] = {"pushf", "pushf"},
	[N(POPFQ)] = {"popf", "popf"},
	[N(IRET)] = {"iretw", "iretw"},
	[N(IRETD)] = {"iret", "iret"},
	[N(MONITOR)] = {"monitor %rax,%ecx,%edx", "monitor"},
	[N(MWAIT)] = {"mwait  %eax,%ecx", "mwait"},
	[N(MOVSXD)] = {"movslq", "movsxd"},
	[N(MOVSB)] = {"movsb", "movs"},
	[N(MOVSW)] = {"movsw", "movs"},
	[N(MOVSQ)] = {"movsq", "movs"},
	[N(CMPSB)] = {"cmpsb", "cmps"},
	[N(CMPSW)] = {"cmpsw", "cmps"},
	[N(CMPSQ)] = {"cmpsq", "cmps"},
	[N(STOSB)] = {"stos", "stos"},
	[N(STOSW)] = {"stos", "stos"},
	[N(STOSD)] = {"stos", "stos"},
	[N(STOSQ)] = {"stos", "stos"},
	[N(LODSB)] = {"lods", "lods"},
	[N(LODSW)] = {"lods", "lods"},
	[N(LODSD)] = {"lods", "lods"},
	[N(LODSQ)] = {"lods", "lods"},
	[N(SCASB)] = {"scas", "scas"},
	[N(SCASW)] = {"scas", "scas"},
	[N(SCASD)] = {"scas", "scas"},
	[N(SCASQ)] = {"scas", "scas"},
	[N(INSB)] = {"insb", "ins"},
	[N(INSW)] = {"insw", "ins"},
	[N(INSD)] = {"insl", "ins"},
	[N(OUTSB)] = {"outsb", "outs"},
	[N(OUTSW)] = {"outsw", "outs"},
	[N(OUTSD)] = {"outsl", "outs"},
};

/* What the operand size appends to an AT&T name when no register shows it. */
enum suffix {
	SUFFIX_NONE,
	SUFFIX_INT,    /* b w l q */
	SUFFIX_MEMORY, /* the same, though a register of another size is shown */
	SUFFIX_SHORT,  /* only w: 64 bits go without saying */
	SUFFIX_REAL,   /* x87: s l t */
	SUFFIX_WHOLE,  /* x87 integers: s l ll */
	SUFFIX_VECTOR, /* narrowing conversions: x y */
};

static const unsigned char suffixes[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
	[N(ADC)] = SUFFIX_INT,
	[N(ADD)] = SUFFIX_INT,
	[N(AND)] = SUFFIX_INT,
	[N(BT)] = SUFFIX_INT,
	[N(BTC)] = SUFFIX_INT,
	[N(BTR)] = SUFFIX_INT,
	[N(BTS)] = SUFFIX_INT,
	[N(CMP)] = SUFFIX_INT,
	[N(DEC)] = SUFFIX_INT,
	[N(DIV)] = SUFFIX_INT,
	[N(IDIV)] = SUFFIX_INT,
	[N(IMUL)] = SUFFIX_INT,
	[N(INC)] = SUFFIX_INT,
	[N(MOV)] = SUFFIX_INT,
	[N(MUL)] = SUFFIX_INT,
	[N(NEG)] = SUFFIX_INT,
	[N(NOT)] = SUFFIX_INT,
	[N(OR)] = SUFFIX_INT,
	[N(RCL)] = SUFFIX_INT,
	[N(RCR)] = SUFFIX_INT,
	[N(ROL)] = SUFFIX_INT,
	[N(ROR)] = SUFFIX_INT,
	[N(SAR)] = SUFFIX_INT,
	[N(SBB)] = SUFFIX_INT,
	[N(SHL)] = SUFFIX_INT,
	[N(SHR)] = SUFFIX_INT,
	[N(SUB)] = SUFFIX_INT,
	[N(TEST)] = SUFFIX_INT,
	[N(XOR)] = SUFFIX_INT,
	[N(CVTSI2SD)] = SUFFIX_INT,
	[N(CVTSI2SS)] = SUFFIX_INT,
	[N(VCVTSI2SD)] = SUFFIX_INT,
	[N(VCVTSI2SS)] = SUFFIX_INT,
	[N(VCVTUSI2SD)] = SUFFIX_INT,
	[N(VCVTUSI2SS)] = SUFFIX_INT,
	[N(VCVTPD2DQ)] = SUFFIX_VECTOR,
	[N(VCVTPD2PS)] = SUFFIX_VECTOR,
	[N(VCVTPD2UDQ)] = SUFFIX_VECTOR,
	[N(VCVTTPD2DQ)] = SUFFIX_VECTOR,
	[N(VCVTTPD2UDQ)] = SUFFIX_VECTOR,
	[N(VCVTQQ2PS)] = SUFFIX_VECTOR,
	[N(VCVTUQQ2PS)] = SUFFIX_VECTOR,
	[N(CRC32)] = SUFFIX_MEMORY,
	[N(NOP)] = SUFFIX_MEMORY,
	[N(PTWRITE)] = SUFFIX_MEMORY,
	[N(PUSH)] = SUFFIX_SHORT,
	[N(POP)] = SUFFIX_SHORT,
	[N(FADD)] = SUFFIX_REAL,
	[N(FCOM)] = SUFFIX_REAL,
	[N(FCOMP)] = SUFFIX_REAL,
	[N(FDIV)] = SUFFIX_REAL,
	[N(FDIVR)] = SUFFIX_REAL,
	[N(FLD)] = SUFFIX_REAL,
	[N(FMUL)] = SUFFIX_REAL,
	[N(FST)] = SUFFIX_REAL,
	[N(FSTP)] = SUFFIX_REAL,
	[N(FSUB)] = SUFFIX_REAL,
	[N(FSUBR)] = SUFFIX_REAL,
	[N(FIADD)] = SUFFIX_WHOLE,
	[N(FICOM)] = SUFFIX_WHOLE,
	[N(FICOMP)] = SUFFIX_WHOLE,
	[N(FIDIV)] = SUFFIX_WHOLE,
	[N(FIDIVR)] = SUFFIX_WHOLE,
	[N(FILD)] = SUFFIX_WHOLE,
	[N(FIMUL)] = SUFFIX_WHOLE,
	[N(FIST)] = SUFFIX_WHOLE,
	[N(FISTP)] = SUFFIX_WHOLE,
	[N(FISTTP)] = SUFFIX_WHOLE,
	[N(FISUB)] = SUFFIX_WHOLE,
	[N(FISUBR)] = SUFFIX_WHOLE,
};

static const char *const predicates[] = {"eq", "lt", "le", "unord", "neq", "nlt", "nle", "ord",
	"eq_uq", "nge", "ngt", "false", "neq_oq", "ge", "gt", "true", "eq_os", "lt_oq", "le_oq",
	"unord_s", "neq_us", "nlt_uq", "nle_uq", "ord_s", "eq_us", "nge_uq", "ngt_uq", "false_os",
	"neq_os", "ge_oq", "gt_oq", "true_us"};

static const char *int_suffix(unsigned bits)
{
	return bits == 8 ? "b" : bits == 16 ? "w" : bits == 32 ? "l" : "q";
}

bool mnemonic_is_string(const ZydisDecodedInstruction *in)
{
	return in->meta.category == ZYDIS_CATEGORY_STRINGOP ||
	       in->meta.category == ZYDIS_CATEGORY_IOSTRINGOP || in->mnemonic == N(XLAT);
}

int mnemonic_operands(const ZydisDecodedInstruction *in)
{
	switch (in->mnemonic) {
	case N(XLAT):
		return 1;
	case N(BLENDVPD):
	case N(BLENDVPS):
	case N(PBLENDVB):
	case N(SHA256RNDS2):
		return 3; /* with the xmm0 they imply */
	default:
		return mnemonic_is_string(in) ? 2 : in->operand_count_visible;
	}
}

/* Segment registers are all alike. */
static bool has_known_size(const ZydisDecodedOperand *op)
{
	if (op->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	ZydisRegisterClass c = ZydisRegisterGetClass(op->reg.value);
	return (c >= ZYDIS_REGCLASS_GPR8 && c <= ZYDIS_REGCLASS_GPR64) ||
	       c == ZYDIS_REGCLASS_SEGMENT;
}

/* A register shows the size, but not the cl that a shift implies. */
static bool shows_size(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	for (int i = 0; i < in->operand_count_visible; i++) {
		bool count = ops[i].reg.value == ZYDIS_REGISTER_CL &&
			     ops[i].visibility == ZYDIS_OPERAND_VISIBILITY_IMPLICIT;
		if (has_known_size(&ops[i]) && !count)
			return true;
	}
	return false;
}

static const char *size_suffix(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	unsigned size = 0; /* of the operand in memory, if there is one */
	for (int i = 0; i < in->operand_count_visible; i++) {
		if (ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			size = ops[i].size;
	}
	switch ((enum suffix)(size || suffixes[in->mnemonic] == SUFFIX_SHORT
				      ? suffixes[in->mnemonic]
				      : SUFFIX_NONE)) {
	case SUFFIX_INT:
		return shows_size(in, ops) ? "" : int_suffix(size);
	case SUFFIX_MEMORY:
		return int_suffix(size);
	case SUFFIX_SHORT:
		return in->operand_width == 16 && !shows_size(in, ops) ? "w" : "";
	case SUFFIX_REAL:
		return size == 32 ? "s" : size == 64 ? "l" : "t";
	case SUFFIX_WHOLE:
		return size == 16 ? "s" : size == 32 ? "l" : "ll";
	case SUFFIX_VECTOR:
		return in->avx.broadcast.mode ? "" : size == 128 ? "x" : size == 256 ? "y" : "";
	default:
		return "";
	}
}

/* cmpps $1 is cmpltps, and so on; false when the immediate has no name. */
static bool put_compare(
	const char *stem, const char *rest, unsigned n, unsigned most, struct mnemonic *out)
{
	if (n >= most)
		return false;
	snprintf(out->text, sizeof out->text, "%s%s%s", stem, predicates[n], rest);
	return out->has_predicate = true;
}

static bool put_predicate(const ZydisDecodedInstruction *in, struct mnemonic *out)
{
	const char *name = ZydisMnemonicGetString(in->mnemonic);
	unsigned n = (unsigned)in->raw.imm[0].value.u & 0xff;

	switch (in->mnemonic) {
	case N(CMPPS):
	case N(CMPPD):
	case N(CMPSS):
	case N(CMPSD):
		return put_compare("cmp", name + 3, n, 8, out);
	case N(VCMPPS):
	case N(VCMPPD):
	case N(VCMPSS):
	case N(VCMPSD):
		return put_compare("vcmp", name + 4, n, 32, out);
	case N(VPCMPB):
	case N(VPCMPW):
	case N(VPCMPD):
	case N(VPCMPQ):
	case N(VPCMPUB):
	case N(VPCMPUW):
	case N(VPCMPUD):
	case N(VPCMPUQ):
		return n != 3 && n != 7 && put_compare("vpcmp", name + 5, n, 8, out);
	case N(PCLMULQDQ):
	case N(VPCLMULQDQ):
		if (n & ~0x11u)
			return false;
		snprintf(out->text, sizeof out->text, "%.*sclmul%cq%cqdq", name[0] == 'v' ? 2 : 1,
			name, n & 1 ? 'h' : 'l', n & 0x10 ? 'h' : 'l');
		return out->has_predicate = true;
	default:
		return false;
	}
}

/* AT&T has fsub and fsubr (fdiv, fdivr) the wrong way round where st(i) is the destination. */
static const char *reversed_real(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	bool to_st = ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		     ops[0].encoding != ZYDIS_OPERAND_ENCODING_NONE;
	if (!to_st)
		return NULL;
	switch (in->mnemonic) {
	case N(FSUB):
		return "fsubr";
	case N(FSUBR):
		return "fsub";
	case N(FDIV):
		return "fdivr";
	case N(FDIVR):
		return "fdiv";
	case N(FSUBP):
		return "fsubrp";
	case N(FSUBRP):
		return "fsubp";
	case N(FDIVP):
		return "fdivrp";
	case N(FDIVRP):
		return "fdivp";
	default:
		return NULL;
	}
}

/* Ways back that have no operand to show their width. */
static const char *return_suffix(const ZydisDecodedInstruction *in, enum isa_syntax syntax)
{
	bool wide = in->operand_width == 64;
	switch (in->mnemonic) {
	case N(SYSRET):
		return wide ? "q" : syntax == ISA_ATT ? "l" : "d";
	case N(SYSEXIT):
		return wide ? "q" : "";
	case N(RET):
		return wide && in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ? "q" : "";
	default:
		return "";
	}
}

static bool has_wide_constant(const ZydisDecodedInstruction *in)
{
	return in->mnemonic == N(MOV) && (in->raw.imm[0].size == 64 || in->raw.disp.size == 64);
}

static void att_name(
	const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops, struct mnemonic *out)
{
	const char *stem = renamed[in->mnemonic][0];
	bool far = in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;

	if (in->mnemonic == N(MOVZX) || in->mnemonic == N(MOVSX)) {
		snprintf(out->text, sizeof out->text, "mov%c%s%s",
			in->mnemonic == N(MOVZX) ? 'z' : 's', int_suffix(ops[1].size),
			int_suffix(ops[0].size));
		return;
	}
	if (mnemonic_is_string(in) && in->mnemonic == N(MOVSD))
		stem = "movsl";
	else if (mnemonic_is_string(in) && in->mnemonic == N(CMPSD))
		stem = "cmpsl";
	else if (!stem)
		stem = reversed_real(in, ops);
	if (!stem)
		stem = ZydisMnemonicGetString(in->mnemonic);
	const char *width = return_suffix(in, ISA_ATT);
	snprintf(out->text, sizeof out->text, "%s%s%s", far ? "l" : "", stem,
		*width ? width : size_suffix(in, ops));
}

static void intel_name(const ZydisDecodedInstruction *in, struct mnemonic *out)
{
	const char *name = renamed[in->mnemonic][1];
	if (mnemonic_is_string(in) && in->mnemonic == N(MOVSD))
		name = "movs";
	else if (mnemonic_is_string(in) && in->mnemonic == N(CMPSD))
		name = "cmps";
	else if (in->mnemonic == N(RET) && in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		name = "retf";
	if (!name)
		name = ZydisMnemonicGetString(in->mnemonic);
	snprintf(out->text, sizeof out->text, "%s%s", name, return_suffix(in, ISA_INTEL));
}

void mnemonic_name(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops,
	enum isa_syntax syntax, struct mnemonic *out)
{
	out->has_predicate = false;
	if (has_wide_constant(in))
		strcpy(out->text, "movabs");
	else if (!mnemonic_is_string(in) && put_predicate(in, out))
		return;
	else if (syntax == ISA_ATT)
		att_name(in, ops, out);
	else
		intel_name(in, out);
	if (in->attributes & ZYDIS_ATTRIB_HAS_BRANCH_TAKEN)
		strcat(out->text, ",pt");
	else if (in->attributes & ZYDIS_ATTRIB_HAS_BRANCH_NOT_TAKEN)
		strcat(out->text, ",pn");
}
