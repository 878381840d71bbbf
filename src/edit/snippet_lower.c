/*
 * Lowering: first what the place makes cheapest is planned (which registers, what has to be saved,
 * whether memory is changed in one instruction or through a register), then the code is made.
 *
 * Measured: a counter in memory costs a fifth when it goes through a dead register (mov, lea, mov)
 * of what it costs in one instruction, and needs no flags. Saving flags costs more than a register.
 */
#include <errno.h>
#include <string.h>

#include "edit/snippet.h"
#include "edit/snippet_internal.h"
#include "isa/encode.h"
#include "isa/form.h"

#define RED_ZONE 128

/* Registers that code may borrow, the better ones first: rax can hold flags, r12 makes longer code;
 * never rsp, and rbp as little, for frames are found by it. */
static const uint8_t candidates[] = {
	REG_RCX, REG_RDX, REG_RSI, REG_RDI, 8, 9, 10, 11, REG_RAX, REG_RBX, 14, 15, 13, 12};
#define NCANDIDATES (sizeof candidates)

struct saved {
	uint8_t reg, in; /* REG_NONE: in a slot below the stack */
	int32_t slot;
};

/* A jump that is not filled in. */
struct open_jump {
	uint32_t offset; /* of its displacement */
	uint8_t to;      /* statement; of one that leaves: number of its argument */
};

struct lowering {
	const struct snippet *snippet;
	const uint64_t *arguments;
	const struct snippet_place *place;
	struct snippet_code *out;
	struct buf *b;

	/* The plan. */
	bool in_one;                    /* memory is changed by one instruction */
	uint8_t kept_flags;             /* enum form_flag: to be saved */
	uint8_t reg[SNIPPET_REGISTERS]; /* of the machine; REG_NONE: a word of the frame */
	uint16_t helpers;               /* registers for what has no name */
	struct saved saved[SNIPPET_REGISTERS + 5];
	unsigned nsaved;
	int32_t lowered; /* rsp is, in the body */

	/* The work. */
	uint16_t free; /* of the helpers */
	uint32_t start[SNIPPET_STATEMENTS + 1];
	struct open_jump inside[SNIPPET_STATEMENTS], outside[SNIPPET_STATEMENTS];
	unsigned ninside, noutside;
	int err;
};

/* ---- operands, as the plan sees them ---- */

static uint64_t sum_of(const struct lowering *l, const struct operand *o)
{
	uint64_t sum = (uint64_t)o->number;

	for (unsigned i = 0; i < o->narguments; i++)
		sum += l->arguments[o->argument[i]];
	return sum;
}

static bool fits(uint64_t value)
{
	return (int64_t)value == (int32_t)value;
}

static bool in_frame(const struct lowering *l, uint8_t reg)
{
	return reg >= SNIPPET_VARIABLE0 && reg != SNIPPET_NO &&
	       l->place->variable[reg - SNIPPET_VARIABLE0].reg == REG_NONE;
}

static bool is_memory(const struct lowering *l, const struct operand *o)
{
	return o->type == OPERAND_MEMORY || (o->type == OPERAND_REGISTER && in_frame(l, o->base));
}

/* Helpers that it takes to address a memory operand, and to have any operand as a value. */
static unsigned address_helpers(const struct lowering *l, const struct operand *o)
{
	if (o->type == OPERAND_REGISTER)
		return 0;
	return (o->space == SPACE_IMAGE && o->index != SNIPPET_NO) + in_frame(l, o->base) +
	       in_frame(l, o->index);
}

static unsigned value_helpers(const struct lowering *l, const struct operand *o)
{
	switch ((enum operand_type)o->type) {
	case OPERAND_REGISTER:
		return in_frame(l, o->base);
	case OPERAND_CONSTANT:
		return !fits(sum_of(l, o)) || !fits(-sum_of(l, o));
	default:
		return 1 + address_helpers(l, o);
	}
}

