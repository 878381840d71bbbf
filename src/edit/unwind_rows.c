/*
 * The rows of a frame along new code: the original's, in the order of the new code, written as
 * differences of one row and the next (DWARF 5, 6.4.2).
 */
#include <string.h>

#include "edit/unwind_internal.h"

/* More rows than the largest functions have; memory for them is bounded by it. */
enum { ROWS_MAX = 1 << 17 };

/* ---- expressions ---- */

enum {
	OP_PLUS_UCONST = 0x23,
	OP_REG0 = 0x50,
	OP_BREG0 = 0x70,
	OP_BREG_RSP = OP_BREG0 + CFI_RSP,
	OP_BREG31 = 0x8f,
};

/* Bytes behind a simple operation, -1: it is none of those. */
static int operand_size(uint8_t op)
{
	switch (op) {
	case 0x06:          /* deref */
	case 0x12 ... 0x14: /* dup, drop, over */
	case 0x16 ... 0x22: /* swap to plus */
	case 0x24 ... 0x27: /* shl to xor */
	case 0x29 ... 0x2e: /* comparisons */
	case 0x30 ... 0x6f: /* literals, registers */
	case 0x96:          /* nop */
		return 0;
	case 0x08 ... 0x09: /* const1u, const1s */
	case 0x15:          /* pick */
	case 0x94:          /* deref_size */
		return 1;
	case 0x0a ... 0x0b:
		return 2;
	case 0x0c ... 0x0d:
		return 4;
	case 0x0e ... 0x0f:
		return 8;
	}
	return -1;
}

/* The bytes as they are, which may be longer than they need be, except where rsp counts. */
static void copy_operation(struct cursor *c, uint8_t op, uint32_t pushed, struct buf *out)
{
	const uint8_t *start = c->at;
	int size = operand_size(op);
	uint64_t offset = 0;

	if (size >= 0)
		cursor_skip(c, (size_t)size);
	else if (op == 0x10 || op == OP_PLUS_UCONST) /* constu */
		cursor_uleb(c);
	else if (op == 0x11 || (op >= OP_BREG0 && op <= OP_BREG31)) /* consts */
		offset = (uint64_t)cursor_sleb(c);
	else
		c->failed = true;
	if (op == OP_BREG_RSP && pushed)
		buf_sleb(out, (int64_t)(offset + pushed));
	else
		buf_put(out, start, (size_t)(c->at - start));
}

/*
 * Copies an expression for where rsp is lower, and adds the registers that it reads (by bit, as
 * DWARF numbers them); false when there is an operation we do not know.
 */
static bool copy_expression(
	const struct cfi_rule *rule, uint32_t pushed, struct buf *out, uint32_t *registers)
{
	struct cursor c = cursor_over(rule->expression, rule->size);

	while (cursor_left(&c) && !c.failed) {
		uint8_t op = cursor_u8(&c);
		if (op >= OP_REG0 && op <= OP_BREG31)
			*registers |= 1u << (op - OP_REG0) % 32;
		buf_u8(out, op);
		copy_operation(&c, op, pushed, out);
	}
	return !c.failed;
}

static bool is_expression(const struct cfi_rule *rule)
{
	return rule->kind == CFI_EXPRESSION || rule->kind == CFI_VAL_EXPRESSION;
}

static bool is_rule_known(const struct cfi_rule *rule, struct buf *scratch, uint32_t *registers)
{
	if (rule->kind == CFI_REGISTER && rule->value < 32)
		*registers |= 1u << rule->value;
	return !is_expression(rule) || copy_expression(rule, 0, scratch, registers);
}

/* All of it can be written again; adds the registers that it is based on. */
static bool is_known(const struct cfi_row *row, struct buf *scratch, uint32_t *registers)
{
	bool known = row->cfa.kind != CFI_UNSPECIFIED &&
		     (row->cfa_offset >= 0 || row->cfa_offset % DATA_ALIGN == 0) &&
		     is_rule_known(&row->cfa, scratch, registers);

	for (size_t i = 0; known && i < CFI_REGISTERS; i++)
		known = is_rule_known(&row->registers[i], scratch, registers);
	scratch->n = 0;
	return known;
}

/* ---- reading ---- */

