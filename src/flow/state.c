#include "flow/state.h"

#include <string.h>

/* Variables are named by a place and a part. */
enum {
	PLACE_ENTRY = 0,
	PART_MEMORY = 16, /* what an instruction loads */
	PART_SLOT = 32,   /* and up: a slot where paths meet, by its address */
};

#define NOWHERE UINT32_MAX /* no expression */

#define PLACE_INSN(number) (2 * (number) + 1)
#define PLACE_MEET(block)  (2 * (block) + 2)

void machine_init(struct machine *m, expr_reader *read, void *arg)
{
	*m = (struct machine){.read = read, .arg = arg, .escaped = INT64_MAX};
	exprs_init(&m->exprs);
	m->stack = expr_variable(&m->exprs, PLACE_ENTRY, REG_RSP);
}

void machine_deinit(struct machine *m)
{
	exprs_deinit(&m->exprs);
}

static void state_variables(struct machine *m, struct state *s, uint32_t place)
{
	*s = (struct state){.flags.op = FORM_OTHER};
	for (uint32_t r = 0; r < 16; r++)
		s->reg[r] = expr_variable(&m->exprs, place, r);
}

void state_entry(struct machine *m, struct state *s)
{
	state_variables(m, s, PLACE_ENTRY);
}

void state_unknown(struct machine *m, struct state *s, uint32_t place)
{
	state_variables(m, s, PLACE_MEET(place));
}

/* ---- the stack ---- */

bool state_on_stack(const struct machine *m, uint32_t e, int64_t *offset)
{
	const struct expr *expr = expr_get(&m->exprs, e);

	*offset = 0;
	if (expr->op == EXPR_OFFSET) {
		*offset = (int64_t)expr->value;
		e = expr->a;
		expr = expr_get(&m->exprs, e);
	}
	if (expr->op == EXPR_AND) { /* a stack pointer that was aligned */
		int64_t inner;
		return state_on_stack(m, expr->a, &inner);
	}
	return e == m->stack;
}

static void note_escape(struct machine *m, uint32_t e)
{
	const struct expr *expr = expr_get(&m->exprs, e);
	int64_t offset;

	if (state_on_stack(m, e, &offset)) {
		m->escaped = offset < m->escaped ? offset : m->escaped;
		return;
	}
	/* An array in the frame: the stack pointer, an index and an offset. */
	if (expr->op == EXPR_OFFSET) {
		offset = (int64_t)expr->value;
		expr = expr_get(&m->exprs, expr->a);
	}
	if (expr->op == EXPR_SUM && (expr->a == m->stack || expr->b == m->stack))
		m->escaped = offset < m->escaped ? offset : m->escaped;
}

/* ---- memory ---- */

/* Addresses of tables, and registers that will be restored. */
static bool is_worth_keeping(const struct exprs *x, uint32_t value)
{
	const struct expr *e = expr_get(x, value);

	return e->op == EXPR_CONST || (e->op == EXPR_VARIABLE && e->a == PLACE_ENTRY);
}

static void drop_slot(struct state *s, uint32_t i)
{
	memmove(&s->slots[i], &s->slots[i + 1], (s->nslots - i - 1) * sizeof *s->slots);
	s->nslots--;
}

/* Both addresses are relative to the same value: whether the places share bytes. */
static bool overlap(const struct machine *m, const struct slot *slot, uint32_t address,
	unsigned width, bool *related)
{
	const struct expr *a = expr_get(&m->exprs, slot->address);
	const struct expr *b = expr_get(&m->exprs, address);
	uint32_t base_a = a->op == EXPR_OFFSET ? a->a : slot->address;
	uint32_t base_b = b->op == EXPR_OFFSET ? b->a : address;
	uint64_t at_a = a->op == EXPR_OFFSET || a->op == EXPR_CONST ? a->value : 0;
	uint64_t at_b = b->op == EXPR_OFFSET || b->op == EXPR_CONST ? b->value : 0;

	*related = base_a == base_b || (a->op == EXPR_CONST && b->op == EXPR_CONST);
	return at_a - at_b < width || at_b - at_a < slot->width;
}

/* Something wrote where we do not know, or to what is relative to a value that others are too. */
static void forget_memory(struct machine *m, struct state *s, uint32_t address)
{
	for (uint32_t i = s->nslots; i-- > 0;) {
		struct slot *slot = &s->slots[i];
		int64_t offset;
		bool ours = state_on_stack(m, slot->address, &offset), related = false;
		if (address != NOWHERE)
			overlap(m, slot, address, 1, &related);
		if (related)
			continue; /* it is known whether they overlap */
		if (!ours || offset == m->escaped ||
			(offset > m->escaped && !is_worth_keeping(&m->exprs, slot->value)))
			drop_slot(s, i);
		else if (offset > m->escaped)
			slot->weak = true;
	}
}