static unsigned statement_helpers(const struct lowering *l, const struct statement *s)
{
	unsigned n = 0;

	if (s->type == STATEMENT_GOTO || s->type == STATEMENT_CLOBBER)
		return 0;
	if (s->type == STATEMENT_SET && !is_memory(l, &s->left)) /* the register helps itself */
		return s->right.type == OPERAND_CONSTANT ? 0 : address_helpers(l, &s->right);
	if (is_memory(l, &s->left))
		n = address_helpers(l, &s->left);
	else if (s->left.type != OPERAND_REGISTER)
		n = value_helpers(l, &s->left) + 1;
	if ((s->type == STATEMENT_ADD || s->type == STATEMENT_SUB) && is_memory(l, &s->left))
		n += !l->in_one && !s->atomic;
	return n + value_helpers(l, &s->right);
}

/* ---- flags ---- */

static bool is_step(const struct lowering *l, const struct statement *s)
{
	uint64_t sum = sum_of(l, &s->right);

	return s->right.type == OPERAND_CONSTANT && (sum == 1 || sum == -1ull);
}

static bool is_same(const struct operand *a, const struct operand *b)
{
	return a->type == b->type && a->space == b->space && a->base == b->base &&
	       a->index == b->index && a->scale == b->scale && a->number == b->number &&
	       a->narguments == b->narguments && !memcmp(a->argument, b->argument, a->narguments);
}

static bool is_target(const struct snippet *s, unsigned statement)
{
	for (unsigned i = 0; i < statement; i++)
		if (s->statement[i].type >= STATEMENT_IF &&
			s->statement[i].argument == SNIPPET_NO &&
			s->statement[i].target == statement)
			return true;
	return false;
}

/* Whether the flags of the sum before tell what a comparison with 0 asks: ==, !=, <, >=. */
static bool is_told(const struct snippet *s, unsigned i)
{
	const struct statement *c = &s->statement[i], *sum = c - 1;

	return i && i < s->n && c->type == STATEMENT_IF &&
	       (sum->type == STATEMENT_ADD || sum->type == STATEMENT_SUB) &&
	       is_same(&sum->left, &c->left) && c->right.type == OPERAND_CONSTANT &&
	       !c->right.narguments && !c->right.number && c->condition != 14 &&
	       c->condition != 15 && !is_target(s, i);
}

static uint8_t flags_of(const struct lowering *l, unsigned i)
{
	const struct statement *s = &l->snippet->statement[i];

	switch ((enum statement_type)s->type) {
	case STATEMENT_IF:
		return FORM_FLAGS;
	case STATEMENT_SET:
	case STATEMENT_GOTO:
	case STATEMENT_CLOBBER:
		return 0;
	default:
		break;
	}
	if (s->atomic || (l->in_one && is_memory(l, &s->left)))
		return is_step(l, s) ? FORM_FLAGS & ~FORM_CF : FORM_FLAGS;
	return s->type == STATEMENT_SUB && s->right.type != OPERAND_CONSTANT ? FORM_FLAGS : 0;
}

/* ---- the plan ---- */

static unsigned helpers_needed(const struct lowering *l)
{
	unsigned most = 0;

	for (unsigned i = 0; i < l->snippet->n; i++) {
		unsigned n = statement_helpers(l, &l->snippet->statement[i]);
		most = n > most ? n : most;
	}
	return most;
}

static uint8_t flags_written(const struct lowering *l)
{
	uint8_t flags = 0;

	for (unsigned i = 0; i < l->snippet->n; i++)
		flags |= flags_of(l, i);
	return flags;
}

static uint16_t held_registers(const struct lowering *l)
{
	uint16_t held = 0;

	for (unsigned i = 0; i < SNIPPET_VARIABLES; i++) {
		uint8_t reg = l->place->variable[i].reg;
		if (l->snippet->registers & 1u << (SNIPPET_VARIABLE0 + i) && reg != REG_NONE)
			held |= (uint16_t)(1u << reg);
	}
	return held;
}

/* The best of a set that is not empty. */
static uint8_t choose(uint16_t set)
{
	for (size_t i = 0; i < NCANDIDATES; i++)
		if (set & 1u << candidates[i])
			return candidates[i];
	return REG_NONE;
}

static uint16_t all_candidates(void)
{
	return REGS_ALL & (uint16_t) ~(1u << REG_RSP | 1u << REG_RBP);
}

static void save(struct lowering *l, uint8_t reg)
{
	l->saved[l->nsaved++] = (struct saved){.reg = reg, .in = REG_NONE};
}

