#include "store/contexts.h"

#include "base/buf.h"

#include <assert.h>
#include <errno.h>

/*
 * A profile of contexts (unpacked):
 *
 *   names of metrics (metrics.h)
 *   keys of images (keys.h)
 *   uleb    number of rows
 *   rows in preorder, each:
 *     u8      kind, as below
 *     a node:  uleb depth of the last node + 1 - its own
 *              uleb which of the keys + 1, 0 unknown; only without NODE_HERE
 *              sleb procedure - that of the last node (less 0 for the first)
 *              sleb site - the parent's procedure (less 0 without one), only with NODE_SITE
 *     a path:  its shape (shape.h)
 *     uleb    count, then one for each metric
 *
 * 1. The rows of one parent ascend: paths by shape, then nodes by image, procedure, site and
 *    whether they are recursive.
 * 2. A path belongs to the last node before it, and nothing but paths is between; a recursive
 *    node has neither paths nor children.
 * 3. The last row ends the blob.
 */
enum {
	ROW_PATH = 1, /* nothing else is set then */
	NODE_RECURSIVE = 2,
	NODE_SITE = 4,
	NODE_HERE = 8, /* in the parent's image */
	ROW_ALL = 15,
};
#define ROW_LEAST 4 /* bytes */

int context_row_compare(const struct context_row *a, const struct context_row *b)
{
	if (a->is_path != b->is_path)
		return a->is_path ? -1 : 1;
	if (a->is_path)
		return path_shape_compare(&a->shape, &b->shape);
	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	if (a->procedure != b->procedure)
		return a->procedure < b->procedure ? -1 : 1;
	if (a->site != b->site)
		return a->site < b->site ? -1 : 1;
	return (int)a->recursive - (int)b->recursive;
}

/* ---- writing ---- */

void context_writer_init(struct context_writer *w, const struct metric_names *names,
	struct key_list *keys, uint64_t rows, struct buf *out)
{
	*w = (struct context_writer){.names = names, .keys = *keys, .out = out};
	*keys = (struct key_list){0};
	key_list_settle(&w->keys);
	metric_names_put(names, out);
	key_list_put(&w->keys, out);
	buf_uleb(out, rows);
}

static void put_node(struct context_writer *w, const struct context_row *r)
{
	uint64_t up = w->above.n - r->depth, image = 0, procedure = 0;

	assert(r->depth <= w->above.n);
	w->above.n = r->depth;
	if (r->depth) {
		image = w->above.p[r->depth - 1].image;
		procedure = w->above.p[r->depth - 1].procedure;
	}
	buf_u8(w->out, (uint8_t)((r->recursive ? NODE_RECURSIVE : 0) | (r->site ? NODE_SITE : 0) |
				 (image == r->image ? NODE_HERE : 0)));
	buf_uleb(w->out, up);
	if (image != r->image)
		buf_uleb(w->out, r->image ? key_list_number(&w->keys, r->image) + 1 : 0);
	buf_sleb(w->out, (int64_t)(r->procedure - w->last));
	if (r->site)
		buf_sleb(w->out, (int64_t)(r->site - procedure));
	w->last = r->procedure;
	*vec_add(&w->above) = *r;
}

void context_writer_put(struct context_writer *w, const struct context_row *row)
{
	if (row->is_path) {
		assert(row->depth && row->depth == w->above.n);
		buf_u8(w->out, ROW_PATH);
		path_shape_put(&row->shape, w->last, w->out);
	} else {
		put_node(w, row);
	}
	buf_uleb(w->out, row->count);
	for (uint32_t i = 0; i < w->names->n; i++)
		buf_uleb(w->out, row->metrics[i]);
}

void context_writer_deinit(struct context_writer *w)
{
	key_list_deinit(&w->keys);
	vec_deinit(&w->above);
}

/* ---- reading ---- */

