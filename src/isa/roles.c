#include "isa/roles.h"

#include <errno.h>
#include <string.h>

#include "isa/zydis_internal.h"

static bool is_string(const struct decoded *d)
{
	return d->in.meta.category == ZYDIS_CATEGORY_STRINGOP;
}

/* ---- operations ---- */

static enum operation string_operation(const struct decoded *d)
{
	switch (d->in.mnemonic) {
	case ZYDIS_MNEMONIC_MOVSB:
	case ZYDIS_MNEMONIC_MOVSW:
	case ZYDIS_MNEMONIC_MOVSD:
	case ZYDIS_MNEMONIC_MOVSQ:
		return OPERATION_COPY;
	case ZYDIS_MNEMONIC_STOSB:
	case ZYDIS_MNEMONIC_STOSW:
	case ZYDIS_MNEMONIC_STOSD:
	case ZYDIS_MNEMONIC_STOSQ:
		return OPERATION_FILL;
	default:
		return OPERATION_STRING;
	}
}

static enum operation classify(const struct decoded *d)
{
	if (is_string(d))
		return string_operation(d);
	switch (d->in.mnemonic) {
	case ZYDIS_MNEMONIC_LEA:
		return OPERATION_ADDRESS;
	case ZYDIS_MNEMONIC_DIV:
	case ZYDIS_MNEMONIC_IDIV:
		return OPERATION_DIVIDE;
	case ZYDIS_MNEMONIC_MUL:
	case ZYDIS_MNEMONIC_IMUL:
	case ZYDIS_MNEMONIC_MULX:
		return OPERATION_MULTIPLY;
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
		return OPERATION_COMPARE;
	case ZYDIS_MNEMONIC_SHLX:
	case ZYDIS_MNEMONIC_SHRX:
	case ZYDIS_MNEMONIC_SARX:
		return OPERATION_SHIFT;
	default:
		break;
	}
	switch (d->in.meta.category) {
	case ZYDIS_CATEGORY_DATAXFER:
	case ZYDIS_CATEGORY_PUSH:
	case ZYDIS_CATEGORY_POP:
		return OPERATION_MOVE;
	case ZYDIS_CATEGORY_SHIFT:
	case ZYDIS_CATEGORY_ROTATE:
		return OPERATION_SHIFT;
	default:
		return OPERATION_OTHER;
	}
}

/* ---- which operand is which ---- */

/* Multiplications and divisions by one operand leave out rax and rdx, their destination. */
static bool has_hidden_result(const struct decoded *d, enum operation operation)
{
	return (operation == OPERATION_DIVIDE || operation == OPERATION_MULTIPLY) &&
	       d->in.operand_count_visible == 1;
}

static const ZydisDecodedOperand *result_operand(const struct decoded *d, enum operation operation)
{
	if (d->in.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE || !d->in.operand_count_visible ||
		is_string(d) || has_hidden_result(d, operation))
		return NULL;
	return &d->ops[0];
}

static const ZydisDecodedOperand *source_operand(const struct decoded *d, enum operation operation)
{
	int n = d->in.operand_count_visible;

	if (d->in.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE || is_string(d))
		return NULL;
	if (has_hidden_result(d, operation))
		return &d->ops[0];
	return n > 1 ? &d->ops[n - 1] : NULL;
}

