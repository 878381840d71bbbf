/* Lists of ranges and of locations for code that was moved (DWARF 5, sections 2.17.3 and 2.6.2). */
#include "edit/debug_internal.h"

#include "base/mem.h"

#include <string.h>

enum {
	RLE_END = 0,
	RLE_START_LENGTH = 7,
	LLE_END = 0,
	LLE_BASE_ADDRESSX = 1,
	LLE_STARTX_ENDX = 2,
	LLE_STARTX_LENGTH = 3,
	LLE_OFFSET_PAIR = 4,
	LLE_DEFAULT = 5,
	LLE_BASE_ADDRESS = 6,
	LLE_START_END = 7,
	LLE_START_LENGTH = 8,
	LLE_VIEW_PAIR = 9, /* GNU's; which view of an address is meant is lost */
	OP_FBREG = 0x91,
};

/* ---- addresses by number ---- */

bool debug_address(const struct debug *d, const struct debug_unit *u, uint64_t index, uint64_t *out)
{
	struct cursor c = d->sections[DEBUG_ADDR].old;
	uint64_t at;

	if (!u->addr_base || index > UINT32_MAX)
		return false;
	at = u->addr_base + 8 * index;
	cursor_seek(&c, at);
	*out = cursor_u64(&c);
	return !c.failed;
}

/* ---- tables ---- */

/* Our lists of version 5 stand in tables of their own, for who reads a section from its start. */
static struct buf *table(struct debug *d, enum debug_section s, size_t *header)
{
	struct buf *b = debug_buf(d, s);

	if (!*header) {
		*header = b->n + 1; /* one more, for 0 means none */
		buf_u32(b, 0);
		buf_u8(b, 5);
		buf_u8(b, 0);
		buf_u8(b, 8);
		buf_u8(b, 0);
		buf_u32(b, 0);
	}
	return b;
}

static void finish_table(struct debug *d, enum debug_section s, size_t header)
{
	if (header)
		debug_put_u32(d, s, header - 1, debug_buf(d, s)->n - (header - 1) - 4);
}

void debug_lists_finish(struct debug *d)
{
	finish_table(d, DEBUG_RNGLISTS, d->rnglists);
	finish_table(d, DEBUG_LOCLISTS, d->loclists);
}

/* Whether lists are found by number, in tables that must stay. */
static bool has_numbers(struct cursor c)
{
	while (cursor_left(&c) && !c.failed) {
		struct cursor table = cursor_slice(&c, cursor_u32(&c));

		cursor_skip(&table, 4);
		if (cursor_u32(&table) || table.failed)
			return true;
	}
	return c.failed;
}

void debug_lists_begin(struct debug *d)
{
	static const enum debug_section five[] = {DEBUG_RNGLISTS, DEBUG_LOCLISTS};

	debug_buf(d, DEBUG_RANGES)->n = 0;
	debug_buf(d, DEBUG_LOC)->n = 0;
	for (size_t i = 0; i < 2; i++)
		if (!has_numbers(d->sections[five[i]].old))
			debug_buf(d, five[i])->n = 0;
}

/* ---- ranges ---- */

/* Before version 5 ranges are relative to a base, which is said to be 0. */
static void put_base(struct buf *b)
{
	buf_u64(b, UINT64_MAX);
	buf_u64(b, 0);
}

uint64_t debug_ranges_write(struct debug *d, const struct debug_unit *u, const range_list *list)
{
	bool five = u->version >= 5;
	struct buf *b = five ? table(d, DEBUG_RNGLISTS, &d->rnglists) : debug_buf(d, DEBUG_RANGES);
	uint64_t at = b->n;

	if (!five)
		put_base(b);
	vec_each (r, list) {
		if (five)
			buf_u8(b, RLE_START_LENGTH);
		buf_u64(b, r->start);
		if (five)
			buf_uleb(b, r->size);
		else
			buf_u64(b, r->start + r->size);
	}
	if (five)
		buf_u8(b, RLE_END);
	for (int i = 0; i < 2 && !five; i++)
		buf_u64(b, 0);
	return at;
}

/* ---- expressions ---- */

/*
 * Locals lie lower where the frame became larger above them. Where they are relative to anything
 * but the CFA that is not followed: an empty expression says that nobody knows.
 */
void debug_put_expression(const struct debug *d, const struct debug_piece *p, const uint8_t *bytes,
	size_t n, struct buf *out)
{
	struct cursor c = cursor_over(bytes, n);
	int64_t offset;

	if (!p || !p->fragment->pad || cursor_u8(&c) != OP_FBREG) {
		buf_put(out, bytes, n);
		return;
	}
	if (!d->by_cfa)
		return;
	offset = cursor_sleb(&c);
	if (offset < -(int64_t)p->fragment->gap)
		offset -= p->fragment->pad;
	buf_u8(out, OP_FBREG);
	buf_sleb(out, offset);
	buf_put(out, c.at, cursor_left(&c));
}

/* ---- locations ---- */

struct location {
	uint64_t start, end;
	struct cursor expression;
	bool everywhere; /* the default location */
};

