#include "store/paths.h"

#include "base/buf.h"

#include <assert.h>
#include <errno.h>

/*
 * A profile of paths (unpacked):
 *
 *   names of metrics (metrics.h)
 *   uleb    number of rows
 *   rows, each:
 *     u8      0 a procedure, 1 a path
 *     a procedure:  uleb start - that of the one before (less 0 for the first), u8 how,
 *                   uleb potential, uleb cuts, uleb off
 *     a path:       its shape (shape.h), uleb count, uleb for each metric
 *
 * 1. Rows ascend: procedures by start, paths of each by shape.
 * 2. The first row is a procedure; paths belong to the last one before them.
 * 3. The last row ends the blob.
 */
#define ROW_LEAST 5 /* bytes */

int path_row_compare(const void *a, const void *b)
{
	const struct path_row *x = a, *y = b;

	if (x->procedure != y->procedure)
		return x->procedure < y->procedure ? -1 : 1;
	if (x->is_path != y->is_path)
		return x->is_path ? 1 : -1;
	return x->is_path ? path_shape_compare(&x->shape, &y->shape) : 0;
}

/* ---- writing ---- */

static void put_procedure(struct buf *out, uint64_t before, const struct path_row *r)
{
	buf_uleb(out, r->procedure - before);
	buf_u8(out, r->how);
	buf_uleb(out, r->potential);
	buf_uleb(out, r->cuts);
	buf_uleb(out, r->off);
}

static void put_row(struct buf *out, const struct metric_names *names, uint64_t before,
	const struct path_row *r)
{
	buf_u8(out, r->is_path);
	if (!r->is_path) {
		put_procedure(out, before, r);
		return;
	}
	path_shape_put(&r->shape, r->procedure, out);
	buf_uleb(out, r->count);
	for (uint32_t i = 0; i < names->n; i++)
		buf_uleb(out, r->metrics[i]);
}

void paths_pack(
	const struct metric_names *names, const struct path_row *rows, size_t n, struct buf *out)
{
	metric_names_put(names, out);
	buf_uleb(out, n);
	for (size_t i = 0; i < n; i++) {
		assert(rows[i].how < PATH_HOWS);
		assert(i ? path_row_compare(&rows[i - 1], &rows[i]) < 0 &&
					(!rows[i].is_path ||
						rows[i].procedure == rows[i - 1].procedure)
			 : !rows[i].is_path);
		put_row(out, names, i ? rows[i - 1].procedure : 0, &rows[i]);
	}
}

/* ---- reading ---- */

int path_reader_init(struct path_reader *r, const void *p, size_t n)
{
	*r = (struct path_reader){.at = cursor_over(p, n)};
	if (metric_names_read(&r->names, &r->at))
		return -EBADMSG;
	r->left = cursor_uleb(&r->at);
	return r->at.failed || r->left > cursor_left(&r->at) / ROW_LEAST ? -EBADMSG : 0;
}

static int read_procedure(struct path_reader *r, struct path_row *row)
{
	if (__builtin_add_overflow(row->procedure, cursor_uleb(&r->at), &row->procedure))
		return -EBADMSG;
	row->how = cursor_u8(&r->at);
	row->potential = cursor_uleb(&r->at);
	row->cuts = cursor_uleb(&r->at);
	row->off = cursor_uleb(&r->at);
	return row->how >= PATH_HOWS ? -EBADMSG : 0;
}

static int read_path(struct path_reader *r, struct path_row *row)
{
	if (!r->begun ||
		path_shape_read(&row->shape, row->procedure, &r->at, &r->blocks[r->turn ^= 1]))
		return -EBADMSG;
	row->is_path = true;
	row->count = cursor_uleb(&r->at);
	for (uint32_t i = 0; i < r->names.n; i++)
		row->metrics[i] = cursor_uleb(&r->at);
	return 0;
}