bool unwind_read_rows(const struct unwind *u, const struct unwind_frame *f, struct unwind_rows *out)
{
	const struct unwind_cie *cie = &u->cies.p[f->cie];
	struct cfi c;

	out->list.n = 0;
	cfi_init(&c, &cie->cie, &cie->initial, &f->fde);
	while (out->list.n < ROWS_MAX && cfi_next(&c)) {
		struct unwind_row *row = vec_add(&out->list);
		row->pc = c.pc;
		row->row = c.row;
	}
	bool all = !c.failed && c.until == c.end;
	cfi_deinit(&c);
	return all && cie->understood;
}

bool unwind_check_rows(const struct unwind_rows *rows, uint32_t *registers)
{
	struct buf scratch = {0};
	bool known = true;

	vec_each (row, &rows->list)
		known = known && is_known(&row->row, &scratch, registers);
	buf_deinit(&scratch);
	return known;
}

/* ---- writing ---- */

/* A row at a place where rsp is lower. */
struct state {
	const struct cfi_row *row;
	uint32_t pushed;
	uint64_t at;
};

static void put_advance(struct buf *out, uint64_t n)
{
	if (!n)
		return;
	if (n < 0x40) {
		buf_u8(out, (uint8_t)(0x40 | n)); /* advance_loc */
	} else if (n <= UINT8_MAX) {
		buf_u8(out, 0x02); /* advance_loc1 */
		buf_u8(out, (uint8_t)n);
	} else if (n <= UINT16_MAX) {
		buf_u8(out, 0x03); /* advance_loc2 */
		buf_put(out, &(uint16_t){(uint16_t)n}, 2);
	} else {
		buf_u8(out, 0x04); /* advance_loc4 */
		buf_u32(out, (uint32_t)n);
	}
}

static void put_expression(struct buf *out, const struct cfi_rule *rule, uint32_t pushed)
{
	struct buf b = {0};
	uint32_t registers = 0;

	copy_expression(rule, pushed, &b, &registers);
	buf_uleb(out, b.n);
	buf_put(out, b.p, b.n);
	buf_deinit(&b);
}

static void put_register_operation(struct buf *out, uint8_t op, size_t reg)
{
	buf_u8(out, op);
	buf_uleb(out, reg);
}

/* What was saved below a gap is lower. */
static void put_offset(struct buf *out, const struct unwind_piece *piece, size_t reg, int64_t value)
{
	if (value < -(int64_t)piece->gap)
		value -= piece->pad;
	int64_t n = value / DATA_ALIGN;

	if (n < 0) {
		put_register_operation(out, 0x11, reg); /* offset_extended_sf */
		buf_sleb(out, n);
		return;
	}
	if (reg < 0x40)
		buf_u8(out, (uint8_t)(0x80 | reg)); /* offset */
	else
		put_register_operation(out, 0x05, reg); /* offset_extended */
	buf_uleb(out, (uint64_t)n);
}

static void put_rule(struct buf *out, const struct unwind_cie *cie,
	const struct unwind_piece *piece, size_t reg, const struct cfi_rule *rule, uint32_t pushed)
{
	if (cfi_rule_equal(rule, &cie->initial.registers[reg]) && !is_expression(rule)) {
		buf_u8(out, (uint8_t)(0xc0 | reg)); /* restore */
		return;
	}
	switch (rule->kind) {
	case CFI_UNSPECIFIED: /* initially it was otherwise, and no instruction says so */
	case CFI_SAME:
		put_register_operation(out, 0x08, reg);
		return;
	case CFI_UNDEFINED:
		put_register_operation(out, 0x07, reg);
		return;
	case CFI_REGISTER:
		put_register_operation(out, 0x09, reg);
		buf_uleb(out, (uint64_t)rule->value);
		return;
	case CFI_OFFSET:
		put_offset(out, piece, reg, rule->value);
		return;
	case CFI_VAL_OFFSET:
		put_register_operation(out, 0x15, reg); /* val_offset_sf */
		buf_sleb(out, rule->value / DATA_ALIGN);
		return;
	case CFI_EXPRESSION:
	case CFI_VAL_EXPRESSION:
		put_register_operation(out, rule->kind == CFI_EXPRESSION ? 0x10 : 0x16, reg);
		put_expression(out, rule, pushed);
		return;
	}
}

