#include "store/store_internal.h"

#include "base/cursor.h"

#include <errno.h>
#include <string.h>

/*
 * procedures.data, unpacked: one batch, column by column because like compresses with like.
 *
 *   uleb          n
 *   n x uleb      start, less the smallest possible one (0, then the start before + 1)
 *   n x u8        bits 0 to 2: enum procedure_source; bit 3: named; bit 4: has code
 *   n x uleb      number of ranges
 *   each range:   sleb start less the end of the range before (first: the procedure's start),
 *                 uleb size
 *   with code:    uleb size of the code
 *   named:        the name and a NUL
 *
 * code.data, unpacked: the code of those that have any, one after the other.
 *
 *  1. Starts rise, so that none is there twice.
 *  2. Nothing follows the last name.
 */
#define NAMED    0x08
#define HAS_CODE 0x10

static void encode_ranges(const struct procedure *p, struct buf *out)
{
	uint64_t end = p->start;

	for (uint32_t i = 0; i < p->nranges; i++) {
		buf_sleb(out, (int64_t)(p->ranges[i].start - end));
		buf_uleb(out, p->ranges[i].size);
		end = p->ranges[i].start + p->ranges[i].size;
	}
}

void procedures_encode(const struct store_procedure *list, size_t n, struct buf *out)
{
	uint64_t least = 0;

	buf_uleb(out, n);
	for (size_t i = 0; i < n; i++) {
		buf_uleb(out, list[i].p.start - least);
		least = list[i].p.start + 1;
	}
	for (size_t i = 0; i < n; i++)
		buf_u8(out, (uint8_t)(list[i].p.source | (list[i].p.name ? NAMED : 0) |
				      (list[i].code ? HAS_CODE : 0)));
	for (size_t i = 0; i < n; i++)
		buf_uleb(out, list[i].p.nranges);
	for (size_t i = 0; i < n; i++)
		encode_ranges(&list[i].p, out);
	for (size_t i = 0; i < n; i++)
		if (list[i].code)
			buf_uleb(out, list[i].code_size);
	for (size_t i = 0; i < n; i++)
		if (list[i].p.name)
			buf_str(out, list[i].p.name);
}

static void decode_starts(struct cursor *c, struct procedure_row *rows, size_t n)
{
	uint64_t least = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t d = cursor_uleb(c);

		if (__builtin_add_overflow(least, d, &rows[i].p.start) ||
			(rows[i].p.start == UINT64_MAX && i + 1 < n))
			c->failed = true;
		least = rows[i].p.start + 1;
	}
}

static void decode_ranges(struct cursor *c, struct arena *a, struct procedure *p)
{
	struct range *ranges;
	uint64_t end = p->start;

	/* Each takes two bytes at least. */
	if (p->nranges > cursor_left(c) / 2) {
		c->failed = true;
		p->nranges = 0;
	}
	ranges = arena_alloc(a, p->nranges * sizeof *ranges);
	for (uint32_t i = 0; i < p->nranges; i++) {
		ranges[i].start = end + (uint64_t)cursor_sleb(c);
		ranges[i].size = cursor_uleb(c);
		end = ranges[i].start + ranges[i].size;
	}
	p->ranges = ranges;
}

static void decode_code(struct cursor *c, struct procedure_row *rows, size_t n)
{
	uint64_t offset = 0;

	for (size_t i = 0; i < n; i++) {
		if (!rows[i].has_code)
			continue;
		rows[i].code_offset = offset;
		rows[i].code_size = cursor_uleb(c);
		if (__builtin_add_overflow(offset, rows[i].code_size, &offset))
			c->failed = true;
	}
}

/* After this, rows[i].p.name is not NULL where a name will be. */
static void decode_heads(struct cursor *c, struct procedure_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t head = cursor_u8(c);

		if ((head & 7) > PROCEDURE_GAP || head >> 5)
			c->failed = true;
		rows[i].p.source = head & 7;
		rows[i].p.name = head & NAMED ? "" : NULL;
		rows[i].has_code = head & HAS_CODE;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t nranges = cursor_uleb(c);

		if (nranges > UINT32_MAX)
			c->failed = true;
		rows[i].p.nranges = (uint32_t)nranges;
	}
}

int procedures_decode(const void *p, size_t size, struct arena *a, procedure_rows *rows)
{
	struct cursor c = cursor_over(p, size);
	uint64_t n = cursor_uleb(&c);
	struct procedure_row *fresh;

	if (c.failed || n > cursor_left(&c) / 3)
		return -EBADMSG;
	if (!n)
		return cursor_left(&c) ? -EBADMSG : 0;
	vec_reserve(rows, rows->n + n);
	fresh = rows->p + rows->n;
	memset(fresh, 0, n * sizeof *fresh);
	decode_starts(&c, fresh, n);
	decode_heads(&c, fresh, n);
	for (size_t i = 0; i < n && !c.failed; i++)
		decode_ranges(&c, a, &fresh[i].p);
	decode_code(&c, fresh, n);
	for (size_t i = 0; i < n && !c.failed; i++)
		if (fresh[i].p.name)
			fresh[i].p.name = arena_strdup(a, cursor_str(&c));
	if (c.failed || cursor_left(&c))
		return -EBADMSG;
	rows->n += n;
	return 0;
}
