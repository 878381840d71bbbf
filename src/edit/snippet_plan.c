/*
 * Measured: a counter in memory costs a fifth when it goes through a dead register (mov, lea, mov)
 * of what it costs in one instruction, and needs no flags. Saving flags costs more than a register.
 */
#include "edit/snippet_plan.h"

#include <string.h>

#include "isa/form.h"
#include "isa/reference.h"

#define RED_ZONE 128

/* The better ones first: rax can hold flags, r12 makes longer code. */
static const uint8_t candidates[] = {
	REG_RCX, REG_RDX, REG_RSI, REG_RDI, 8, 9, 10, 11, REG_RAX, REG_RBX, 14, 15, 13, 12};
#define NCANDIDATES (sizeof candidates)

/* ---- operands ---- */

uint64_t plan_sum(const struct plan *p, const struct operand *o)
{
	uint64_t sum = (uint64_t)o->number;

	for (unsigned i = 0; i < o->narguments; i++)
		sum += p->arguments[o->argument[i]];
	return sum;
}

static bool fits(uint64_t value)
{
	return (int64_t)value == (int32_t)value;
}

bool plan_in_frame(const struct plan *p, uint8_t reg)
{
	return reg >= SNIPPET_VARIABLE0 && reg != SNIPPET_NO &&
	       p->place->variable[reg - SNIPPET_VARIABLE0].reg == REG_NONE;
}

bool plan_is_memory(const struct plan *p, const struct operand *o)
{
	return o->type == OPERAND_MEMORY ||
	       (o->type == OPERAND_REGISTER && plan_in_frame(p, o->base));
}

bool plan_is_absolute(const struct plan *p, const struct operand *o)
{
	return o->space == SPACE_IMAGE && p->place->fixed && fits(plan_sum(p, o));
}

/* Helpers that it takes to address a memory operand, and to have any operand as a value. */
static unsigned address_helpers(const struct plan *p, const struct operand *o)
{
	if (o->type == OPERAND_REGISTER || o->type == OPERAND_NAMED)
		return 0;
	return (o->space == SPACE_IMAGE && o->index != SNIPPET_NO && !plan_is_absolute(p, o)) +
	       plan_in_frame(p, o->base) + plan_in_frame(p, o->index);
}

/* An address that is a number, in files that stay where they are. */
static bool is_number(const struct plan *p, const struct operand *o)
{
	return o->type == OPERAND_ADDRESS && o->base == SNIPPET_NO && o->index == SNIPPET_NO &&
	       plan_is_absolute(p, o);
}

static unsigned value_helpers(const struct plan *p, const struct operand *o)
{
	switch ((enum operand_type)o->type) {
	case OPERAND_REGISTER:
		return plan_in_frame(p, o->base);
	case OPERAND_CONSTANT:
		return !fits(plan_sum(p, o)) || !fits(-plan_sum(p, o));
	default:
		return is_number(p, o) ? 0 : 1 + address_helpers(p, o);
	}
}

bool plan_is_immediate(const struct plan *p, const struct operand *o)
{
	return (o->type == OPERAND_CONSTANT || is_number(p, o)) && !value_helpers(p, o);
}

bool plan_takes_memory(const struct plan *p, const struct statement *s)
{
	return s->type == STATEMENT_SUB && !plan_is_memory(p, &s->left) &&
	       plan_is_memory(p, &s->right);
}

/* Values go to the stack one by one, what comes back to a register or through one. */
static unsigned call_helpers(const struct plan *p, const struct statement *s)
{
	unsigned most = plan_is_memory(p, &s->left), n;

	n = s->right.type == OPERAND_NONE ? 0 : value_helpers(p, &s->right);
	most = n > most ? n : most;
	n = s->second.type == OPERAND_NONE ? 0 : value_helpers(p, &s->second);
	return n > most ? n : most;
}

static unsigned statement_helpers(const struct plan *p, const struct statement *s)
{
	unsigned n = 0;

	if (s->type == STATEMENT_GOTO || s->type == STATEMENT_CLOBBER || s->type == STATEMENT_APART)
		return 0;
	if (s->type == STATEMENT_CLOCK)
		return (unsigned)__builtin_popcount(p->taken);
	if (s->type == STATEMENT_CALL)
		return call_helpers(p, s);
	if (s->type == STATEMENT_SET && !plan_is_memory(p, &s->left)) /* it helps itself */
		return s->right.type == OPERAND_CONSTANT ? 0 : address_helpers(p, &s->right);
	if (plan_takes_memory(p, s))
		return address_helpers(p, &s->right);
	if (plan_is_memory(p, &s->left))
		n = address_helpers(p, &s->left);
	else if (s->left.type != OPERAND_REGISTER)
		n = value_helpers(p, &s->left) + 1;
	if ((s->type == STATEMENT_ADD || s->type == STATEMENT_SUB) && plan_is_memory(p, &s->left))
		n += !p->in_one && !s->atomic;
	return n + value_helpers(p, &s->right);
}

