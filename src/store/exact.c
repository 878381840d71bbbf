#include "store/exact.h"

#include "base/buf.h"

#include <assert.h>
#include <errno.h>

/*
 * A profile of exact counts (unpacked):
 *
 *   uleb    number of rows
 *   rows, each:
 *     u8      kind
 *     a procedure:  uleb start - that of the one before (less 0 for the first), uleb count
 *     a block:      sleb a - last, uleb b, uleb count
 *     an edge:      sleb a - last, sleb b - a, uleb count
 *
 * 1. `last` is a of the row before if it is of the same kind, else the procedure's start.
 * 2. Rows ascend; differences are modulo 2^64.
 * 3. The first row is a procedure; blocks and edges belong to the last one before them.
 * 4. The last row ends the blob.
 */
#define ROW_LEAST 3 /* bytes */

int exact_row_compare(const void *a, const void *b)
{
	const struct exact_row *x = a, *y = b;

	if (x->procedure != y->procedure)
		return x->procedure < y->procedure ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	return x->b < y->b ? -1 : x->b > y->b;
}

static uint64_t add_counts(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t last_of(const struct exact_row *before, enum exact_kind kind)
{
	return before->kind == kind ? before->a : before->procedure;
}

/* ---- writing ---- */

static void put_row(struct buf *out, const struct exact_row *before, const struct exact_row *r)
{
	buf_u8(out, (uint8_t)r->kind);
	if (r->kind == EXACT_PROCEDURE) {
		buf_uleb(out, r->procedure - before->procedure);
	} else {
		buf_sleb(out, (int64_t)(r->a - last_of(before, r->kind)));
		if (r->kind == EXACT_BLOCK)
			buf_uleb(out, r->b);
		else
			buf_sleb(out, (int64_t)(r->b - r->a));
	}
	buf_uleb(out, r->count);
}

void exact_pack(const struct exact_row *rows, size_t n, struct buf *out)
{
	static const struct exact_row none;

	buf_uleb(out, n);
	for (size_t i = 0; i < n; i++) {
		assert(i ? exact_row_compare(&rows[i - 1], &rows[i]) < 0 &&
					(rows[i].kind == EXACT_PROCEDURE ||
						rows[i].procedure == rows[i - 1].procedure)
			 : rows[i].kind == EXACT_PROCEDURE);
		put_row(out, i ? &rows[i - 1] : &none, &rows[i]);
	}
}

/* ---- reading ---- */

int exact_reader_init(struct exact_reader *r, const void *p, size_t n)
{
	*r = (struct exact_reader){.at = cursor_over(p, n)};
	r->left = cursor_uleb(&r->at);
	return r->at.failed || r->left > cursor_left(&r->at) / ROW_LEAST ? -EBADMSG : 0;
}

static int read_row(struct exact_reader *r, struct exact_row *row)
{
	uint8_t kind = cursor_u8(&r->at);

	*row = (struct exact_row){.procedure = r->last.procedure, .kind = kind};
	if (kind > EXACT_EDGE || (kind != EXACT_PROCEDURE && !r->begun))
		return -EBADMSG;
	if (kind == EXACT_PROCEDURE) {
		row->procedure += cursor_uleb(&r->at);
		if (row->procedure < r->last.procedure)
			return -EBADMSG;
	} else {
		row->a = last_of(&r->last, kind) + (uint64_t)cursor_sleb(&r->at);
		row->b = kind == EXACT_BLOCK ? cursor_uleb(&r->at)
					     : row->a + (uint64_t)cursor_sleb(&r->at);
	}
	row->count = cursor_uleb(&r->at);
	return r->at.failed ? -EBADMSG : 0;
}

int exact_reader_next(struct exact_reader *r, struct exact_row *out)
{
	struct exact_row row;

	if (!r->left)
		return cursor_left(&r->at) ? -EBADMSG : 0;
	if (read_row(r, &row) || (r->begun && exact_row_compare(&r->last, &row) >= 0))
		return -EBADMSG;
	*out = r->last = row;
	r->begun = true;
	r->left--;
	return 1;
}

/* ---- as a type of blob ---- */

/* Two profiles read as one. */
struct exact_merger {
	struct exact_reader a, b;
	struct exact_row ra, rb;
	int left_a, left_b; /* what the readers said last */
};

static int merger_next(struct exact_merger *m, struct exact_row *out)
{
	int order;

	if (m->left_a < 0 || m->left_b < 0)
		return -EBADMSG;
	if (!m->left_a && !m->left_b)
		return 0;
	order = !m->left_b ? -1 : !m->left_a ? 1 : exact_row_compare(&m->ra, &m->rb);
	*out = order <= 0 ? m->ra : m->rb;
	if (!order)
		out->count = add_counts(m->ra.count, m->rb.count);
	if (order <= 0)
		m->left_a = exact_reader_next(&m->a, &m->ra);
	if (order >= 0)
		m->left_b = exact_reader_next(&m->b, &m->rb);
	return 1;
}

static int exact_merge(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	struct exact_merger m;
	struct exact_row row, before = {0};
	struct buf body = {0};
	uint64_t rows = 0;
	int r;

	if (exact_reader_init(&m.a, a, na) || exact_reader_init(&m.b, b, nb))
		return -EBADMSG;
	m.left_a = exact_reader_next(&m.a, &m.ra);
	m.left_b = exact_reader_next(&m.b, &m.rb);
	for (; (r = merger_next(&m, &row)) > 0; rows++) {
		put_row(&body, &before, &row);
		before = row;
	}
	if (!r) {
		buf_uleb(out, rows);
		buf_put(out, body.p, body.n);
	}
	buf_deinit(&body);
	return r;
}

static int exact_weight(const void *p, size_t n, uint64_t *samples)
{
	struct exact_reader reader;
	struct exact_row row;
	uint64_t sum = 0;
	int r;

	if (exact_reader_init(&reader, p, n))
		return -EBADMSG;
	while ((r = exact_reader_next(&reader, &row)) > 0)
		if (row.kind == EXACT_BLOCK)
			sum = add_counts(sum, row.count);
	if (!r)
		*samples = sum;
	return r;
}

static int exact_check(const void *p, size_t n)
{
	uint64_t samples;

	return exact_weight(p, n, &samples);
}

const struct blob_type blob_exact = {
	.name = "exact",
	.merge = exact_merge,
	.check = exact_check,
	.weight = exact_weight,
};