int path_reader_next(struct path_reader *r, struct path_row *out)
{
	struct path_row row = {.procedure = r->last.procedure};
	uint8_t kind;

	if (!r->left)
		return cursor_left(&r->at) ? -EBADMSG : 0;
	kind = cursor_u8(&r->at);
	if (kind > 1 || (kind ? read_path(r, &row) : read_procedure(r, &row)) || r->at.failed ||
		(r->begun && path_row_compare(&r->last, &row) >= 0))
		return -EBADMSG;
	*out = r->last = row;
	r->begun = true;
	r->left--;
	return 1;
}

void path_reader_deinit(struct path_reader *r)
{
	vec_deinit(&r->blocks[0]);
	vec_deinit(&r->blocks[1]);
}

/* ---- as a type of blob ---- */

/* Two profiles read as one. */
struct path_merger {
	struct metric_names names;
	struct path_reader reader[2];
	struct path_row row[2];
	int left[2]; /* what the readers said last */
};

static void merger_turn(struct path_merger *m, int i)
{
	m->left[i] = path_reader_next(&m->reader[i], &m->row[i]);
	if (m->left[i] > 0)
		metric_reorder(
			&m->reader[i].names, m->row[i].metrics, &m->names, m->row[i].metrics);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void add_row(struct path_row *to, const struct path_row *r)
{
	to->how = r->how > to->how ? r->how : to->how;
	to->potential = larger(to->potential, r->potential);
	to->cuts = larger(to->cuts, r->cuts);
	to->off = metric_sum(to->off, r->off);
	to->count = metric_sum(to->count, r->count);
	for (uint32_t i = 0; i < METRICS_MOST; i++)
		to->metrics[i] = metric_sum(to->metrics[i], r->metrics[i]);
}

static int merge_rows(struct path_merger *m, struct buf *body, uint64_t *rows)
{
	uint64_t before = 0;

	merger_turn(m, 0);
	merger_turn(m, 1);
	for (*rows = 0; m->left[0] > 0 || m->left[1] > 0; ++*rows) {
		int order = m->left[1] <= 0   ? -1
			    : m->left[0] <= 0 ? 1
					      : path_row_compare(&m->row[0], &m->row[1]);
		struct path_row sum = m->row[order > 0];

		if (m->left[0] < 0 || m->left[1] < 0)
			break;
		if (!order)
			add_row(&sum, &m->row[1]);
		put_row(body, &m->names, before, &sum);
		before = sum.procedure;
		if (order <= 0)
			merger_turn(m, 0);
		if (order >= 0)
			merger_turn(m, 1);
	}
	return m->left[0] < 0 || m->left[1] < 0 ? -EBADMSG : 0;
}

static int path_merge(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	struct path_merger m = {0};
	struct buf body = {0};
	uint64_t rows;
	int rc;

	if (path_reader_init(&m.reader[0], a, na) || path_reader_init(&m.reader[1], b, nb))
		return -EBADMSG;
	metric_unite(&m.reader[0].names, &m.reader[1].names, &m.names);
	rc = merge_rows(&m, &body, &rows);
	if (!rc) {
		metric_names_put(&m.names, out);
		buf_uleb(out, rows);
		buf_put(out, body.p, body.n);
	}
	buf_deinit(&body);
	path_reader_deinit(&m.reader[0]);
	path_reader_deinit(&m.reader[1]);
	return rc;
}

static int path_weight(const void *p, size_t n, uint64_t *samples)
{
	struct path_reader reader;
	struct path_row row;
	uint64_t sum = 0;
	int r = path_reader_init(&reader, p, n);

	if (r)
		return r;
	while ((r = path_reader_next(&reader, &row)) > 0)
		sum = metric_sum(sum, row.count);
	path_reader_deinit(&reader);
	if (!r)
		*samples = sum;
	return r;
}

static int path_check(const void *p, size_t n)
{
	uint64_t samples;

	return path_weight(p, n, &samples);
}

const struct blob_type blob_path = {
	.name = "path",
	.merge = path_merge,
	.check = path_check,
	.weight = path_weight,
};