/* ---- flags ---- */

bool plan_is_step(const struct plan *p, const struct statement *s)
{
	uint64_t sum = plan_sum(p, &s->right);

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
	for (unsigned i = 0; i < s->n; i++)
		if ((s->statement[i].type == STATEMENT_IF ||
			    s->statement[i].type == STATEMENT_GOTO) &&
			s->statement[i].argument == SNIPPET_NO &&
			s->statement[i].target == statement)
			return true;
	return false;
}

bool plan_is_told(const struct snippet *s, unsigned i)
{
	const struct statement *c = &s->statement[i], *sum = c - 1;

	return i && i < s->n && c->type == STATEMENT_IF &&
	       (sum->type == STATEMENT_ADD || sum->type == STATEMENT_SUB) &&
	       is_same(&sum->left, &c->left) && c->right.type == OPERAND_CONSTANT &&
	       !c->right.narguments && !c->right.number && c->condition != 14 &&
	       c->condition != 15 && !is_target(s, i);
}

static uint8_t flags_of(const struct plan *p, unsigned i)
{
	const struct statement *s = &p->snippet->statement[i];

	switch ((enum statement_type)s->type) {
	case STATEMENT_IF:
		return FORM_FLAGS;
	case STATEMENT_SET:
	case STATEMENT_GOTO:
	case STATEMENT_CLOBBER:
	case STATEMENT_CALL:
	case STATEMENT_CLOCK:
	case STATEMENT_APART:
		return 0;
	default:
		break;
	}
	if (s->atomic || (p->in_one && plan_is_memory(p, &s->left)))
		return plan_is_step(p, s) ? FORM_FLAGS & ~FORM_CF : FORM_FLAGS;
	return s->type == STATEMENT_SUB && !plan_is_immediate(p, &s->right) ? FORM_FLAGS : 0;
}

/* ---- choices ---- */

static unsigned helpers_needed(const struct plan *p)
{
	unsigned most = 0;

	for (unsigned i = 0; i < p->snippet->n; i++) {
		unsigned n = statement_helpers(p, &p->snippet->statement[i]);
		most = n > most ? n : most;
	}
	return most;
}

static uint8_t flags_written(const struct plan *p)
{
	uint8_t flags = 0;

	for (unsigned i = 0; i < p->snippet->n; i++)
		flags |= flags_of(p, i);
	return flags;
}

static uint16_t named_registers(const struct plan *p)
{
	uint16_t set = 0;

	for (unsigned i = 0; i < SNIPPET_NAMED; i++) {
		if (!(p->snippet->named & 1u << i))
			continue;
		const struct reference *r = &p->place->memory[i];
		set |= (uint16_t)((r->base != REG_NONE ? 1u << r->base : 0) |
				  (r->index != REG_NONE ? 1u << r->index : 0));
	}
	return set;
}

static uint16_t held_registers(const struct plan *p)
{
	uint16_t held = p->place->kept | named_registers(p);

	for (unsigned i = 0; i < SNIPPET_VARIABLES; i++) {
		uint8_t reg = p->place->variable[i].reg;
		if (p->snippet->registers & 1u << (SNIPPET_VARIABLE0 + i) && reg != REG_NONE)
			held |= (uint16_t)(1u << reg);
	}
	return held;
}

uint8_t plan_choose(uint16_t set)
{
	for (size_t i = 0; i < NCANDIDATES; i++)
		if (set & 1u << candidates[i])
			return candidates[i];
	return REG_NONE;
}

static void save(struct plan *p, uint8_t reg)
{
	p->saved[p->nsaved++] = (struct saved){.reg = reg, .in = REG_NONE};
}

/* One more register: a dead one, or else one that is saved. */
static uint8_t borrow(struct plan *p, uint16_t *dead, uint16_t *live)
{
	uint8_t reg = plan_choose(*dead);

	if (reg == REG_NONE) {
		reg = plan_choose(*live);
		save(p, reg);
	}
	*dead &= (uint16_t) ~(1u << reg);
	*live &= (uint16_t) ~(1u << reg);
	return reg;
}

/* In dead registers that are left over, else below the stack. */
static void place_saved(struct plan *p, uint16_t dead)
{
	int32_t used = (p->place->red_zone + 7) & ~7, slots = 0;

	for (unsigned i = 0; i < p->nsaved; i++) {
		struct saved *s = &p->saved[i];
		s->in = plan_choose(dead);
		if (s->in != REG_NONE)
			dead &= (uint16_t) ~(1u << s->in);
		else
			s->slot = 8 * slots++;
	}
	if (used + 8 * slots <= RED_ZONE) {
		for (unsigned i = 0; i < p->nsaved; i++)
			p->saved[i].slot -= used + 8 * slots;
		p->reach = used + 8 * slots;
	} else {
		p->lowered = RED_ZONE + 8 * slots;
	}
}