/* The oldest of those that matter least. */
static uint32_t least_worth(const struct machine *m, const struct state *s)
{
	for (uint32_t i = 0; i < s->nslots; i++)
		if (!is_worth_keeping(&m->exprs, s->slots[i].value))
			return i;
	return 0;
}

/* What is indexed is not kept: it may be any of several places. */
static void put_slot(struct machine *m, struct state *s, uint32_t address, unsigned width,
	uint32_t value, bool weak)
{
	const struct expr *e = expr_get(&m->exprs, address);

	if (e->op == EXPR_OFFSET)
		e = expr_get(&m->exprs, e->a);
	if (width > 8 || e->op == EXPR_SUM)
		return;
	if (s->nslots == STATE_SLOTS)
		drop_slot(s, least_worth(m, s));
	s->slots[s->nslots++] = (struct slot){address, value, (uint8_t)width, weak};
}

static void store(struct machine *m, struct state *s, uint32_t address, unsigned width,
	uint32_t value, bool weak)
{
	int64_t at;
	bool on_stack = state_on_stack(m, address, &at);

	if (!on_stack) {
		note_escape(m, address);
		forget_memory(m, s, address);
	}
	for (uint32_t i = s->nslots; i-- > 0;) {
		bool related;
		if (overlap(m, &s->slots[i], address, width, &related) && related)
			drop_slot(s, i);
	}
	note_escape(m, value);
	put_slot(m, s, address, width, value, weak);
}

/* An index rather than a pointer, to which an offset in a structure would be added. */
static bool is_index(const struct exprs *x, uint32_t e)
{
	const struct expr *expr = expr_get(x, e);

	if (expr->op == EXPR_SUM)
		return is_index(x, expr->a) && is_index(x, expr->b);
	if (expr->op == EXPR_AND || expr->op == EXPR_LOAD)
		return expr->max <= UINT32_MAX;
	return expr->op != EXPR_VARIABLE;
}

/*
 * Tables are read when their targets are asked for; here it matters only that they are constant.
 * The displacement may lie before the table when the index does not begin at 0.
 */
static bool is_constant_memory(
	struct machine *m, const struct state *s, uint32_t address, unsigned width)
{
	const struct expr *e = expr_get(&m->exprs, address);
	uint64_t scrap;

	if (!m->read || width > 8 || (e->op != EXPR_OFFSET && e->op != EXPR_CONST) ||
		(e->op == EXPR_OFFSET && !is_index(&m->exprs, e->a)))
		return false;
	struct bounds b = expr_bounds(&m->exprs, s->facts, s->nfacts, address);
	uint64_t first = b.max - b.min <= UINT32_MAX && b.min > e->value ? b.min : e->value;
	return m->read(m->arg, first, &scrap, width) == 0;
}

static uint32_t load(struct machine *m, struct state *s, uint32_t address, unsigned width,
	uint32_t number, bool *weak)
{
	for (uint32_t i = s->nslots; i-- > 0;) {
		const struct slot *slot = &s->slots[i];
		if (slot->address != address || slot->width < width)
			continue;
		*weak |= slot->weak;
		return expr_narrow(&m->exprs, slot->value, width);
	}
	if (is_constant_memory(m, s, address, width))
		return expr_load(&m->exprs, address, width);
	uint32_t value = expr_variable(&m->exprs, PLACE_INSN(number), PART_MEMORY);
	value = expr_narrow(&m->exprs, value, width);
	put_slot(m, s, address, width, value, false);
	return value;
}

/* ---- operands ---- */

static uint32_t address_of(
	struct machine *m, const struct state *s, const struct form *f, bool *weak)
{
	struct exprs *x = &m->exprs;
	uint32_t e = expr_const(x, 0);

	if (f->base != REG_NONE) {
		e = s->reg[f->base];
		*weak |= s->weak >> f->base & 1;
	}
	if (f->index != REG_NONE) {
		e = expr_sum(x, e, expr_times(x, s->reg[f->index], f->scale));
		*weak |= s->weak >> f->index & 1;
	}
	return expr_offset(x, e, f->displacement);
}

