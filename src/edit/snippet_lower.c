#include <errno.h>
#include <string.h>

#include "edit/snippet.h"
#include "edit/snippet_plan.h"
#include "isa/encode.h"
#include "isa/form.h"
#include "isa/reference.h"

/* A jump that is not filled in. */
struct open_jump {
	uint32_t offset; /* of its displacement */
	uint8_t to;      /* statement; of one that leaves: number of its argument */
};

#define CALL_WORDS 2 /* on the stack: the values, and in the first the result */

struct lowering {
	struct plan plan;
	struct snippet_code *out;
	struct buf *b;
	uint16_t free; /* of the helpers */
	uint32_t start[SNIPPET_STATEMENTS + 1];
	struct open_jump inside[SNIPPET_STATEMENTS], outside[SNIPPET_STATEMENTS];
	unsigned ninside, noutside;
	int32_t lowered; /* rsp is, here */
	int err;
};

/* ---- the code around ---- */

/* From here on the stack pointer is so much lower. */
static void note_shift(struct lowering *l, int32_t lowered)
{
	if (l->lowered != lowered)
		*vec_add(&l->out->shifts) =
			(struct snippet_shift){(uint32_t)l->b->n, (uint32_t)lowered};
	l->lowered = lowered;
}

static struct encode_memory on_stack(int32_t displacement)
{
	return (struct encode_memory){
		.base = REG_RSP, .index = REG_NONE, .scale = 1, .displacement = displacement};
}

static void lower_stack_to(struct lowering *l, int32_t lowered)
{
	struct encode_memory m = on_stack(l->lowered - lowered);

	if (l->lowered != lowered)
		encode_memory(l->b, ENCODE_ADDRESS, REG_RSP, &m);
	note_shift(l, lowered);
}

static void begin(struct lowering *l)
{
	lower_stack_to(l, l->plan.lowered);
	for (unsigned i = 0; i < l->plan.nsaved; i++) {
		const struct saved *s = &l->plan.saved[i];
		struct encode_memory m = on_stack(s->slot);
		if (s->in != REG_NONE)
			encode_registers(l->b, ENCODE_LOAD, s->in, s->reg);
		else
			encode_memory(l->b, ENCODE_STORE, s->reg, &m);
	}
	if (l->plan.kept_flags)
		encode_save_flags(l->b, l->plan.kept_flags & FORM_OF);
}

static void end(struct lowering *l)
{
	if (l->plan.kept_flags)
		encode_restore_flags(l->b, l->plan.kept_flags & FORM_OF);
	for (unsigned i = 0; i < l->plan.nsaved; i++) {
		const struct saved *s = &l->plan.saved[i];
		struct encode_memory m = on_stack(s->slot);
		if (s->in != REG_NONE)
			encode_registers(l->b, ENCODE_LOAD, s->reg, s->in);
		else
			encode_memory(l->b, ENCODE_LOAD, s->reg, &m);
	}
	lower_stack_to(l, 0);
}

/* ---- operands, as code ---- */

static uint8_t take_helper(struct lowering *l)
{
	uint8_t reg = plan_choose(l->free);

	l->free &= (uint16_t) ~(1u << reg);
	return reg;
}

static void add_fixup(struct lowering *l, size_t at, uint64_t target, bool jumps)
{
	if (at)
		*vec_add(&l->out->fixups) = (struct snippet_fixup){.offset = (uint32_t)at,
			.end = (uint32_t)l->b->n,
			.target = target,
			.jumps = jumps};
}

/* Memory, and what it is relative to when that is rip. */
struct address {
	struct encode_memory m;
	uint64_t target;
};

static struct address frame_address(const struct lowering *l, uint8_t reg)
{
	int32_t slot = l->plan.place->variable[reg - SNIPPET_VARIABLE0].slot;
	struct address a = {.m = on_stack(slot + l->lowered)};

	if (l->plan.place->variable[reg - SNIPPET_VARIABLE0].base == REG_RBP)
		a.m = (struct encode_memory){
			.base = REG_RBP, .index = REG_NONE, .scale = 1, .displacement = slot};
	return a;
}

