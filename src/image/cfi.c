#include "image/cfi.h"

#include <string.h>

#include "image/eh_pointer.h"

/* As deep as anybody's code remembers states; compilers need one or two. */
enum { REMEMBERED_MAX = 64 };

static void set(struct cfi *c, uint64_t reg, struct cfi_rule rule)
{
	if (reg < CFI_REGISTERS)
		c->row.registers[reg] = rule;
	else
		c->failed = true;
}

static void set_value(struct cfi *c, uint64_t reg, enum cfi_kind kind, int64_t value)
{
	set(c, reg, (struct cfi_rule){.kind = kind, .value = value});
}

static int64_t factored(const struct cfi *c, uint64_t n)
{
	return (int64_t)(n * (uint64_t)c->cie->data_align);
}

static void set_offset(struct cfi *c, uint64_t reg, enum cfi_kind kind, uint64_t n)
{
	set_value(c, reg, kind, factored(c, n));
}

static void restore(struct cfi *c, uint64_t reg)
{
	if (c->initial && reg < CFI_REGISTERS)
		c->row.registers[reg] = c->initial->registers[reg];
	else
		c->failed = true;
}

static struct cfi_rule read_expression(struct cfi *c, enum cfi_kind kind)
{
	uint64_t n = cursor_uleb(&c->left);
	const void *p = cursor_bytes(&c->left, n);
	if (!p || n > UINT32_MAX)
		c->failed = true;
	return (struct cfi_rule){.kind = kind, .size = p ? (uint32_t)n : 0, .expression = p};
}

static void remember(struct cfi *c)
{
	if (c->remembered.n < REMEMBERED_MAX)
		*vec_add(&c->remembered) = c->row;
	else
		c->failed = true;
}

/* The size of arguments is no part of the state (as in libgcc's unwinder). */
static void recall(struct cfi *c)
{
	uint64_t args_size = c->row.args_size;

	if (!c->remembered.n) {
		c->failed = true;
		return;
	}
	c->row = c->remembered.p[--c->remembered.n];
	c->row.args_size = args_size;
}

static void def_cfa_register(struct cfi *c, uint64_t reg)
{
	c->row.cfa = (struct cfi_rule){.kind = CFI_REGISTER, .value = (int64_t)reg};
}

/* An expression leaves the offset for a register that follows it (as in libgcc and gdb). */
static void run_cfa(struct cfi *c, uint8_t op)
{
	struct cursor *l = &c->left;

	if (op == 0x0c || op == 0x0d || op == 0x12) /* def_cfa, def_cfa_register, def_cfa_sf */
		def_cfa_register(c, cursor_uleb(l));
	if (op == 0x0c || op == 0x0e) /* ... def_cfa_offset */
		c->row.cfa_offset = (int64_t)cursor_uleb(l);
	if (op == 0x12 || op == 0x13) /* ... def_cfa_offset_sf */
		c->row.cfa_offset = factored(c, (uint64_t)cursor_sleb(l));
	if (op == 0x0f) /* def_cfa_expression */
		c->row.cfa = read_expression(c, CFI_VAL_EXPRESSION);
}