/* String operations have theirs hidden, and the first is the one that is written. */
static const ZydisDecodedOperand *memory_operand(const struct decoded *d)
{
	int n = is_string(d) ? d->in.operand_count : d->in.operand_count_visible;

	for (int i = 0; i < n; i++)
		if (d->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			return &d->ops[i];
	return NULL;
}

static bool is_register(const ZydisDecodedOperand *op, ZydisRegister reg)
{
	return op && op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->reg.value == reg;
}

static bool is_immediate(const ZydisDecodedOperand *op)
{
	return op && op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

/* ---- memory ---- */

static bool is_fixed(const ZydisDecodedOperandMem *mem)
{
	return (mem->base == ZYDIS_REGISTER_NONE || mem->base == ZYDIS_REGISTER_RIP ||
		       mem->base == ZYDIS_REGISTER_EIP) &&
	       mem->index == ZYDIS_REGISTER_NONE && mem->segment != ZYDIS_REGISTER_FS &&
	       mem->segment != ZYDIS_REGISTER_GS;
}

/* The word that compilers for Linux protect stacks with. */
static bool is_guard(const ZydisDecodedOperandMem *mem)
{
	return mem->segment == ZYDIS_REGISTER_FS && mem->base == ZYDIS_REGISTER_NONE &&
	       mem->index == ZYDIS_REGISTER_NONE && mem->disp.value == 0x28;
}

/* Two operands that are written alike have the same; others hardly ever do. */
static uint64_t place_of(const ZydisDecodedOperandMem *mem)
{
	uint64_t form = (uint64_t)mem->segment << 48 | (uint64_t)mem->base << 32 |
			(uint64_t)mem->index << 16 | (uint64_t)mem->scale << 8 | 1;

	return form ^ (uint64_t)mem->disp.value * 0x9e3779b97f4a7c15;
}

static void find_memory(const struct decoded *d, struct roles *out)
{
	const ZydisDecodedOperand *op = memory_operand(d);
	int n = is_string(d) ? d->in.operand_count : d->in.operand_count_visible;

	if (!op)
		return;
	out->fixed_address = is_fixed(&op->mem);
	out->guard = is_guard(&op->mem);
	out->memory_size = (uint8_t)(op->size / 8 < 255 ? op->size / 8 : 255);
	out->place = place_of(&op->mem);
	out->on_stack = op->mem.base == ZYDIS_REGISTER_RSP || op->mem.base == ZYDIS_REGISTER_RBP;
	for (int i = 0; i < n; i++) {
		const ZydisDecodedOperand *o = &d->ops[i];

		if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.type != ZYDIS_MEMOP_TYPE_MEM)
			continue;
		out->loads |= (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
		out->stores |= (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
	}
}

/* ---- registers ---- */

static uint16_t register_bit(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64)
		return 0;
	return (uint16_t)(1u << (ZydisRegisterGetId(whole) & 15));
}

static void find_registers(const struct decoded *d, struct roles *out)
{
	for (int i = 0; i < d->in.operand_count; i++) {
		const ZydisDecodedOperand *op = &d->ops[i];

		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			out->reads |= register_bit(op->mem.base) | register_bit(op->mem.index);
		} else if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
				out->reads |= register_bit(op->reg.value);
			if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
				out->writes |= register_bit(op->reg.value);
		}
	}
}

/* ---- what the code decides ---- */

/* A register with itself. */
static bool is_cleared(const struct decoded *d)
{
	const ZydisDecodedOperand *a = &d->ops[0], *b = &d->ops[1];

	switch (d->in.mnemonic) {
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_PXOR:
	case ZYDIS_MNEMONIC_XORPS:
	case ZYDIS_MNEMONIC_XORPD:
		return a->type == ZYDIS_OPERAND_TYPE_REGISTER && is_register(b, a->reg.value);
	default:
		return false;
	}
}

static bool is_constant(const struct decoded *d, const struct roles *r)
{
	const ZydisDecodedOperand *op = result_operand(d, r->operation);

	if (r->kind == INSN_CALL || is_cleared(d))
		return true;
	if (r->operation == OPERATION_ADDRESS)
		return r->fixed_address;
	if (r->operation != OPERATION_MOVE)
		return false;
	return r->constant_source || is_immediate(op); /* the latter: push */
}

/* ---- sizes and texts ---- */

static uint8_t float_size(const struct decoded *d)
{
	for (int i = 0; i < d->in.operand_count_visible; i++) {
		switch (d->ops[i].element_type) {
		case ZYDIS_ELEMENT_TYPE_FLOAT32:
			return 4;
		case ZYDIS_ELEMENT_TYPE_FLOAT64:
			return 8;
		default:
			break;
		}
	}
	return 0;
}