static void with(struct lowering *l, enum encode_op op, uint8_t reg, const struct address *a)
{
	add_fixup(l, encode_memory(l->b, op, reg, &a->m), a->target, false);
}

/* A register of the snippet in one of the machine; where it is none, REG_NONE. */
static uint8_t machine_register(struct lowering *l, uint8_t reg)
{
	if (reg == SNIPPET_NO)
		return REG_NONE;
	if (!plan_in_frame(&l->plan, reg))
		return l->plan.reg[reg];
	struct address a = frame_address(l, reg);
	uint8_t helper = take_helper(l);
	with(l, ENCODE_LOAD, helper, &a);
	return helper;
}

static struct address address_of(struct lowering *l, const struct operand *o)
{
	struct address a = {.m = {.scale = o->scale, .thread = o->space == SPACE_THREAD}};
	uint64_t sum;

	if (o->type == OPERAND_REGISTER)
		return frame_address(l, o->base);
	sum = plan_sum(&l->plan, o);
	a.m.base = machine_register(l, o->base);
	a.m.index = machine_register(l, o->index);
	if (o->space == SPACE_IMAGE && !plan_is_absolute(&l->plan, o)) {
		struct address whole = {
			.m = {.base = ENCODE_RIP, .index = REG_NONE, .scale = 1}, .target = sum};
		if (a.m.index == REG_NONE)
			return whole;
		a.m.base = take_helper(l);
		with(l, ENCODE_ADDRESS, a.m.base, &whole);
		return a;
	}
	if ((int64_t)sum != (int32_t)sum)
		l->err = -ERANGE;
	a.m.displacement = (int32_t)sum;
	return a;
}

/* Memory that the instruction names; what is on the stack is further up while that is lowered. */
static struct address named_address(const struct lowering *l, const struct operand *o)
{
	const struct reference *r = &l->plan.place->memory[o->base];
	struct address a = {.m = {.base = r->base, .index = r->index, .scale = r->scale}};

	if (r->relative) {
		a.m.base = ENCODE_RIP;
		a.target = r->displacement;
		return a;
	}
	a.m.displacement = (int32_t)r->displacement;
	if (r->base == REG_RSP)
		a.m.displacement += l->lowered;
	return a;
}

static void load(struct lowering *l, uint8_t reg, const struct operand *o)
{
	struct address a;

	if (o->type == OPERAND_NAMED) {
		a = named_address(l, o);
		with(l, ENCODE_ADDRESS, reg, &a);
	} else if (o->type == OPERAND_CONSTANT || plan_is_immediate(&l->plan, o)) {
		encode_constant(l->b, reg, plan_sum(&l->plan, o));
	} else if (plan_is_memory(&l->plan, o) || o->type == OPERAND_ADDRESS) {
		a = address_of(l, o);
		with(l, o->type == OPERAND_ADDRESS ? ENCODE_ADDRESS : ENCODE_LOAD, reg, &a);
	} else if (l->plan.reg[o->base] != reg) {
		encode_registers(l->b, ENCODE_LOAD, reg, l->plan.reg[o->base]);
	}
}

static uint8_t value_in_register(struct lowering *l, const struct operand *o)
{
	if (o->type == OPERAND_REGISTER && !plan_in_frame(&l->plan, o->base))
		return l->plan.reg[o->base];
	uint8_t reg = take_helper(l);
	load(l, reg, o);
	return reg;
}

/* ---- statements ---- */

static void make_set(struct lowering *l, const struct statement *s)
{
	struct address a;

	if (!plan_is_memory(&l->plan, &s->left)) {
		load(l, l->plan.reg[s->left.base], &s->right);
	} else if (plan_is_immediate(&l->plan, &s->right)) {
		a = address_of(l, &s->left);
		add_fixup(l,
			encode_immediate(
				l->b, ENCODE_STORE, &a.m, (int32_t)plan_sum(&l->plan, &s->right)),
			a.target, false);
	} else {
		uint8_t reg = value_in_register(l, &s->right);
		a = address_of(l, &s->left);
		with(l, ENCODE_STORE, reg, &a);
	}
}