/* One more register: a dead one, or else one that is saved. */
static uint8_t borrow(struct lowering *l, uint16_t *dead, uint16_t *live)
{
	uint8_t reg = choose(*dead);

	if (reg == REG_NONE) {
		reg = choose(*live);
		save(l, reg);
	}
	*dead &= (uint16_t) ~(1u << reg);
	*live &= (uint16_t) ~(1u << reg);
	return reg;
}

/* In dead registers that are left over, else below the stack. */
static void place_saved(struct lowering *l, uint16_t dead)
{
	int32_t used = (l->place->red_zone + 7) & ~7, slots = 0;

	for (unsigned i = 0; i < l->nsaved; i++) {
		struct saved *s = &l->saved[i];
		s->in = choose(dead);
		if (s->in != REG_NONE)
			dead &= (uint16_t) ~(1u << s->in);
		else
			s->slot = 8 * slots++;
	}
	if (used + 8 * slots <= RED_ZONE) {
		for (unsigned i = 0; i < l->nsaved; i++)
			l->saved[i].slot -= used + 8 * slots;
	} else {
		l->lowered = RED_ZONE + 8 * slots;
	}
}

static void choose_way(struct lowering *l, uint16_t dead)
{
	unsigned temporaries = (unsigned)__builtin_popcount(
		l->snippet->registers & ((1u << SNIPPET_TEMPORARIES) - 1));
	uint8_t live = (uint8_t)(l->place->live >> 16);

	if (temporaries + helpers_needed(l) <= (unsigned)__builtin_popcount(dead))
		return;
	bool saves = flags_written(l) & live;
	l->in_one = true;
	if (flags_written(l) & live && !saves)
		l->in_one = false;
}

static void make_plan(struct lowering *l)
{
	uint16_t held = held_registers(l);
	uint16_t dead = (uint16_t)(all_candidates() & ~l->place->live & ~held);
	uint16_t live = (uint16_t)(all_candidates() & l->place->live & ~held);

	choose_way(l, dead);
	l->kept_flags = flags_written(l) & (uint8_t)(l->place->live >> 16);
	if (l->kept_flags) {
		if (!(dead & 1u << REG_RAX))
			save(l, REG_RAX);
		dead &= (uint16_t) ~(1u << REG_RAX);
		live &= (uint16_t) ~(1u << REG_RAX);
	}
	for (unsigned i = 0; i < SNIPPET_REGISTERS; i++) {
		if (!(l->snippet->registers & 1u << i))
			continue;
		if (i < SNIPPET_VARIABLE0)
			l->reg[i] = borrow(l, &dead, &live);
		else
			l->reg[i] = l->place->variable[i - SNIPPET_VARIABLE0].reg;
	}
	for (unsigned n = helpers_needed(l); n; n--)
		l->helpers |= (uint16_t)(1u << borrow(l, &dead, &live));
	place_saved(l, dead);
}

/* ---- the code around ---- */

static void note_shift(struct lowering *l, int32_t pushed)
{
	if (l->lowered)
		*vec_add(&l->out->shifts) =
			(struct snippet_shift){(uint32_t)l->b->n, (uint32_t)pushed};
}

static struct encode_memory on_stack(int32_t displacement)
{
	return (struct encode_memory){
		.base = REG_RSP, .index = REG_NONE, .scale = 1, .displacement = displacement};
}

static void move_stack(struct lowering *l, int32_t by)
{
	struct encode_memory m = on_stack(by);

	if (l->lowered)
		encode_memory(l->b, ENCODE_ADDRESS, REG_RSP, &m);
}

static void begin(struct lowering *l)
{
	move_stack(l, -l->lowered);
	note_shift(l, l->lowered);
	for (unsigned i = 0; i < l->nsaved; i++) {
		const struct saved *s = &l->saved[i];
		struct encode_memory m = on_stack(s->slot);
		if (s->in != REG_NONE)
			encode_registers(l->b, ENCODE_LOAD, s->in, s->reg);
		else
			encode_memory(l->b, ENCODE_STORE, s->reg, &m);
	}
	if (l->kept_flags)
		encode_save_flags(l->b, l->kept_flags & FORM_OF);
}

