#include "isa/quick.h"
#include "isa/quick_internal.h"

#define ARITHMETIC FORM_FLAGS
#define LOGIC      (FORM_FLAGS & ~FORM_AF) /* leaves the auxiliary flag undefined */

enum access { READ = 1, WRITE = 2, CHANGE = 3 };

struct maker {
	const struct quick *q;
	struct form *f;
	uint64_t address;
	uint8_t size; /* of operands */
};

static uint8_t flags_of_condition(unsigned condition)
{
	static const uint8_t flags[] = {FORM_OF, FORM_CF, FORM_ZF, FORM_CF | FORM_ZF, FORM_SF,
		FORM_PF, FORM_SF | FORM_OF, FORM_ZF | FORM_SF | FORM_OF};

	return flags[condition >> 1 & 7];
}

static bool is_high(const struct quick *q, unsigned reg, unsigned size)
{
	return size == 1 && !q->rex && reg >= 4 && reg < 8;
}

static void touch_register(struct maker *m, unsigned reg, unsigned size, enum access access)
{
	if (access & READ)
		m->f->reads |= (uint16_t)(1u << reg);
	if (access & WRITE)
		m->f->writes |= (uint16_t)(1u << reg);
	if (access & WRITE && size >= 4)
		m->f->kills |= (uint16_t)(1u << reg);
}

static void set_register(
	const struct maker *m, struct form_operand *to, unsigned reg, unsigned size)
{
	bool high = is_high(m->q, reg, size);

	*to = (struct form_operand){
		high ? FORM_HIGH : FORM_REGISTER, (uint8_t)(high ? reg - 4 : reg), (uint8_t)size};
}

/* Which register: of ah, ch, dh, bh the whole. */
static unsigned whole(const struct maker *m, unsigned reg, unsigned size)
{
	return is_high(m->q, reg, size) ? reg - 4 : reg;
}

static uint8_t below(int32_t displacement)
{
	if (displacement >= 0)
		return 0;
	return displacement > -FORM_BELOW_MAX ? (uint8_t)-displacement : FORM_BELOW_MAX;
}

static void find_below(struct maker *m, bool address)
{
	const struct quick *q = m->q;
	bool vague = address || q->index != REG_NONE;

	if (address && q->reg == REG_RSP && m->size == 8)
		return;
	if (q->base == REG_RSP && vague)
		m->f->copies_rsp = true;
	else if (q->base == REG_RSP)
		m->f->below_rsp = below(q->displacement);
	else if (q->base == REG_RBP)
		m->f->below_rbp = vague ? FORM_BELOW_MAX : below(q->displacement);
}

static void touch_memory(struct maker *m, enum access access)
{
	const struct quick *q = m->q;

	if (q->base != REG_NONE)
		m->f->reads |= (uint16_t)(1u << q->base);
	if (q->index != REG_NONE)
		m->f->reads |= (uint16_t)(1u << q->index);
	m->f->loads |= (access & READ) != 0;
	m->f->stores |= (access & WRITE) != 0;
	find_below(m, !access);
}

static void set_memory(struct maker *m, struct form_operand *to, unsigned size)
{
	const struct quick *q = m->q;

	*to = (struct form_operand){FORM_MEMORY, REG_NONE, (uint8_t)size};
	m->f->base = q->base;
	m->f->index = q->index;
	m->f->scale = q->index == REG_NONE ? 0 : q->scale;
	m->f->displacement = (uint64_t)(int64_t)q->displacement;
	if (q->rip)
		m->f->displacement += m->address + q->length;
}

/* The operand that modrm names; `to` may be NULL. */
static void take_rm(struct maker *m, struct form_operand *to, unsigned size, enum access access)
{
	const struct quick *q = m->q;

	if (q->memory) {
		touch_memory(m, access);
		if (to)
			set_memory(m, to, size);
	} else {
		touch_register(m, whole(m, q->rm, size), size, access);
		if (to)
			set_register(m, to, q->rm, size);
	}
}

