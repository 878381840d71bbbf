#include "isa/form.h"

#include <errno.h>
#include <string.h>

#include "isa/quick.h"
#include "isa/zydis_internal.h"

/* ---- registers ---- */

static uint16_t bit_of(ZydisRegister reg)
{
	uint8_t number = number_of(reg);

	return number == REG_NONE ? 0 : (uint16_t)(1u << number);
}

static bool is_high(ZydisRegister reg)
{
	return reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH;
}

/* Repeated string operations may do nothing at all. */
static bool writes_always(const struct decoded *d, const ZydisDecodedOperand *op)
{
	return !(op->actions & ZYDIS_OPERAND_ACTION_CONDWRITE) &&
	       !(d->in.attributes &
		       (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE));
}

static void add_register(const struct decoded *d, const ZydisDecodedOperand *op, struct form *f)
{
	uint16_t bit = bit_of(op->reg.value);

	if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
		f->reads |= bit;
	if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return;
	f->writes |= bit;
	if (op->size >= 32 && writes_always(d, op))
		f->kills |= bit;
}

static void add_memory(const ZydisDecodedOperand *op, struct form *f)
{
	f->reads |= bit_of(op->mem.base) | bit_of(op->mem.index);
	if (op->mem.type != ZYDIS_MEMOP_TYPE_MEM && op->mem.type != ZYDIS_MEMOP_TYPE_VSIB)
		return;
	f->loads |= (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
	f->stores |= (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
}

/* A register with itself gives 0 whatever it held. */
static bool is_cleared(const struct decoded *d)
{
	switch (d->in.mnemonic) {
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_SUB:
		return d->ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		       d->ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		       d->ops[0].reg.value == d->ops[1].reg.value && d->ops[0].size >= 32;
	default:
		return false;
	}
}

static uint8_t below(const ZydisDecodedOperandMem *mem)
{
	if (mem->disp.value >= 0)
		return 0;
	return mem->disp.value > -FORM_BELOW_MAX ? (uint8_t)-mem->disp.value : FORM_BELOW_MAX;
}

/* lea from rsp to itself only moves the stack. */
static void find_below(const struct decoded *d, const ZydisDecodedOperand *op, struct form *f)
{
	bool address = op->mem.type == ZYDIS_MEMOP_TYPE_AGEN;
	bool vague = address || op->mem.index != ZYDIS_REGISTER_NONE;

	if (op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN ||
		(address && d->ops[0].reg.value == ZYDIS_REGISTER_RSP))
		return;
	if (op->mem.base == ZYDIS_REGISTER_RSP && vague)
		f->copies_rsp = true;
	else if (op->mem.base == ZYDIS_REGISTER_RSP)
		f->below_rsp = below(&op->mem);
	else if (op->mem.base == ZYDIS_REGISTER_RBP)
		f->below_rbp = vague ? FORM_BELOW_MAX : below(&op->mem);
}

/* The first operand is what an instruction changes, but for push and xchg. */
static void find_copy(const struct decoded *d, int number, struct form *f)
{
	if (d->ops[number].reg.value == ZYDIS_REGISTER_RSP &&
		d->ops[number].visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
		(number || d->in.mnemonic == ZYDIS_MNEMONIC_PUSH ||
			d->in.mnemonic == ZYDIS_MNEMONIC_XCHG))
		f->copies_rsp = true;
}

/* They leave their destination alone when the source is 0, and some code counts on that. */
static bool may_keep(ZydisMnemonic mnemonic)
{
	return mnemonic == ZYDIS_MNEMONIC_BSF || mnemonic == ZYDIS_MNEMONIC_BSR;
}

static void find_registers(const struct decoded *d, struct form *f)
{
	if (d->in.mnemonic == ZYDIS_MNEMONIC_NOP) /* though it may have an address */
		return;
	for (int i = 0; i < d->in.operand_count; i++) {
		const ZydisDecodedOperand *op = &d->ops[i];

		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			add_memory(op, f);
			find_below(d, op, f);
		} else if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			add_register(d, op, f);
			find_copy(d, i, f);
		}
	}
	if (is_cleared(d))
		f->reads &= (uint16_t)~f->kills;
	if (may_keep(d->in.mnemonic))
		f->reads |= f->writes;
	f->kills &= (uint16_t)~f->reads;
}

/* ---- flags ---- */

static uint8_t flags_of(ZydisAccessedFlagsMask mask)
{
	return (uint8_t)((mask & ZYDIS_CPUFLAG_CF ? FORM_CF : 0) |
			 (mask & ZYDIS_CPUFLAG_PF ? FORM_PF : 0) |
			 (mask & ZYDIS_CPUFLAG_AF ? FORM_AF : 0) |
			 (mask & ZYDIS_CPUFLAG_ZF ? FORM_ZF : 0) |
			 (mask & ZYDIS_CPUFLAG_SF ? FORM_SF : 0) |
			 (mask & ZYDIS_CPUFLAG_OF ? FORM_OF : 0));
}