int context_reader_init(struct context_reader *r, const void *p, size_t n)
{
	*r = (struct context_reader){.at = cursor_over(p, n)};
	if (metric_names_read(&r->names, &r->at) || key_table_read(&r->keys, &r->at))
		return -EBADMSG;
	r->left = cursor_uleb(&r->at);
	return r->at.failed || r->left > cursor_left(&r->at) / ROW_LEAST ? -EBADMSG : 0;
}

/* How deep the last node is, and one more; the path behind it is not counted. */
static uint32_t depth_of(const struct context_reader *r)
{
	return (uint32_t)(r->above.n - (r->above.n && r->above.p[r->above.n - 1].is_path));
}

static int read_image(struct context_reader *r, uint8_t kind, uint64_t parent, uint64_t *out)
{
	uint64_t number;

	*out = parent;
	if (kind & NODE_HERE)
		return 0;
	number = cursor_uleb(&r->at);
	if (number > r->keys.n)
		return -EBADMSG;
	*out = number ? key_table_at(&r->keys, number - 1) : 0;
	return *out == parent ? -EBADMSG : 0;
}

static int read_node(struct context_reader *r, uint8_t kind, struct context_row *row)
{
	uint32_t most = depth_of(r);
	uint64_t up = cursor_uleb(&r->at);
	const struct context_row *parent;

	if (up > most || (r->closed && !up))
		return -EBADMSG;
	row->depth = most - (uint32_t)up;
	parent = row->depth ? &r->above.p[row->depth - 1] : NULL;
	if (read_image(r, kind, parent ? parent->image : 0, &row->image))
		return -EBADMSG;
	row->recursive = kind & NODE_RECURSIVE;
	row->procedure = r->last + (uint64_t)cursor_sleb(&r->at);
	if (kind & NODE_SITE) {
		row->site = (parent ? parent->procedure : 0) + (uint64_t)cursor_sleb(&r->at);
		if (!row->site)
			return -EBADMSG;
	}
	r->last = row->procedure;
	r->closed = row->recursive;
	return 0;
}

static int read_path(struct context_reader *r, struct context_row *row)
{
	if (!r->begun || r->closed ||
		path_shape_read(&row->shape, r->last, &r->at, &r->blocks[r->turn ^= 1]))
		return -EBADMSG;
	row->is_path = true;
	row->depth = depth_of(r);
	row->procedure = r->last;
	return 0;
}

/* The row becomes the last one; what was at its depth before must be less. */
static int follow(struct context_reader *r, const struct context_row *row)
{
	if (r->above.n > row->depth && context_row_compare(&r->above.p[row->depth], row) >= 0)
		return -EBADMSG;
	r->above.n = row->depth;
	*vec_add(&r->above) = *row;
	r->begun = true;
	r->left--;
	return 1;
}

int context_reader_next(struct context_reader *r, struct context_row *out)
{
	struct context_row row = {0};
	uint8_t kind;

	if (!r->left)
		return cursor_left(&r->at) ? -EBADMSG : 0;
	kind = cursor_u8(&r->at);
	if (kind > ROW_ALL || ((kind & ROW_PATH) && kind != ROW_PATH) ||
		(kind & ROW_PATH ? read_path(r, &row) : read_node(r, kind, &row)))
		return -EBADMSG;
	row.count = cursor_uleb(&r->at);
	for (uint32_t i = 0; i < r->names.n; i++)
		row.metrics[i] = cursor_uleb(&r->at);
	if (r->at.failed)
		return -EBADMSG;
	*out = row;
	return follow(r, &row);
}

void context_reader_deinit(struct context_reader *r)
{
	vec_deinit(&r->above);
	vec_deinit(&r->blocks[0]);
	vec_deinit(&r->blocks[1]);
}

/* ---- as a type of blob ---- */

/*
 * Two profiles read as one. Both are in preorder with sorted siblings, so the deeper of the two
 * next rows belongs to what was put out last, and rows of equal depth have the same parent.
 */
struct context_merger {
	struct metric_names names;
	struct context_reader reader[2];
	struct context_row row[2];
	int left[2]; /* what the readers said last */
};