/* Its lowest bytes, the rest zero. */
static uint32_t value_of(struct machine *m, struct state *s, const struct form *f,
	const struct form_operand *op, uint32_t number, bool *weak)
{
	struct exprs *x = &m->exprs;

	switch ((enum form_operand_type)op->type) {
	case FORM_REGISTER:
		*weak |= s->weak >> op->reg & 1;
		return expr_narrow(x, s->reg[op->reg], op->size);
	case FORM_HIGH:
		*weak |= s->weak >> op->reg & 1;
		return expr_narrow(x, expr_right(x, s->reg[op->reg], 8), 1);
	case FORM_IMMEDIATE:
		return expr_const(x, (uint64_t)f->immediate & expr_mask(op->size));
	case FORM_MEMORY:
		if (f->other_space)
			return expr_narrow(
				x, expr_variable(x, PLACE_INSN(number), PART_MEMORY), op->size);
		return load(m, s, address_of(m, s, f, weak), op->size, number, weak);
	case FORM_ABSENT:
		break;
	}
	return expr_variable(x, PLACE_INSN(number), PART_MEMORY);
}

static void set_register(struct machine *m, struct state *s, unsigned reg, uint32_t value,
	bool weak, uint32_t number)
{
	if (expr_is_long(&m->exprs, value))
		value = expr_variable(&m->exprs, PLACE_INSN(number), reg);
	if (reg != REG_RSP && reg != REG_RBP)
		note_escape(m, value);
	s->reg[reg] = value;
	s->weak = (uint16_t)((s->weak & ~(1u << reg)) | (unsigned)weak << reg);
}

static void write(struct machine *m, struct state *s, const struct form *f,
	const struct form_operand *op, uint32_t value, bool weak, uint32_t number)
{
	struct exprs *x = &m->exprs;

	if (op->type == FORM_MEMORY && f->other_space) {
		forget_memory(m, s, NOWHERE);
	} else if (op->type == FORM_MEMORY) {
		bool ignored = false;
		uint32_t address = address_of(m, s, f, &ignored);
		store(m, s, address, op->size, expr_narrow(x, value, op->size), weak);
	} else if (op->type == FORM_REGISTER && op->size >= 4) {
		set_register(m, s, op->reg, expr_narrow(x, value, op->size), weak, number);
	} else if (op->type == FORM_REGISTER || op->type == FORM_HIGH) {
		set_register(m, s, op->reg, expr_variable(x, PLACE_INSN(number), op->reg), false,
			number);
	}
}

/* ---- instructions ---- */

static void forget_registers(struct machine *m, struct state *s, uint16_t which, uint32_t number)
{
	for (unsigned r = 0; r < 16; r++)
		if (which >> r & 1)
			set_register(m, s, r, expr_variable(&m->exprs, PLACE_INSN(number), r),
				false, number);
}

static void run_unknown(struct machine *m, struct state *s, const struct form *f, uint32_t number)
{
	if (f->stores)
		forget_memory(m, s, NOWHERE);
	forget_registers(m, s, f->writes, number);
}

static void run_call(struct machine *m, struct state *s, const struct form *f, uint32_t number)
{
	s->flags.op = FORM_OTHER;
	forget_memory(m, s, NOWHERE);
	forget_registers(m, s, f->writes & (uint16_t)~REGS_KEPT, number);
}

static uint32_t compute(
	struct machine *m, const struct form *f, uint32_t a, uint32_t b, bool *known)
{
	struct exprs *x = &m->exprs;
	const struct expr *eb = expr_get(x, b);

	switch ((enum form_op)f->op) {
	case FORM_MOVE:
		return b;
	case FORM_MOVE_SIGNED:
		return expr_signed(x, b, f->from.size);
	case FORM_ADD:
		if (f->from.type == FORM_IMMEDIATE)
			return expr_offset(x, a, (uint64_t)f->immediate);
		return expr_sum(x, a, b);
	case FORM_SUBTRACT:
		if (f->from.type == FORM_IMMEDIATE)
			return expr_offset(x, a, -(uint64_t)f->immediate);
		if (a == b)
			return expr_const(x, 0);
		if (eb->op == EXPR_CONST)
			return expr_offset(x, a, -eb->value);
		break;
	case FORM_AND:
		if (f->from.type == FORM_IMMEDIATE)
			return expr_and(x, a, (uint64_t)f->immediate);
		if (eb->op == EXPR_CONST)
			return expr_and(x, a, eb->value);
		if (expr_is_const(x, a))
			return expr_and(x, b, expr_get(x, a)->value);
		break;
	case FORM_XOR:
		if (a == b)
			return expr_const(x, 0);
		break;
	case FORM_SHIFT_LEFT:
		return expr_left(x, a, (unsigned)f->immediate & (f->to.size == 8 ? 63 : 31));
	case FORM_SHIFT_RIGHT:
		return expr_right(x, a, (unsigned)f->immediate & (f->to.size == 8 ? 63 : 31));
	case FORM_MULTIPLY:
		return expr_times(x, b, (uint64_t)f->immediate);
	default:
		break;
	}
	*known = false;
	return a;
}