/* Shifts by a count that may be 0 leave the flags as they are, and so may repeated compares. */
static bool sets_flags_always(const struct decoded *d)
{
	if (d->in.attributes & (ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
		return false;
	switch (d->in.meta.category) {
	case ZYDIS_CATEGORY_SHIFT:
	case ZYDIS_CATEGORY_ROTATE:
		for (int i = 1; i < d->in.operand_count_visible; i++)
			if (d->ops[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
				return d->ops[i].imm.value.u & 31;
		return false;
	default:
		return true;
	}
}

static void find_flags(const struct decoded *d, struct form *f)
{
	const ZydisAccessedFlags *flags = d->in.cpu_flags;

	if (!flags)
		return;
	f->flags_read = flags_of(flags->tested);
	f->flags_written =
		flags_of(flags->modified | flags->set_0 | flags->set_1 | flags->undefined);
	if (sets_flags_always(d))
		f->flags_killed = flags_of(flags->modified | flags->set_0 | flags->set_1);
	f->flags_killed &= (uint8_t)~f->flags_read;
}

/* ---- operands ---- */

static void set_memory(
	const struct decoded *d, const ZydisDecodedOperand *op, uint64_t address, struct form *f)
{
	const ZydisDecodedOperandMem *mem = &op->mem;

	f->base = number_of(mem->base);
	f->index = number_of(mem->index);
	f->scale = mem->scale;
	f->displacement = (uint64_t)mem->disp.value;
	f->other_space = mem->segment == ZYDIS_REGISTER_FS || mem->segment == ZYDIS_REGISTER_GS ||
			 d->in.address_width != 64;
	if (mem->base == ZYDIS_REGISTER_RIP || mem->base == ZYDIS_REGISTER_EIP)
		f->displacement += address + f->length;
}

/* False when it is of no kind that forms have. */
static bool set_operand(const struct decoded *d, int number, uint64_t address,
	struct form_operand *to, struct form *f)
{
	const ZydisDecodedOperand *op = &d->ops[number];

	to->size = (uint8_t)(op->size / 8 < 255 ? op->size / 8 : 255);
	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		to->type = is_high(op->reg.value) ? FORM_HIGH : FORM_REGISTER;
		to->reg = number_of(op->reg.value);
		return to->reg != REG_NONE;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		to->type = FORM_IMMEDIATE;
		f->immediate = op->imm.value.s;
		return true;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		to->type = FORM_MEMORY;
		set_memory(d, op, address, f);
		return op->mem.type == ZYDIS_MEMOP_TYPE_MEM ||
		       op->mem.type == ZYDIS_MEMOP_TYPE_AGEN;
	default:
		return false;
	}
}

/* ---- operations ---- */

static enum form_op arithmetic(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
		return FORM_MOVE;
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		return FORM_MOVE_SIGNED;
	case ZYDIS_MNEMONIC_LEA:
		return FORM_ADDRESS;
	case ZYDIS_MNEMONIC_ADD:
		return FORM_ADD;
	case ZYDIS_MNEMONIC_SUB:
		return FORM_SUBTRACT;
	case ZYDIS_MNEMONIC_AND:
		return FORM_AND;
	case ZYDIS_MNEMONIC_XOR:
		return FORM_XOR;
	case ZYDIS_MNEMONIC_SHL:
		return FORM_SHIFT_LEFT;
	case ZYDIS_MNEMONIC_SHR:
		return FORM_SHIFT_RIGHT;
	case ZYDIS_MNEMONIC_CMP:
		return FORM_COMPARE;
	case ZYDIS_MNEMONIC_TEST:
		return FORM_TEST;
	default:
		return FORM_OTHER;
	}
}

/* to and from are the two visible operands; a shift must have an immediate count. */
static enum form_op two_operands(const struct decoded *d, uint64_t address, struct form *f)
{
	enum form_op op = arithmetic(d->in.mnemonic);

	if (op == FORM_OTHER || d->in.operand_count_visible != 2)
		return FORM_OTHER;
	if ((op == FORM_SHIFT_LEFT || op == FORM_SHIFT_RIGHT) &&
		d->ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return FORM_OTHER;
	if (!set_operand(d, 0, address, &f->to, f) || !set_operand(d, 1, address, &f->from, f))
		return FORM_OTHER;
	if (f->from.type == FORM_IMMEDIATE) /* it is extended to what it is used with */
		f->from.size = f->to.size;
	return op;
}

static enum form_op increment(const struct decoded *d, uint64_t address, struct form *f)
{
	if (!set_operand(d, 0, address, &f->to, f))
		return FORM_OTHER;
	f->from = (struct form_operand){FORM_IMMEDIATE, REG_NONE, f->to.size};
	f->immediate = d->in.mnemonic == ZYDIS_MNEMONIC_INC ? 1 : -1;
	return FORM_ADD;
}

/* imul to, from, factor */
static enum form_op multiply(const struct decoded *d, uint64_t address, struct form *f)
{
	if (d->in.operand_count_visible != 3 || !set_operand(d, 0, address, &f->to, f) ||
		!set_operand(d, 1, address, &f->from, f))
		return FORM_OTHER;
	f->immediate = d->ops[2].imm.value.s;
	return FORM_MULTIPLY;
}

/* cdqe and its narrower kin. */
static enum form_op widen(unsigned from, struct form *f)
{
	f->to = (struct form_operand){FORM_REGISTER, REG_RAX, (uint8_t)(2 * from)};
	f->from = (struct form_operand){FORM_REGISTER, REG_RAX, (uint8_t)from};
	return FORM_MOVE_SIGNED;
}

static enum form_op find_op(const struct decoded *d, uint64_t address, struct form *f)
{
	if (d->in.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE) {
		if (f->kind == INSN_JUMP_INDIRECT || f->kind == INSN_CALL_INDIRECT)
			return set_operand(d, 0, address, &f->from, f) ? FORM_TRANSFER : FORM_OTHER;
		return FORM_TRANSFER;
	}
	switch (d->in.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		return set_operand(d, 0, address, &f->from, f) ? FORM_PUSH : FORM_OTHER;
	case ZYDIS_MNEMONIC_POP:
		return set_operand(d, 0, address, &f->to, f) ? FORM_POP : FORM_OTHER;
	case ZYDIS_MNEMONIC_LEAVE:
		return FORM_LEAVE;
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
		return increment(d, address, f);
	case ZYDIS_MNEMONIC_IMUL:
		return multiply(d, address, f);
	case ZYDIS_MNEMONIC_CBW:
		return widen(1, f);
	case ZYDIS_MNEMONIC_CWDE:
		return widen(2, f);
	case ZYDIS_MNEMONIC_CDQE:
		return widen(4, f);
	default:
		return two_operands(d, address, f);
	}
}

/* Of a conditional branch on flags; loop, jrcxz and xbegin have none. */
static uint8_t condition_of(const struct decoded *d)
{
	uint8_t opcode = d->in.opcode;

	if (d->in.meta.category != ZYDIS_CATEGORY_COND_BR)
		return FORM_NO_CONDITION;
	if (d->in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && opcode >= 0x70 && opcode <= 0x7f)
		return opcode & 15;
	if (d->in.opcode_map == ZYDIS_OPCODE_MAP_0F && opcode >= 0x80 && opcode <= 0x8f)
		return opcode & 15;
	return FORM_NO_CONDITION;
}

/* *anywhere: it is the same at every address. */
static int find_form(const void *code, size_t n, uint64_t address, struct form *out, bool *anywhere)
{
	ZydisDecoder decoder;
	struct decoded d;
	struct insn insn;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!n || ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code, n, &d.in, d.ops)))
		return -EBADMSG;
	insn_of_zydis(&d.in, address, &insn);
	*anywhere = !(d.in.attributes & ZYDIS_ATTRIB_IS_RELATIVE);
	struct form f = {.length = insn.length,
		.kind = (uint8_t)insn.kind,
		.base = REG_NONE,
		.index = REG_NONE,
		.to.reg = REG_NONE,
		.from.reg = REG_NONE,
		.condition = condition_of(&d)};
	find_registers(&d, &f);
	find_flags(&d, &f);
	f.op = (uint8_t)find_op(&d, address, &f);
	*out = f;
	return 0;
}