/* A register, by lea where nobody wants flags. */
static void add_to_register(
	struct lowering *l, uint8_t reg, const struct statement *s, uint8_t value, bool told)
{
	bool down = s->type == STATEMENT_SUB;
	struct encode_memory m = {.base = reg, .index = REG_NONE, .scale = 1};

	if (plan_is_immediate(&l->plan, &s->right)) {
		int32_t by = (int32_t)plan_sum(&l->plan, &s->right);
		m.displacement = down ? -by : by;
		if (told)
			encode_register_immediate(l->b, ENCODE_ADD, reg, m.displacement);
		else
			encode_memory(l->b, ENCODE_ADDRESS, reg, &m);
	} else if (told || down) {
		encode_registers(l->b, down ? ENCODE_SUB : ENCODE_ADD, reg, value);
	} else {
		m.index = value;
		encode_memory(l->b, ENCODE_ADDRESS, reg, &m);
	}
}

/*
 * add and sub of a constant are two operations for the front of an Intel core where inc and dec
 * are three, unless memory is named by how far it is or with an index (measured: a counter by add
 * takes 0.11 ns, by inc 0.17).
 */
static bool steps(const struct lowering *l, const struct address *a, const struct statement *s)
{
	return plan_is_step(&l->plan, s) && (a->m.base == ENCODE_RIP || a->m.index != REG_NONE ||
						    l->plan.place->live & LIVE_FLAGS(FORM_CF));
}

/* In one instruction. */
static void add_to_memory(
	struct lowering *l, const struct address *a, const struct statement *s, uint8_t value)
{
	bool down = s->type == STATEMENT_SUB;
	enum encode_op op = down ? ENCODE_SUB_TO : ENCODE_ADD_TO;
	size_t at;

	if (s->atomic)
		encode_lock(l->b);
	if (steps(l, a, s))
		at = encode_step(l->b, &a->m, down != (plan_sum(&l->plan, &s->right) != 1));
	else if (plan_is_immediate(&l->plan, &s->right))
		at = encode_immediate(l->b, op, &a->m, (int32_t)plan_sum(&l->plan, &s->right));
	else
		at = encode_memory(l->b, op, value, &a->m);
	add_fixup(l, at, a->target, false);
}

static void make_sum(struct lowering *l, const struct statement *s, bool told)
{
	uint8_t value = REG_NONE;

	if (plan_takes_memory(&l->plan, s)) {
		struct address from = address_of(l, &s->right);

		with(l, ENCODE_SUB, l->plan.reg[s->left.base], &from);
		return;
	}
	if (!plan_is_immediate(&l->plan, &s->right))
		value = value_in_register(l, &s->right);
	if (!plan_is_memory(&l->plan, &s->left)) {
		add_to_register(l, l->plan.reg[s->left.base], s, value, told);
		return;
	}
	struct address a = address_of(l, &s->left);
	if (s->atomic || l->plan.in_one) {
		add_to_memory(l, &a, s, value);
		return;
	}
	uint8_t reg = take_helper(l);
	with(l, ENCODE_LOAD, reg, &a);
	add_to_register(l, reg, s, value, told);
	with(l, ENCODE_STORE, reg, &a);
}

static void compare(struct lowering *l, const struct statement *s)
{
	bool immediate = plan_is_immediate(&l->plan, &s->right);
	int32_t number = immediate ? (int32_t)plan_sum(&l->plan, &s->right) : 0;
	uint8_t value = immediate ? REG_NONE : value_in_register(l, &s->right);

	if (plan_is_memory(&l->plan, &s->left)) {
		struct address a = address_of(l, &s->left);
		if (!immediate) {
			with(l, ENCODE_COMPARE_TO, value, &a);
			return;
		}
		size_t at = encode_immediate(l->b, ENCODE_COMPARE, &a.m, number);
		add_fixup(l, at, a.target, false);
		return;
	}
	uint8_t left = value_in_register(l, &s->left);
	if (!immediate)
		encode_registers(l->b, ENCODE_COMPARE, left, value);
	else if (!number)
		encode_test(l->b, left);
	else
		encode_register_immediate(l->b, ENCODE_COMPARE, left, number);
}