/* One of the instructions that have their operands behind them. */
static void run_extended(struct cfi *c, uint8_t op)
{
	struct cursor *l = &c->left;
	uint64_t reg;

	switch (op) {
	case 0x00: /* nop */
		return;
	case 0x0a:
		remember(c);
		return;
	case 0x0b:
		recall(c);
		return;
	case 0x0c ... 0x0f:
	case 0x12 ... 0x13:
		run_cfa(c, op);
		return;
	case 0x2e: /* GNU_args_size */
		c->row.args_size = cursor_uleb(l);
		return;
	}
	reg = cursor_uleb(l);
	switch (op) {
	case 0x05: /* offset_extended */
		set_offset(c, reg, CFI_OFFSET, cursor_uleb(l));
		return;
	case 0x11: /* offset_extended_sf */
		set_offset(c, reg, CFI_OFFSET, (uint64_t)cursor_sleb(l));
		return;
	case 0x2f: /* GNU_negative_offset_extended */
		set_offset(c, reg, CFI_OFFSET, 0 - cursor_uleb(l));
		return;
	case 0x14: /* val_offset */
		set_offset(c, reg, CFI_VAL_OFFSET, cursor_uleb(l));
		return;
	case 0x15: /* val_offset_sf */
		set_offset(c, reg, CFI_VAL_OFFSET, (uint64_t)cursor_sleb(l));
		return;
	case 0x06: /* restore_extended */
		restore(c, reg);
		return;
	case 0x07: /* undefined */
		set_value(c, reg, CFI_UNDEFINED, 0);
		return;
	case 0x08: /* same_value */
		set_value(c, reg, CFI_SAME, 0);
		return;
	case 0x09: /* register */
		set_value(c, reg, CFI_REGISTER, (int64_t)cursor_uleb(l));
		return;
	case 0x10: /* expression */
		set(c, reg, read_expression(c, CFI_EXPRESSION));
		return;
	case 0x16: /* val_expression */
		set(c, reg, read_expression(c, CFI_VAL_EXPRESSION));
		return;
	}
	c->failed = true; /* set_loc, or something of another machine */
}

/* Where the next row begins. set_loc is not known here: nobody emits it. */
static uint64_t run_advance(struct cfi *c, uint8_t op)
{
	struct cursor *l = &c->left;
	uint64_t n;

	if (op >> 6 == 1)
		n = op & 0x3f;
	else if (op == 0x02)
		n = cursor_u8(l);
	else if (op == 0x03)
		n = cursor_u16(l);
	else
		n = cursor_u32(l);
	return c->until + n * c->cie->code_align;
}

static void run(struct cfi *c, uint8_t op)
{
	switch (op >> 6) {
	case 2: /* offset */
		set_offset(c, op & 0x3f, CFI_OFFSET, cursor_uleb(&c->left));
		return;
	case 3:
		restore(c, op & 0x3f);
		return;
	}
	run_extended(c, op);
}

void cfi_init(struct cfi *c, const struct eh_cie *cie, const struct cfi_row *initial,
	const struct eh_fde *fde)
{
	*c = (struct cfi){.cie = cie, .initial = initial};
	if (initial)
		c->row = *initial;
	if (fde) {
		c->left = fde->instructions;
		c->until = fde->start;
		c->end = fde->start + fde->size;
	} else {
		c->left = cie->instructions;
		c->end = 1;
	}
}

void cfi_deinit(struct cfi *c)
{
	vec_deinit(&c->remembered);
}

bool cfi_next(struct cfi *c)
{
	c->pc = c->until;
	while (!c->failed && c->until == c->pc && cursor_left(&c->left)) {
		uint8_t op = cursor_u8(&c->left);
		if (op >> 6 == 1 || (op >= 0x02 && op <= 0x04))
			c->until = run_advance(c, op);
		else
			run(c, op);
		c->failed |= c->left.failed || c->until < c->pc;
	}
	if (c->until == c->pc || c->until > c->end)
		c->until = c->end;
	return !c->failed && c->pc < c->end;
}

bool cfi_initial(const struct eh_cie *cie, struct cfi_row *out)
{
	struct cfi c;

	cfi_init(&c, cie, NULL, NULL);
	bool known = cfi_next(&c) && !cursor_left(&c.left);
	*out = c.row;
	cfi_deinit(&c);
	return known;
}

bool cfi_rule_equal(const struct cfi_rule *a, const struct cfi_rule *b)
{
	if (a->kind != b->kind || a->size != b->size)
		return false;
	if (a->kind == CFI_EXPRESSION || a->kind == CFI_VAL_EXPRESSION)
		return !memcmp(a->expression, b->expression, a->size);
	return a->value == b->value;
}
