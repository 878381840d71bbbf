#include "calls/expression.h"

#include "base/cursor.h"
#include "image/frames.h"

#include <dwarf.h>

enum { DEPTH = 64, STEPS = 1000 };

struct machine {
	const struct expression_scene *scene;
	struct cursor code;
	uint64_t stack[DEPTH];
	unsigned depth;
	bool failed;
};

static void push(struct machine *m, uint64_t value)
{
	if (m->depth < DEPTH)
		m->stack[m->depth++] = value;
	else
		m->failed = true;
}

static uint64_t pop(struct machine *m)
{
	if (m->depth)
		return m->stack[--m->depth];
	m->failed = true;
	return 0;
}

static void pick(struct machine *m, unsigned from_top)
{
	if (from_top < m->depth)
		push(m, m->stack[m->depth - 1 - from_top]);
	else
		m->failed = true;
}

static void push_register(struct machine *m, uint64_t reg, int64_t offset)
{
	if (reg < FRAME_REGISTERS && m->scene->known >> reg & 1)
		push(m, m->scene->registers[reg] + (uint64_t)offset);
	else
		m->failed = true;
}

static void dereference(struct machine *m)
{
	uint64_t value = 0;

	if (!m->scene->read(m->scene->arg, pop(m), &value))
		m->failed = true;
	push(m, value);
}

static void jump(struct machine *m, int16_t by)
{
	int64_t to = (int64_t)cursor_offset(&m->code) + by;

	if (to < 0)
		m->failed = true;
	else
		cursor_seek(&m->code, (size_t)to);
}

/* What takes two values and leaves one. */
static bool combine(uint8_t op, uint64_t a, uint64_t b, uint64_t *out)
{
	int64_t x = (int64_t)a, y = (int64_t)b;

	switch (op) {
	case DW_OP_and:
		*out = a & b;
		return true;
	case DW_OP_or:
		*out = a | b;
		return true;
	case DW_OP_xor:
		*out = a ^ b;
		return true;
	case DW_OP_plus:
		*out = a + b;
		return true;
	case DW_OP_minus:
		*out = a - b;
		return true;
	case DW_OP_mul:
		*out = a * b;
		return true;
	case DW_OP_shl:
		*out = b < 64 ? a << b : 0;
		return true;
	case DW_OP_shr:
		*out = b < 64 ? a >> b : 0;
		return true;
	case DW_OP_shra:
		*out = (uint64_t)(x >> (b < 64 ? b : 63));
		return true;
	case DW_OP_eq:
		*out = x == y;
		return true;
	case DW_OP_ne:
		*out = x != y;
		return true;
	case DW_OP_ge:
		*out = x >= y;
		return true;
	case DW_OP_gt:
		*out = x > y;
		return true;
	case DW_OP_le:
		*out = x <= y;
		return true;
	case DW_OP_lt:
		*out = x < y;
		return true;
	}
	return false;
}

/* Constants and registers; false when it is none of them. */
static bool load(struct machine *m, uint8_t op)
{
	struct cursor *c = &m->code;

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
		push(m, op - DW_OP_lit0);
	else if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		push_register(m, op - DW_OP_breg0, cursor_sleb(c));
	else if (op == DW_OP_bregx) {
		uint64_t reg = cursor_uleb(c);

		push_register(m, reg, cursor_sleb(c));
	} else if (op == DW_OP_const1u)
		push(m, cursor_u8(c));
	else if (op == DW_OP_const1s)
		push(m, (uint64_t)(int8_t)cursor_u8(c));
	else if (op == DW_OP_const2u)
		push(m, cursor_u16(c));
	else if (op == DW_OP_const2s)
		push(m, (uint64_t)(int16_t)cursor_u16(c));
	else if (op == DW_OP_const4u)
		push(m, cursor_u32(c));
	else if (op == DW_OP_const4s)
		push(m, (uint64_t)(int32_t)cursor_u32(c));
	else if (op == DW_OP_const8u || op == DW_OP_const8s)
		push(m, cursor_u64(c));
	else if (op == DW_OP_constu)
		push(m, cursor_uleb(c));
	else if (op == DW_OP_consts)
		push(m, (uint64_t)cursor_sleb(c));
	else
		return false;
	return true;
}

/* What moves values about or goes elsewhere. */
static bool arrange(struct machine *m, uint8_t op)
{
	uint64_t a, b;

	switch (op) {
	case DW_OP_dup:
		pick(m, 0);
		return true;
	case DW_OP_over:
		pick(m, 1);
		return true;
	case DW_OP_pick:
		pick(m, cursor_u8(&m->code));
		return true;
	case DW_OP_drop:
		pop(m);
		return true;
	case DW_OP_swap:
		b = pop(m);
		a = pop(m);
		push(m, b);
		push(m, a);
		return true;
	case DW_OP_skip:
		jump(m, (int16_t)cursor_u16(&m->code));
		return true;
	case DW_OP_bra:
		a = cursor_u16(&m->code);
		if (pop(m))
			jump(m, (int16_t)a);
		return true;
	case DW_OP_nop:
		return true;
	}
	return false;
}

static void step(struct machine *m)
{
	uint8_t op = cursor_u8(&m->code);
	uint64_t a, b;

	if (load(m, op) || arrange(m, op))
		return;
	if (op == DW_OP_deref)
		dereference(m);
	else if (op == DW_OP_plus_uconst)
		push(m, pop(m) + cursor_uleb(&m->code));
	else if (op == DW_OP_neg)
		push(m, -pop(m));
	else if (op == DW_OP_not)
		push(m, ~pop(m));
	else {
		b = pop(m);
		a = pop(m);
		if (!combine(op, a, b, &a))
			m->failed = true;
		push(m, a);
	}
}

bool expression_evaluate(const uint8_t *p, size_t n, const struct expression_scene *scene,
	const uint64_t *first, uint64_t *out)
{
	struct machine m = {.scene = scene, .code = cursor_over(p, n)};

	if (first)
		push(&m, *first);
	for (unsigned i = 0; cursor_left(&m.code) && !m.failed && !m.code.failed; i++) {
		if (i == STEPS)
			return false;
		step(&m);
	}
	*out = pop(&m);
	return !m.failed && !m.code.failed;
}