static void end(struct lowering *l)
{
	if (l->kept_flags)
		encode_restore_flags(l->b, l->kept_flags & FORM_OF);
	for (unsigned i = 0; i < l->nsaved; i++) {
		const struct saved *s = &l->saved[i];
		struct encode_memory m = on_stack(s->slot);
		if (s->in != REG_NONE)
			encode_registers(l->b, ENCODE_LOAD, s->reg, s->in);
		else
			encode_memory(l->b, ENCODE_LOAD, s->reg, &m);
	}
	move_stack(l, l->lowered);
	note_shift(l, 0);
}

/* ---- operands, as code ---- */

static uint8_t take_helper(struct lowering *l)
{
	uint8_t reg = choose(l->free);

	l->free &= (uint16_t) ~(1u << reg);
	return reg;
}

static void add_fixup(struct lowering *l, size_t at, uint64_t target, bool jumps)
{
	if (at)
		*vec_add(&l->out->fixups) =
			(struct snippet_fixup){(uint32_t)at, (uint32_t)l->b->n, target, jumps};
}

/* Memory, and what it is relative to when that is rip. */
struct address {
	struct encode_memory m;
	uint64_t target;
};

static struct address frame_address(const struct lowering *l, uint8_t reg)
{
	int32_t slot = l->place->variable[reg - SNIPPET_VARIABLE0].slot;

	return (struct address){.m = on_stack(slot + l->lowered)};
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
	if (!in_frame(l, reg))
		return l->reg[reg];
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
	sum = sum_of(l, o);
	a.m.base = machine_register(l, o->base);
	a.m.index = machine_register(l, o->index);
	if (o->space == SPACE_IMAGE) {
		struct address whole = {
			.m = {.base = ENCODE_RIP, .index = REG_NONE, .scale = 1}, .target = sum};
		if (a.m.index == REG_NONE)
			return whole;
		a.m.base = take_helper(l);
		with(l, ENCODE_ADDRESS, a.m.base, &whole);
		return a;
	}
	if (!fits(sum))
		l->err = -ERANGE;
	a.m.displacement = (int32_t)sum;
	return a;
}

static void load(struct lowering *l, uint8_t reg, const struct operand *o)
{
	struct address a;

	if (o->type == OPERAND_CONSTANT) {
		encode_constant(l->b, reg, sum_of(l, o));
	} else if (is_memory(l, o) || o->type == OPERAND_ADDRESS) {
		a = address_of(l, o);
		with(l, o->type == OPERAND_ADDRESS ? ENCODE_ADDRESS : ENCODE_LOAD, reg, &a);
	} else if (l->reg[o->base] != reg) {
		encode_registers(l->b, ENCODE_LOAD, reg, l->reg[o->base]);
	}
}

static uint8_t value_in_register(struct lowering *l, const struct operand *o)
{
	if (o->type == OPERAND_REGISTER && !in_frame(l, o->base))
		return l->reg[o->base];
	uint8_t reg = take_helper(l);
	load(l, reg, o);
	return reg;
}

/* A constant that instructions can hold, also negated; what comes from elsewhere has a register. */
static bool is_immediate(const struct lowering *l, const struct operand *o)
{
	return o->type == OPERAND_CONSTANT && !value_helpers(l, o);
}

/* ---- statements ---- */

