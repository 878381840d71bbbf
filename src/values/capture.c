#include "values/capture.h"

#include "isa/interp_ops.h"

#include <string.h>

void capture_begin(struct capture *c, uint64_t rcx)
{
	memset(c->last, 0, sizeof c->last);
	c->count = rcx;
	c->goes_on = false;
}

/* Results that say something: not of jumps, nor of tests; of cmp it is the first operand. */
static bool has_result(unsigned op)
{
	return op < INTERP_OP_PUSH && op != INTERP_OP_TEST && op != INTERP_OP_BT &&
	       op != INTERP_OP_LEA;
}

/* The second operand of what is slow, or of what decides. */
static bool has_source(unsigned op)
{
	return (op >= INTERP_OP_MUL && op <= INTERP_OP_IDIV) || op == INTERP_OP_IMUL ||
	       op == INTERP_OP_CMP || op == INTERP_OP_TEST ||
	       (op >= INTERP_OP_ROL && op <= INTERP_OP_SHRX);
}

static void capture_address(
	struct capture *c, const struct interp_effect *e, capture_fn *fn, void *arg)
{
	size_t n = (e->ip ^ e->ip >> 6) % CAPTURE_PLACES;

	fn(arg, e->ip, VALUE_ADDRESS, 0, e->address);
	if (c->last[n].ip == e->ip)
		fn(arg, e->ip, VALUE_STRIDE, 0, e->address - c->last[n].address);
	c->last[n].ip = e->ip;
	c->last[n].address = e->address;
}

/* The registers that arguments are passed in (System V ABI), of which those known count. */
static void capture_arguments(const struct interp *m, capture_fn *fn, void *arg)
{
	static const uint8_t registers[] = {7, 6, 2, 1, 8, 9};

	for (unsigned i = 0; i < sizeof registers; i++) {
		unsigned r = registers[i];

		if (!((m->unknown | m->unknown_low) >> r & 1))
			fn(arg, m->effect.next, VALUE_ENTRY0 + i, m->effect.ip, m->r[r]);
	}
}

static bool is_repeated(const struct interp *m)
{
	return m->effect.op >= INTERP_OP_MOVS && m->effect.op <= INTERP_OP_CMPS &&
	       m->insn.prefix & (INTERP_P_REP | INTERP_P_REPNE);
}

void capture_step(struct capture *c, const struct interp *m, capture_fn *fn, void *arg)
{
	const struct interp_effect *e = &m->effect;

	if (e->has & INTERP_HAS_VALUE && has_result(e->op))
		fn(arg, e->ip, VALUE_RESULT, 0, e->value);
	if (e->has & INTERP_HAS_SOURCE && has_source(e->op))
		fn(arg, e->ip, VALUE_SOURCE, 0, e->source);
	if (e->has & INTERP_HAS_ADDRESS && e->op < INTERP_OP_PUSH)
		capture_address(c, e, fn, arg);
	if (e->has & INTERP_CALL)
		capture_arguments(m, fn, arg);
	if (is_repeated(m) && !c->goes_on)
		fn(arg, e->ip, VALUE_LENGTH, 0, c->count);
	c->goes_on = is_repeated(m) && e->next == e->ip;
	c->count = m->r[INTERP_RCX];
}