static void put_operand(const struct decoded *d, const ZydisDecodedOperand *op, char *text)
{
	ZydisFormatter f;

	text[0] = 0;
	if (!op || ZYAN_FAILED(ZydisFormatterInit(&f, ZYDIS_FORMATTER_STYLE_ATT)))
		return;
	ZydisFormatterSetProperty(&f, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
	ZydisFormatterSetProperty(&f, ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_PADDING_DISABLED);
	ZydisFormatterSetProperty(&f, ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED);
	ZydisFormatterSetProperty(
		&f, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_PADDING_DISABLED);
	if (ZYAN_FAILED(ZydisFormatterFormatOperand(
		    &f, &d->in, op, text, ROLES_TEXT, ZYDIS_RUNTIME_ADDRESS_NONE, NULL)))
		text[0] = 0;
}

static const char *hidden_result(unsigned size)
{
	return size == 8 ? "%rax" : size == 4 ? "%eax" : size == 2 ? "%ax" : "%al";
}

static uint8_t find_size(const struct decoded *d, enum operation operation)
{
	const ZydisDecodedOperand *op = result_operand(d, operation);
	unsigned bits;

	if (!op)
		op = source_operand(d, operation);
	if (!op)
		op = memory_operand(d);
	if (!op)
		return 0;
	bits = is_immediate(op) ? d->in.operand_width : op->size; /* the former: push */
	return (uint8_t)(bits / 8 < 255 ? bits / 8 : 255);
}

static uint64_t find_constant(const struct decoded *d, const struct roles *r)
{
	const ZydisDecodedOperand *op = source_operand(d, r->operation);

	if (r->operation != OPERATION_MOVE || !r->constant_source)
		return 0;
	/* A 32-bit register is written with zeros above. */
	return r->size < 8 ? op->imm.value.u & (~0ull >> (64 - 8 * r->size)) : op->imm.value.u;
}

static int decode(const void *code, size_t n, struct decoded *d)
{
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!n || ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code, n, &d->in, d->ops)))
		return -EBADMSG;
	return 0;
}

int isa_roles(const void *code, size_t n, uint64_t address, struct roles *out)
{
	struct roles r = {0};
	struct decoded d;
	struct insn insn;

	if (isa_decode(code, n, address, &insn) || decode(code, n, &d))
		return -EBADMSG;
	r.kind = insn.kind;
	r.length = insn.length;
	r.operation = classify(&d);
	r.repeats = (d.in.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
					       ZYDIS_ATTRIB_HAS_REPNE)) != 0;
	r.float_size = float_size(&d);
	r.constant_source = is_immediate(source_operand(&d, r.operation));
	r.moves_stack = is_register(result_operand(&d, r.operation), ZYDIS_REGISTER_RSP);
	find_memory(&d, &r);
	find_registers(&d, &r);
	if (is_cleared(&d))
		r.reads &= (uint16_t)~r.writes;
	r.constant_result = is_constant(&d, &r);
	r.size = find_size(&d, r.operation);
	r.constant = find_constant(&d, &r);
	*out = r;
	return 0;
}

int isa_role_texts(const void *code, size_t n, struct role_texts *out)
{
	enum operation operation;
	struct decoded d;

	if (decode(code, n, &d))
		return -EBADMSG;
	operation = classify(&d);
	put_operand(&d, result_operand(&d, operation), out->result);
	put_operand(&d, source_operand(&d, operation), out->source);
	put_operand(&d, memory_operand(&d), out->memory);
	if (has_hidden_result(&d, operation))
		strcpy(out->result, hidden_result(find_size(&d, operation)));
	return 0;
}

/* ---- arguments (the System V ABI) ---- */

static const struct {
	uint8_t number;
	const char *name;
} arguments[] = {{7, "%rdi"}, {6, "%rsi"}, {2, "%rdx"}, {1, "%rcx"}, {8, "%r8"}, {9, "%r9"}};

unsigned isa_argument_register(unsigned argument)
{
	return arguments[argument % 6].number;
}

const char *isa_argument_name(unsigned argument)
{
	return arguments[argument % 6].name;
}