int form_by_zydis(const void *code, size_t n, uint64_t address, struct form *out)
{
	bool anywhere;

	return find_form(code, n, address, out, &anywhere);
}

/*
 * Instructions that were met before, by their bytes: what the quick way does not know is vector
 * code mostly, which repeats, and everybody who looks at a procedure asks again.
 */
enum { KNOWN = 1024, HASHED = 4 };

struct known {
	struct form form; /* length 0: none */
	uint8_t code[16];
};

static struct known *known_at(const uint8_t *code)
{
	static _Thread_local struct known list[KNOWN];
	uint32_t first;

	memcpy(&first, code, HASHED);
	return &list[first * 2654435761u >> 22];
}

static int recall_form(const void *code, size_t n, uint64_t address, struct form *out)
{
	struct known *k = known_at(code);
	bool anywhere;
	int rc;

	if (k->form.length && k->form.length <= n && !memcmp(k->code, code, k->form.length)) {
		*out = k->form;
		return 0;
	}
	rc = find_form(code, n, address, out, &anywhere);
	if (!rc && anywhere) {
		k->form = *out;
		memcpy(k->code, code, out->length);
	}
	return rc;
}

int isa_form(const void *code, size_t n, uint64_t address, struct form *out)
{
	if (quick_form(code, n, address, out))
		return 0;
	return n >= HASHED ? recall_form(code, n, address, out)
			   : form_by_zydis(code, n, address, out);
}