static void put_value(struct lowering *l, const struct operand *o, int32_t word)
{
	struct encode_memory m = on_stack(8 * word);

	l->free = l->plan.helpers;
	if (o->type == OPERAND_NONE)
		return;
	if (plan_is_immediate(&l->plan, o))
		encode_immediate(l->b, ENCODE_STORE, &m, (int32_t)plan_sum(&l->plan, o));
	else
		encode_memory(l->b, ENCODE_STORE, value_in_register(l, o), &m);
}

/* Where a register of the snippet is to be set: itself, or on its way to the frame a helper. */
static uint8_t result_register(struct lowering *l, const struct operand *o)
{
	return plan_is_memory(&l->plan, o) ? plan_choose(l->plan.helpers) : l->plan.reg[o->base];
}

static void keep_result(struct lowering *l, const struct operand *o, uint8_t reg)
{
	if (!plan_is_memory(&l->plan, o))
		return;
	struct address a = frame_address(l, o->base);
	with(l, ENCODE_STORE, reg, &a);
}

/* The stack pointer goes below what is in use only for the call: most places do not come here. */
static void make_call(struct lowering *l, const struct statement *s)
{
	struct encode_memory m = on_stack(0);

	lower_stack_to(l, l->plan.lowered + l->plan.reach + 8 * CALL_WORDS);
	put_value(l, &s->right, 0);
	put_value(l, &s->second, 1);
	size_t at = encode_call(l->b);
	add_fixup(l, at, l->plan.arguments[s->argument], false);
	l->out->fixups.p[l->out->fixups.n - 1].calls = true;
	if (s->left.type != OPERAND_NONE) {
		uint8_t reg = result_register(l, &s->left);
		encode_memory(l->b, ENCODE_LOAD, reg, &m);
		keep_result(l, &s->left, reg);
	}
	lower_stack_to(l, l->plan.lowered);
}

static void make_clock(struct lowering *l, const struct statement *s)
{
	bool in_frame = plan_is_memory(&l->plan, &s->left);
	uint8_t reg = in_frame ? REG_RAX : l->plan.reg[s->left.base];
	uint16_t taken = (uint16_t)(l->plan.taken & ~(in_frame ? 0u : 1u << reg));
	uint8_t rax = taken & 1u << REG_RAX ? take_helper(l) : REG_NONE;
	uint8_t rdx = taken & 1u << REG_RDX ? take_helper(l) : REG_NONE;

	if (rax != REG_NONE)
		encode_registers(l->b, ENCODE_LOAD, rax, REG_RAX);
	if (rdx != REG_NONE)
		encode_registers(l->b, ENCODE_LOAD, rdx, REG_RDX);
	encode_clock(l->b, reg);
	keep_result(l, &s->left, reg);
	if (rax != REG_NONE)
		encode_registers(l->b, ENCODE_LOAD, REG_RAX, rax);
	if (rdx != REG_NONE)
		encode_registers(l->b, ENCODE_LOAD, REG_RDX, rdx);
}

static void make_jump(struct lowering *l, const struct statement *s, size_t at)
{
	if (s->argument == SNIPPET_NO)
		l->inside[l->ninside++] = (struct open_jump){(uint32_t)at, s->target};
	else if (!l->plan.nsaved && !l->plan.kept_flags)
		add_fixup(l, at, l->plan.arguments[s->argument], true);
	else
		l->outside[l->noutside++] = (struct open_jump){(uint32_t)at, s->argument};
}

/* The sign alone, after a sum. */
static uint8_t told_condition(uint8_t condition)
{
	return condition == 12 ? 8 : condition == 13 ? 9 : condition;
}

/* Equal or not, by the lowest bit. */
static void make_clobber(struct lowering *l, uint64_t value)
{
	uint32_t live = l->plan.place->live;

	for (unsigned reg = 0; reg < 16; reg++)
		if (!(live & 1u << reg) && PLAN_CANDIDATES & 1u << reg)
			encode_constant(l->b, reg, value);
	if (live & LIVE_FLAGS(FORM_FLAGS))
		return;
	if (value & 1)
		encode_registers(l->b, ENCODE_COMPARE, REG_RSP, REG_RSP);
	else
		encode_register_immediate(l->b, ENCODE_COMPARE, REG_RSP, -1);
}