static void take_reg(struct maker *m, struct form_operand *to, unsigned size, enum access access)
{
	touch_register(m, whole(m, m->q->reg, size), size, access);
	if (to)
		set_register(m, to, m->q->reg, size);
}

static void take_constant(struct maker *m)
{
	m->f->from = (struct form_operand){FORM_IMMEDIATE, REG_NONE, m->size};
	m->f->immediate = m->q->immediate;
}

static void set_flags(struct form *f, uint8_t written, uint8_t killed, uint8_t read)
{
	f->flags_written = written;
	f->flags_read = read;
	f->flags_killed = killed & (uint8_t)~read;
}

/* add or adc sbb and sub xor cmp; the number is that of the machine. */
static enum form_op start_arithmetic(struct maker *m, unsigned number)
{
	static const uint8_t ops[] = {FORM_ADD, FORM_OTHER, FORM_OTHER, FORM_OTHER, FORM_AND,
		FORM_SUBTRACT, FORM_XOR, FORM_COMPARE};
	bool logic = number == 1 || number == 3 || number == 4 || number == 6;
	bool carry = number == 2 || number == 3;

	set_flags(m->f, FORM_FLAGS, logic ? LOGIC : ARITHMETIC, carry ? FORM_CF : 0);
	m->f->op = ops[number];
	return m->f->op;
}

/* A register with itself gives 0 whatever it held. */
static void clear(struct maker *m, unsigned number)
{
	if ((number == 5 || number == 6) && !m->q->memory && m->q->reg == m->q->rm && m->size >= 4)
		m->f->reads &= (uint16_t)~m->f->kills;
}

static void copy_stack(struct maker *m, unsigned reg)
{
	if (reg == REG_RSP && m->size == 8)
		m->f->copies_rsp = true;
}

static void make_arithmetic(struct maker *m)
{
	unsigned number = m->q->opcode >> 3;
	struct form *f = m->f;
	enum access access = number == 7 ? READ : CHANGE;
	bool named = start_arithmetic(m, number) != FORM_OTHER;
	struct form_operand *to = named ? &f->to : NULL, *from = named ? &f->from : NULL;

	switch (m->q->opcode & 7) {
	case 0:
	case 1:
		take_rm(m, to, m->size, access);
		take_reg(m, from, m->size, READ);
		copy_stack(m, m->q->reg);
		break;
	case 2:
	case 3:
		take_reg(m, to, m->size, access);
		take_rm(m, from, m->size, READ);
		if (!m->q->memory)
			copy_stack(m, m->q->rm);
		break;
	default: /* rax and an immediate */
		touch_register(m, REG_RAX, m->size, access);
		if (named) {
			set_register(m, to, REG_RAX, m->size);
			take_constant(m);
		}
		return;
	}
	clear(m, number);
}

static void make_immediate_arithmetic(struct maker *m)
{
	unsigned number = m->q->reg & 7;
	bool named = start_arithmetic(m, number) != FORM_OTHER;

	take_rm(m, named ? &m->f->to : NULL, m->size, number == 7 ? READ : CHANGE);
	if (named)
		take_constant(m);
}

static void make_test(struct maker *m, bool immediate)
{
	m->f->op = FORM_TEST;
	set_flags(m->f, FORM_FLAGS, LOGIC, 0);
	take_rm(m, &m->f->to, m->size, READ);
	if (immediate) {
		take_constant(m);
	} else {
		take_reg(m, &m->f->from, m->size, READ);
		copy_stack(m, m->q->reg);
	}
}

static void make_move(struct maker *m)
{
	struct form *f = m->f;

	f->op = FORM_MOVE;
	if (m->q->opcode & 2) {
		take_reg(m, &f->to, m->size, WRITE);
		take_rm(m, &f->from, m->size, READ);
		if (!m->q->memory)
			copy_stack(m, m->q->rm);
	} else {
		take_rm(m, &f->to, m->size, WRITE);
		take_reg(m, &f->from, m->size, READ);
		copy_stack(m, m->q->reg);
	}
}