static int64_t cfa_offset(const struct state *s)
{
	bool lower = s->row->cfa.value == CFI_RSP;

	return (int64_t)((uint64_t)s->row->cfa_offset + (lower ? s->pushed : 0));
}

static void put_cfa_offset(struct buf *out, const struct state *s)
{
	int64_t offset = cfa_offset(s);

	if (offset < 0) {          /* hand-written code that leaves its frame */
		buf_u8(out, 0x13); /* def_cfa_offset_sf */
		buf_sleb(out, offset / DATA_ALIGN);
	} else {
		buf_u8(out, 0x0e); /* def_cfa_offset */
		buf_uleb(out, (uint64_t)offset);
	}
}

static void put_cfa(struct buf *out, const struct state *from, const struct state *to)
{
	const struct cfi_rule *a = &from->row->cfa, *b = &to->row->cfa;
	bool same = cfi_rule_equal(a, b);

	if (b->kind == CFI_VAL_EXPRESSION) {
		if (same && from->pushed == to->pushed)
			return;
		buf_u8(out, 0x0f); /* def_cfa_expression */
		put_expression(out, b, to->pushed);
		return;
	}
	if (!same)
		put_register_operation(out, 0x0d, (size_t)b->value); /* def_cfa_register */
	if (a->kind != CFI_REGISTER || cfa_offset(from) != cfa_offset(to))
		put_cfa_offset(out, to);
}

static void put_difference(struct buf *out, const struct unwind_cie *cie,
	const struct unwind_piece *piece, const struct state *from, const struct state *to)
{
	put_cfa(out, from, to);
	for (size_t i = 0; i < CFI_REGISTERS; i++) {
		const struct cfi_rule *a = &from->row->registers[i], *b = &to->row->registers[i];
		bool shifted = from->pushed != to->pushed && is_expression(b);
		bool same = !memcmp(a, b, sizeof *a) || cfi_rule_equal(a, b); /* mostly the first */
		if (shifted || !same)
			put_rule(out, cie, piece, i, b, to->pushed);
	}
	if (from->row->args_size != to->row->args_size) {
		buf_u8(out, 0x2e); /* GNU_args_size */
		buf_uleb(out, to->row->args_size);
	}
}

struct writer {
	struct buf *out;
	const struct unwind_cie *cie;
	const struct unwind_rows *rows;
	const struct unwind_piece *piece;
	struct state now; /* what has been written */
};

/* From here on another row; what says nothing new is not written, not even where it begins. */
static void go_to(struct writer *w, uint64_t at, const struct cfi_row *row, uint32_t pushed)
{
	struct state next = {.row = row, .pushed = pushed, .at = at};
	size_t before = w->out->n;

	if (row == w->now.row && pushed == w->now.pushed)
		return;
	put_advance(w->out, at - w->now.at);
	size_t advanced = w->out->n;
	put_difference(w->out, w->cie, w->piece, &w->now, &next);
	if (w->out->n == advanced) {
		w->out->n = before;
		next.at = w->now.at;
	}
	w->now = next;
}

/* The row that holds at an old address. */
static size_t find_row(const struct unwind_rows *rows, uint64_t pc)
{
	size_t low = 0, high = rows->list.n;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (rows->list.p[middle].pc <= pc)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void put_span(struct writer *w, const struct edit_span *s)
{
	size_t i = find_row(w->rows, s->old);

	go_to(w, s->at, &w->rows->list.p[i].row, s->pushed);
	if (!s->copied)
		return;
	while (++i < w->rows->list.n && w->rows->list.p[i].pc < s->old + s->size) {
		const struct unwind_row *row = &w->rows->list.p[i];
		go_to(w, s->at + (row->pc - s->old), &row->row, s->pushed);
	}
}

void unwind_put_rows(const struct unwind_cie *cie, const struct unwind_rows *rows,
	const struct unwind_piece *piece, struct buf *out)
{
	struct writer w = {.out = out, .cie = cie, .rows = rows, .piece = piece};

	w.now = (struct state){.row = &cie->initial, .at = piece->start};
	for (size_t i = 0; i < piece->nspans; i++) {
		struct edit_span s = unwind_clip(piece, &piece->spans[i]);
		put_span(&w, &s);
	}
}