/* Reads one entry: 1, 0 at the end, -1 for what is not understood. */
static int read_five(const struct debug *d, const struct debug_unit *u, struct cursor *c,
	uint64_t *base, struct location *out)
{
	for (;;) {
		uint8_t kind = cursor_u8(c);
		uint64_t a, b;

		*out = (struct location){0};
		switch (kind) {
		case LLE_END:
			return c->failed ? -1 : 0;
		case LLE_BASE_ADDRESSX:
			if (!debug_address(d, u, cursor_uleb(c), base))
				return -1;
			continue;
		case LLE_BASE_ADDRESS:
			*base = cursor_u64(c);
			continue;
		case LLE_VIEW_PAIR:
			cursor_uleb(c);
			cursor_uleb(c);
			continue;
		case LLE_STARTX_ENDX:
			a = cursor_uleb(c);
			b = cursor_uleb(c);
			if (!debug_address(d, u, a, &out->start) ||
				!debug_address(d, u, b, &out->end))
				return -1;
			break;
		case LLE_STARTX_LENGTH:
			if (!debug_address(d, u, cursor_uleb(c), &out->start))
				return -1;
			out->end = out->start + cursor_uleb(c);
			break;
		case LLE_OFFSET_PAIR:
			out->start = *base + cursor_uleb(c);
			out->end = *base + cursor_uleb(c);
			break;
		case LLE_DEFAULT:
			out->everywhere = true;
			break;
		case LLE_START_END:
			out->start = cursor_u64(c);
			out->end = cursor_u64(c);
			break;
		case LLE_START_LENGTH:
			out->start = cursor_u64(c);
			out->end = out->start + cursor_uleb(c);
			break;
		default:
			return -1;
		}
		out->expression = cursor_slice(c, cursor_uleb(c));
		return c->failed ? -1 : 1;
	}
}

static int read_four(struct cursor *c, uint64_t *base, struct location *out)
{
	for (;;) {
		uint64_t a = cursor_u64(c), b = cursor_u64(c);

		*out = (struct location){0};
		if (c->failed)
			return -1;
		if (!a && !b)
			return 0;
		if (a == UINT64_MAX) {
			*base = b;
			continue;
		}
		out->start = *base + a;
		out->end = *base + b;
		out->expression = cursor_slice(c, cursor_u16(c));
		return c->failed ? -1 : 1;
	}
}

static void put_location(const struct debug *d, struct buf *b, bool five,
	const struct debug_piece *p, const struct location *l, uint64_t start, uint64_t end)
{
	struct buf expression = {0};
	struct cursor e = l->expression;

	debug_put_expression(d, p, e.start, (size_t)(e.end - e.start), &expression);
	if (five && l->everywhere) {
		buf_u8(b, LLE_DEFAULT);
	} else if (five) {
		buf_u8(b, LLE_START_LENGTH);
		buf_u64(b, start);
		buf_uleb(b, end - start);
	} else {
		buf_u64(b, start);
		buf_u64(b, end);
	}
	if (five) {
		buf_uleb(b, expression.n);
	} else {
		buf_u8(b, (uint8_t)expression.n);
		buf_u8(b, (uint8_t)(expression.n >> 8));
	}
	buf_put(b, expression.p, expression.n);
	buf_deinit(&expression);
}

/* An empty range says nothing, and in old lists would end them. */
static bool put_moved(const struct debug *d, struct buf *b, bool five, const struct location *l)
{
	const struct debug_piece *p = debug_map_piece(d->map, l->start);
	uint64_t start = debug_map_start(d->map, l->start), end = debug_map_end(d->map, l->end);
	bool any = l->everywhere || (l->start < l->end && start < end);

	if (any)
		put_location(d, b, five, p, l, start, end);
	return any;
}

/* The list at an offset for the code as it is now; returns how many entries it has. */
static size_t move_list(
	struct debug *d, const struct debug_unit *u, uint64_t old_offset, struct buf *out)
{
	bool five = u->version >= 5;
	struct cursor c = d->sections[five ? DEBUG_LOCLISTS : DEBUG_LOC].old;
	uint64_t base = u->base;
	struct location l;
	size_t n = 0;
	int more;

	cursor_seek(&c, old_offset);
	if (!five)
		put_base(out);
	while ((more = five ? read_five(d, u, &c, &base, &l) : read_four(&c, &base, &l)) > 0)
		n += put_moved(d, out, five, &l);
	d->strange |= more < 0;
	if (five)
		buf_u8(out, LLE_END);
	for (int i = 0; i < 2 && !five; i++)
		buf_u64(out, 0);
	return n;
}

const struct debug_list *debug_locations_write(
	struct debug *d, const struct debug_unit *u, uint64_t old_offset, bool views)
{
	enum debug_section section = u->version >= 5 ? DEBUG_LOCLISTS : DEBUG_LOC;
	bool fresh;
	struct debug_list *known = debug_known(d, section, old_offset, &fresh);
	struct buf list = {0}, *b;
	size_t n;

	if (!fresh)
		return known;
	b = section == DEBUG_LOC ? debug_buf(d, section) : table(d, section, &d->loclists);
	known->views = b->n;
	n = move_list(d, u, old_offset, &list);
	for (size_t i = 0; views && (i < n || !i); i++) { /* one at least: no two are at a place */
		buf_u8(b, 0);
		buf_u8(b, 0);
	}
	known->offset = b->n;
	buf_put(b, list.p, list.n);
	buf_deinit(&list);
	return known;
}