static bool reads_clock(const struct snippet *s)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->statement[i].type == STATEMENT_CLOCK)
			return true;
	return false;
}

/* Nothing is in a temporary before it is read, and it is not read again. */
static bool reads_clock_first(const struct snippet *s)
{
	for (unsigned i = 1; i < s->n; i++)
		if (s->statement[i].type == STATEMENT_CLOCK)
			return false;
	return s->n && s->statement[0].type == STATEMENT_CLOCK;
}

/*
 * They are nobody else's; what somebody has in them already waits in a helper. Where the clock is
 * read before all else, those that are dead are returned: temporaries can have them.
 */
static uint16_t reserve_clock(struct plan *p, uint16_t *dead, uint16_t *live)
{
	uint16_t free = PLAN_CLOCK & *dead;

	p->taken = PLAN_CLOCK & ~*dead;
	*dead &= (uint16_t)~PLAN_CLOCK;
	*live &= (uint16_t)~PLAN_CLOCK;
	return reads_clock_first(p->snippet) ? free : 0;
}

/*
 * One instruction takes as long as three that do it in a register, but fewer bytes: where flags are
 * dead it is taken.
 */
static void choose_way(struct plan *p, uint16_t dead)
{
	unsigned temporaries = (unsigned)__builtin_popcount(
		p->snippet->registers & ((1u << SNIPPET_TEMPORARIES) - 1));
	uint8_t live = (uint8_t)(p->place->live >> 16);

	p->in_one = true;
	if (!(flags_written(p) & live))
		return;
	p->in_one = false;
	if (temporaries + helpers_needed(p) <= (unsigned)__builtin_popcount(dead))
		return;
	bool saves = flags_written(p) & live;
	p->in_one = true;
	if (flags_written(p) & live && !saves)
		p->in_one = false;
}

static void give_rax_to_flags(struct plan *p, uint16_t *dead, uint16_t *live, uint16_t *behind)
{
	bool free = *dead & 1u << REG_RAX;

	if (reads_clock(p->snippet)) {
		free = !(p->taken & 1u << REG_RAX);
		p->taken |= 1u << REG_RAX;
	}
	if (!free)
		save(p, REG_RAX);
	*dead &= (uint16_t) ~(1u << REG_RAX);
	*live &= (uint16_t) ~(1u << REG_RAX);
	*behind &= (uint16_t) ~(1u << REG_RAX);
}

/* The clock's own result stays where it is if it can. */
static uint8_t choose_temporary(
	struct plan *p, unsigned i, uint16_t *behind, uint16_t *dead, uint16_t *live)
{
	uint16_t rax = 1u << REG_RAX;
	bool result = p->snippet->statement[0].type == STATEMENT_CLOCK &&
		      p->snippet->statement[0].left.base == i;
	uint8_t reg = plan_choose(result ? *behind & rax : *behind & ~rax);

	if (reg == REG_NONE)
		return borrow(p, dead, live);
	*behind &= (uint16_t) ~(1u << reg);
	return reg;
}

void plan_make(struct plan *p)
{
	uint16_t held = held_registers(p);
	uint16_t dead = (uint16_t)(PLAN_CANDIDATES & ~p->place->live & ~held);
	uint16_t live = (uint16_t)(PLAN_CANDIDATES & p->place->live & ~held);

	uint16_t behind = 0;

	if (reads_clock(p->snippet))
		behind = reserve_clock(p, &dead, &live);
	choose_way(p, dead | behind);
	p->kept_flags = flags_written(p) & (uint8_t)(p->place->live >> 16);
	if (p->kept_flags)
		give_rax_to_flags(p, &dead, &live, &behind);
	for (unsigned i = 0; i < SNIPPET_REGISTERS; i++) {
		if (!(p->snippet->registers & 1u << i))
			continue;
		if (i < SNIPPET_VARIABLE0)
			p->reg[i] = choose_temporary(p, i, &behind, &dead, &live);
		else
			p->reg[i] = p->place->variable[i - SNIPPET_VARIABLE0].reg;
	}
	if (!p->taken) /* helpers that the clock itself needs are others */
		dead |= behind;
	for (unsigned n = helpers_needed(p); n; n--)
		p->helpers |= (uint16_t)(1u << borrow(p, &dead, &live));
	place_saved(p, reads_clock(p->snippet) ? dead & ~PLAN_CLOCK : dead);
}