static void make_extension(struct maker *m, enum form_op op, unsigned from)
{
	m->f->op = (uint8_t)op;
	take_reg(m, &m->f->to, m->size, WRITE);
	take_rm(m, &m->f->from, from, READ);
}

static void make_shift(struct maker *m)
{
	unsigned extension = m->q->reg & 7;
	uint8_t killed = FORM_CF | FORM_PF | FORM_ZF | FORM_SF;

	set_flags(m->f, FORM_FLAGS, m->q->immediate & 31 ? killed : 0, 0);
	m->f->op = extension == 4   ? FORM_SHIFT_LEFT
		   : extension == 5 ? FORM_SHIFT_RIGHT
				    : FORM_OTHER;
	take_rm(m, m->f->op == FORM_OTHER ? NULL : &m->f->to, m->size, CHANGE);
	if (m->f->op != FORM_OTHER)
		take_constant(m);
	m->f->immediate &= 0xff;
}

/* push and pop of a register. */
static void make_push(struct maker *m, unsigned reg)
{
	bool pop = m->q->opcode & 8;

	m->f->op = pop ? FORM_POP : FORM_PUSH;
	touch_register(m, reg, 8, pop ? WRITE : READ);
	touch_register(m, REG_RSP, 8, CHANGE);
	m->f->loads = pop;
	m->f->stores = !pop;
	set_register(m, pop ? &m->f->to : &m->f->from, reg, 8);
	m->f->copies_rsp = !pop && reg == REG_RSP;
}

static void make_constant(struct maker *m, unsigned reg)
{
	m->size = m->q->rex & 8 ? 8 : 4;
	m->f->op = FORM_MOVE;
	touch_register(m, reg, m->size, WRITE);
	set_register(m, &m->f->to, reg, m->size);
	take_constant(m);
}

static void make_transfer(struct maker *m)
{
	struct form *f = m->f;

	f->op = FORM_TRANSFER;
	if (f->kind == INSN_BRANCH) {
		f->condition = m->q->opcode & 15;
		f->flags_read = flags_of_condition(f->condition);
	}
	if (f->kind == INSN_CALL || f->kind == INSN_CALL_INDIRECT || f->kind == INSN_RETURN) {
		touch_register(m, REG_RSP, 8, CHANGE);
		f->stores = f->kind != INSN_RETURN;
		f->loads = f->kind == INSN_RETURN;
	}
	if (f->kind == INSN_CALL_INDIRECT || f->kind == INSN_JUMP_INDIRECT)
		take_rm(m, &f->from, 8, READ);
}

/* inc, dec and push of the opcode that also jumps. */
static bool make_group(struct maker *m)
{
	unsigned extension = m->q->reg & 7;

	if (extension > 1)
		return false;
	m->f->op = FORM_ADD;
	set_flags(m->f, FORM_FLAGS & ~FORM_CF, FORM_FLAGS & ~FORM_CF, 0);
	take_rm(m, &m->f->to, m->size, CHANGE);
	m->f->from = (struct form_operand){FORM_IMMEDIATE, REG_NONE, m->size};
	m->f->immediate = extension ? -1 : 1;
	return true;
}

static bool make_unary(struct maker *m)
{
	unsigned extension = m->q->reg & 7;

	if (extension == 0) {
		make_test(m, true);
		return true;
	}
	if (extension == 3)
		set_flags(m->f, FORM_FLAGS, ARITHMETIC, 0);
	take_rm(m, NULL, m->size, CHANGE);
	return true;
}