static void merger_turn(struct context_merger *m, int i)
{
	m->left[i] = context_reader_next(&m->reader[i], &m->row[i]);
	if (m->left[i] > 0)
		metric_reorder(
			&m->reader[i].names, m->row[i].metrics, &m->names, m->row[i].metrics);
}

static int merger_order(const struct context_merger *m)
{
	if (m->left[1] <= 0)
		return -1;
	if (m->left[0] <= 0)
		return 1;
	if (m->row[0].depth != m->row[1].depth)
		return m->row[0].depth > m->row[1].depth ? -1 : 1;
	return context_row_compare(&m->row[0], &m->row[1]);
}

static int merger_next(struct context_merger *m, struct context_row *sum, int *order)
{
	if (m->left[0] < 0 || m->left[1] < 0)
		return -EBADMSG;
	if (!m->left[0] && !m->left[1])
		return 0;
	*order = merger_order(m);
	*sum = m->row[*order > 0];
	if (!*order) {
		sum->count = metric_sum(sum->count, m->row[1].count);
		for (uint32_t i = 0; i < METRICS_MOST; i++)
			sum->metrics[i] = metric_sum(sum->metrics[i], m->row[1].metrics[i]);
	}
	return 1;
}

/* What it writes is counted first: the number of rows stands in front. */
static int merge_rows(struct context_merger *m, struct context_writer *w, uint64_t *rows)
{
	struct context_row sum;
	int rc, order;

	merger_turn(m, 0);
	merger_turn(m, 1);
	for (*rows = 0; (rc = merger_next(m, &sum, &order)) > 0; ++*rows) {
		context_writer_put(w, &sum);
		if (order <= 0)
			merger_turn(m, 0);
		if (order >= 0)
			merger_turn(m, 1);
	}
	return rc;
}

static void add_keys(const struct context_reader *r, struct key_list *keys)
{
	for (uint64_t i = 0; i < r->keys.n; i++)
		*vec_add(&keys->list) = key_table_at(&r->keys, i);
}

static int context_merge(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	struct context_merger m = {0};
	struct buf body = {0};
	struct context_writer w = {.names = &m.names, .out = &body};
	uint64_t rows;
	int rc;

	if (context_reader_init(&m.reader[0], a, na) || context_reader_init(&m.reader[1], b, nb))
		return -EBADMSG;
	metric_unite(&m.reader[0].names, &m.reader[1].names, &m.names);
	add_keys(&m.reader[0], &w.keys);
	add_keys(&m.reader[1], &w.keys);
	key_list_settle(&w.keys);
	rc = merge_rows(&m, &w, &rows);
	if (!rc) {
		metric_names_put(&m.names, out);
		key_list_put(&w.keys, out);
		buf_uleb(out, rows);
		buf_put(out, body.p, body.n);
	}
	buf_deinit(&body);
	context_writer_deinit(&w);
	context_reader_deinit(&m.reader[0]);
	context_reader_deinit(&m.reader[1]);
	return rc;
}

static int context_weight(const void *p, size_t n, uint64_t *samples)
{
	struct context_reader reader;
	struct context_row row;
	uint64_t sum = 0;
	int r = context_reader_init(&reader, p, n);

	if (r)
		return r;
	while ((r = context_reader_next(&reader, &row)) > 0)
		if (!row.is_path)
			sum = metric_sum(sum, row.count);
	context_reader_deinit(&reader);
	if (!r)
		*samples = sum;
	return r;
}

static int context_check(const void *p, size_t n)
{
	uint64_t samples;

	return context_weight(p, n, &samples);
}

const struct blob_type blob_context = {
	.name = "context",
	.merge = context_merge,
	.check = context_check,
	.weight = context_weight,
};

const struct blob_type blob_pathmap = {
	.name = "pathmap",
	.merge = context_merge,
	.check = context_check,
	.weight = context_weight,
};