/* The flags of a subtraction are those of a comparison; and sets them as test does. */
static void set_flags(struct state *s, const struct form *f, uint32_t a, uint32_t b)
{
	if (!f->flags_written)
		return;
	s->flags.op = FORM_OTHER;
	if (f->op == FORM_SUBTRACT || f->op == FORM_COMPARE)
		s->flags = (struct comparison){FORM_COMPARE, f->to.size, a, b};
	else if (f->op == FORM_TEST && a == b)
		s->flags = (struct comparison){FORM_TEST, f->to.size, a, b};
}

static void run_arithmetic(
	struct machine *m, struct state *s, const struct form *f, uint32_t number)
{
	bool weak = false, known = true;
	bool uses_to = f->op != FORM_MOVE && f->op != FORM_MOVE_SIGNED && f->op != FORM_MULTIPLY;
	uint32_t b = value_of(m, s, f, &f->from, number, &weak);
	uint32_t a = uses_to ? value_of(m, s, f, &f->to, number, &weak) : b;

	if (f->op != FORM_COMPARE && f->op != FORM_TEST) {
		uint32_t value = compute(m, f, a, b, &known);
		if (!known)
			value = expr_variable(&m->exprs, PLACE_INSN(number), PART_MEMORY + 1);
		set_flags(s, f, a, b);
		write(m, s, f, &f->to, value, known && weak, number);
	} else {
		set_flags(s, f, a, b);
	}
}

static void run_push(struct machine *m, struct state *s, const struct form *f, uint32_t number)
{
	bool weak = false;
	uint32_t value = value_of(m, s, f, &f->from, number, &weak);

	if (f->from.type == FORM_IMMEDIATE)
		value = expr_const(&m->exprs, (uint64_t)f->immediate);
	s->reg[REG_RSP] = expr_offset(&m->exprs, s->reg[REG_RSP], (uint64_t)-8);
	store(m, s, s->reg[REG_RSP], 8, value, weak);
}

static void run_pop(struct machine *m, struct state *s, const struct form *f, uint32_t number)
{
	bool weak = false;
	uint32_t value = load(m, s, s->reg[REG_RSP], 8, number, &weak);

	s->reg[REG_RSP] = expr_offset(&m->exprs, s->reg[REG_RSP], 8);
	write(m, s, f, &f->to, value, weak, number);
}

static void run_leave(struct machine *m, struct state *s, uint32_t number)
{
	bool weak = s->weak >> REG_RBP & 1;

	s->reg[REG_RSP] = expr_offset(&m->exprs, s->reg[REG_RBP], 8);
	uint32_t value = load(m, s, s->reg[REG_RBP], 8, number, &weak);
	set_register(m, s, REG_RBP, value, weak, number);
}

static void run_address(struct machine *m, struct state *s, const struct form *f, uint32_t number)
{
	bool weak = false;
	uint32_t address = address_of(m, s, f, &weak);

	if (f->other_space)
		forget_registers(m, s, f->writes, number);
	else
		write(m, s, f, &f->to, address, weak, number);
}

void state_step(struct machine *m, struct state *s, const struct form *f, uint32_t number)
{
	if (f->kind == INSN_CALL || f->kind == INSN_CALL_INDIRECT) {
		run_call(m, s, f, number);
		return;
	}
	switch ((enum form_op)f->op) {
	case FORM_TRANSFER:
		return;
	case FORM_OTHER:
		run_unknown(m, s, f, number);
		if (f->flags_written)
			s->flags.op = FORM_OTHER;
		return;
	case FORM_PUSH:
		run_push(m, s, f, number);
		return;
	case FORM_POP:
		run_pop(m, s, f, number);
		return;
	case FORM_LEAVE:
		run_leave(m, s, number);
		return;
	case FORM_ADDRESS:
		run_address(m, s, f, number);
		return;
	default:
		run_arithmetic(m, s, f, number);
		return;
	}
}

uint32_t state_operand(
	struct machine *m, struct state *s, const struct form *f, uint32_t number, bool *weak)
{
	return value_of(m, s, f, &f->from, number, weak);
}