/* The way on; then code that lies elsewhere, with all that is saved still saved. */
static void make_apart(struct lowering *l)
{
	end(l);
	l->out->apart = l->b->n;
	note_shift(l, l->plan.lowered);
}

static void make_statement(struct lowering *l, unsigned i)
{
	const struct statement *s = &l->plan.snippet->statement[i];

	l->free = l->plan.helpers;
	switch ((enum statement_type)s->type) {
	case STATEMENT_SET:
		make_set(l, s);
		return;
	case STATEMENT_ADD:
	case STATEMENT_SUB:
		make_sum(l, s, plan_is_told(l->plan.snippet, i + 1));
		return;
	case STATEMENT_GOTO:
		make_jump(l, s, encode_jump(l->b));
		return;
	case STATEMENT_CLOBBER:
		make_clobber(l, plan_sum(&l->plan, &s->right));
		return;
	case STATEMENT_CALL:
		make_call(l, s);
		return;
	case STATEMENT_CLOCK:
		make_clock(l, s);
		return;
	case STATEMENT_APART:
		make_apart(l);
		return;
	case STATEMENT_IF:
		break;
	}
	uint8_t condition = s->condition;
	if (plan_is_told(l->plan.snippet, i))
		condition = told_condition(condition);
	else
		compare(l, s);
	make_jump(l, s, encode_branch(l->b, condition));
}

/* ---- jumps ---- */

static void fill_in(struct lowering *l, uint32_t offset, uint32_t to)
{
	uint32_t by = to - (offset + 4);

	memcpy(l->b->p + offset, &by, sizeof by);
}

static void fill_jump(struct lowering *l, uint32_t offset, uint32_t to, bool to_apart)
{
	if ((offset >= l->out->apart) == to_apart)
		fill_in(l, offset, to);
	else
		*vec_add(&l->out->fixups) = (struct snippet_fixup){
			.offset = offset, .end = offset + 4, .target = to, .across = true};
}

/* Those that leave put back what was saved, each for itself, behind the way on. */
static void make_exits(struct lowering *l)
{
	bool apart = l->plan.snippet->apart < l->plan.snippet->n;
	size_t over = l->noutside && !apart ? encode_jump(l->b) : 0;

	for (unsigned i = 0; i < l->noutside; i++) {
		fill_jump(l, l->outside[i].offset, (uint32_t)l->b->n, apart);
		note_shift(l, l->plan.lowered);
		end(l);
		size_t at = encode_jump(l->b);
		add_fixup(l, at, l->plan.arguments[l->outside[i].to], true);
	}
	if (over)
		fill_in(l, (uint32_t)over, (uint32_t)l->b->n);
}

int snippet_lower(const struct snippet *s, const uint64_t *arguments,
	const struct snippet_place *place, struct snippet_code *out)
{
	struct lowering l = {.plan = {.snippet = s, .arguments = arguments, .place = place},
		.out = out,
		.b = &out->bytes};

	out->bytes.n = out->fixups.n = out->shifts.n = 0;
	out->apart = SIZE_MAX;
	plan_make(&l.plan);
	if (s->named && l.plan.kept_flags) /* these take rax, which it may be addressed by */
		return -EINVAL;
	begin(&l);
	for (unsigned i = 0; i < s->n; i++) {
		l.start[i] = (uint32_t)l.b->n;
		make_statement(&l, i);
	}
	l.start[s->n] = (uint32_t)l.b->n;
	for (unsigned i = 0; i < l.ninside; i++)
		fill_jump(
			&l, l.inside[i].offset, l.start[l.inside[i].to], l.inside[i].to > s->apart);
	if (s->apart == s->n)
		end(&l);
	make_exits(&l);
	if (s->apart == s->n)
		out->apart = out->bytes.n;
	return l.err;
}

void snippet_code_deinit(struct snippet_code *c)
{
	buf_deinit(&c->bytes);
	vec_deinit(&c->fixups);
	vec_deinit(&c->shifts);
}