static bool make_rare(struct maker *m)
{
	unsigned opcode = m->q->opcode;

	switch (opcode & ~15u) {
	case 0x140: /* cmov: the destination is written or not */
		m->f->flags_read = flags_of_condition(opcode & 15);
		m->f->writes |= (uint16_t)(1u << m->q->reg);
		take_rm(m, NULL, m->size, READ);
		if (!m->q->memory)
			copy_stack(m, m->q->rm);
		return true;
	case 0x190: /* set */
		m->f->flags_read = flags_of_condition(opcode & 15);
		take_rm(m, NULL, 1, WRITE);
		return true;
	default:
		break;
	}
	if (opcode == 0x90 || opcode == 0x11f) /* nop; that it has an address means nothing */
		return true;
	if (opcode != 0x1af) /* imul */
		return false;
	set_flags(m->f, FORM_FLAGS, FORM_CF | FORM_OF, 0);
	take_reg(m, NULL, m->size, CHANGE);
	take_rm(m, NULL, m->size, READ);
	if (!m->q->memory)
		copy_stack(m, m->q->rm);
	return true;
}

static bool make(struct maker *m)
{
	unsigned opcode = m->q->opcode;

	if (m->f->kind != INSN_PLAIN) {
		make_transfer(m);
		return true;
	}
	if (opcode < 0x40) {
		make_arithmetic(m);
		return true;
	}
	switch (opcode) {
	case 0x50 ... 0x5f:
		make_push(m, (opcode & 7) | (m->q->rex & 1u) << 3);
		return true;
	case 0x63:
		make_extension(m, FORM_MOVE_SIGNED, 4);
		return true;
	case 0x80:
	case 0x81:
	case 0x83:
		make_immediate_arithmetic(m);
		return true;
	case 0x84:
	case 0x85:
		make_test(m, false);
		return true;
	case 0x88 ... 0x8b:
		make_move(m);
		return true;
	case 0x8d:
		m->f->op = FORM_ADDRESS;
		take_reg(m, &m->f->to, m->size, WRITE);
		take_rm(m, &m->f->from, 8, 0);
		return true;
	case 0xa8:
	case 0xa9:
		m->f->op = FORM_TEST;
		set_flags(m->f, FORM_FLAGS, LOGIC, 0);
		touch_register(m, REG_RAX, m->size, READ);
		set_register(m, &m->f->to, REG_RAX, m->size);
		take_constant(m);
		return true;
	case 0xb8 ... 0xbf:
		make_constant(m, (opcode & 7) | (m->q->rex & 1u) << 3);
		return true;
	case 0xc1:
		make_shift(m);
		return true;
	case 0xc6:
	case 0xc7:
		m->f->op = FORM_MOVE;
		take_rm(m, &m->f->to, m->size, WRITE);
		take_constant(m);
		return true;
	case 0xf6:
	case 0xf7:
		return make_unary(m);
	case 0xff:
		return make_group(m);
	case 0x1b6:
	case 0x1b7:
		make_extension(m, FORM_MOVE, opcode & 1 ? 2 : 1);
		return true;
	case 0x1be:
	case 0x1bf:
		make_extension(m, FORM_MOVE_SIGNED, opcode & 1 ? 2 : 1);
		return true;
	default:
		return make_rare(m);
	}
}

bool quick_form(const uint8_t *code, size_t n, uint64_t address, struct form *out)
{
	struct quick q;
	struct form f = {.base = REG_NONE,
		.index = REG_NONE,
		.to.reg = REG_NONE,
		.from.reg = REG_NONE,
		.condition = FORM_NO_CONDITION};

	if (!quick_take_apart(code, n, &q))
		return false;
	f.length = q.length;
	f.kind = (uint8_t)quick_kind(&q);
	/* Most opcodes below 0x100 with an even number work on bytes. */
	bool bytes = q.opcode < 0x100 && !(q.opcode & 1) && q.opcode != 0x8d && q.opcode != 0x63;
	struct maker m = {.q = &q,
		.f = &f,
		.address = address,
		.size = bytes       ? 1
			: q.rex & 8 ? 8
				    : 4};
	if (!make(&m))
		return false;
	f.kills &= (uint16_t)~f.reads;
	*out = f;
	return true;
}