static void make_set(struct lowering *l, const struct statement *s)
{
	struct address a;

	if (!is_memory(l, &s->left)) {
		load(l, l->reg[s->left.base], &s->right);
	} else if (is_immediate(l, &s->right)) {
		a = address_of(l, &s->left);
		add_fixup(l,
			encode_immediate(l->b, ENCODE_STORE, &a.m, (int32_t)sum_of(l, &s->right)),
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

	if (is_immediate(l, &s->right)) {
		int32_t by = (int32_t)sum_of(l, &s->right);
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

/* In one instruction. */
static void add_to_memory(
	struct lowering *l, const struct address *a, const struct statement *s, uint8_t value)
{
	bool down = s->type == STATEMENT_SUB;
	enum encode_op op = down ? ENCODE_SUB_TO : ENCODE_ADD_TO;
	size_t at;

	if (s->atomic)
		encode_lock(l->b);
	if (is_step(l, s))
		at = encode_step(l->b, &a->m, down != (sum_of(l, &s->right) != 1));
	else if (is_immediate(l, &s->right))
		at = encode_immediate(l->b, op, &a->m, (int32_t)sum_of(l, &s->right));
	else
		at = encode_memory(l->b, op, value, &a->m);
	add_fixup(l, at, a->target, false);
}

static void make_sum(struct lowering *l, const struct statement *s, bool told)
{
	uint8_t value = REG_NONE;

	if (!is_immediate(l, &s->right))
		value = value_in_register(l, &s->right);
	if (!is_memory(l, &s->left)) {
		add_to_register(l, l->reg[s->left.base], s, value, told);
		return;
	}
	struct address a = address_of(l, &s->left);
	if (s->atomic || l->in_one) {
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
	bool immediate = is_immediate(l, &s->right);
	int32_t number = immediate ? (int32_t)sum_of(l, &s->right) : 0;
	uint8_t value = immediate ? REG_NONE : value_in_register(l, &s->right);

	if (is_memory(l, &s->left)) {
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

static void make_jump(struct lowering *l, const struct statement *s, size_t at)
{
	if (s->argument == SNIPPET_NO)
		l->inside[l->ninside++] = (struct open_jump){(uint32_t)at, s->target};
	else if (!l->nsaved && !l->kept_flags)
		add_fixup(l, at, l->arguments[s->argument], true);
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
	uint32_t live = l->place->live;

	for (unsigned reg = 0; reg < 16; reg++)
		if (!(live & 1u << reg) && all_candidates() & 1u << reg)
			encode_constant(l->b, reg, value);
	if (live & LIVE_FLAGS(FORM_FLAGS))
		return;
	if (value & 1)
		encode_registers(l->b, ENCODE_COMPARE, REG_RSP, REG_RSP);
	else
		encode_register_immediate(l->b, ENCODE_COMPARE, REG_RSP, -1);
}

static void make_statement(struct lowering *l, unsigned i)
{
	const struct statement *s = &l->snippet->statement[i];

	l->free = l->helpers;
	switch ((enum statement_type)s->type) {
	case STATEMENT_SET:
		make_set(l, s);
		return;
	case STATEMENT_ADD:
	case STATEMENT_SUB:
		make_sum(l, s, is_told(l->snippet, i + 1));
		return;
	case STATEMENT_GOTO:
		make_jump(l, s, encode_jump(l->b));
		return;
	case STATEMENT_CLOBBER:
		make_clobber(l, sum_of(l, &s->right));
		return;
	case STATEMENT_IF:
		break;
	}
	uint8_t condition = s->condition;
	if (is_told(l->snippet, i))
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

/* Those that leave put back what was saved, each for itself, behind the way on. */
static void make_exits(struct lowering *l)
{
	size_t over = l->noutside ? encode_jump(l->b) : 0;

	for (unsigned i = 0; i < l->noutside; i++) {
		fill_in(l, l->outside[i].offset, (uint32_t)l->b->n);
		note_shift(l, l->lowered);
		end(l);
		size_t at = encode_jump(l->b);
		add_fixup(l, at, l->arguments[l->outside[i].to], true);
	}
	if (over)
		fill_in(l, (uint32_t)over, (uint32_t)l->b->n);
}

int snippet_lower(const struct snippet *s, const uint64_t *arguments,
	const struct snippet_place *place, struct snippet_code *out)
{
	struct lowering l = {
		.snippet = s, .arguments = arguments, .place = place, .out = out, .b = &out->bytes};

	out->bytes.n = out->fixups.n = out->shifts.n = 0;
	make_plan(&l);
	begin(&l);
	for (unsigned i = 0; i < s->n; i++) {
		l.start[i] = (uint32_t)l.b->n;
		make_statement(&l, i);
	}
	l.start[s->n] = (uint32_t)l.b->n;
	for (unsigned i = 0; i < l.ninside; i++)
		fill_in(&l, l.inside[i].offset, l.start[l.inside[i].to]);
	end(&l);
	make_exits(&l);
	return l.err;
}

void snippet_code_deinit(struct snippet_code *c)
{
	buf_deinit(&c->bytes);
	vec_deinit(&c->fixups);
	vec_deinit(&c->shifts);
}
