#include "store/edges.h"

#include "base/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * An edge profile (unpacked):
 *
 *   keys of other images (keys.h)
 *   uleb    number of edges
 *   edges, by from, target and to, each:
 *     u8      bit 0: the count is 1; bit 1: the target is in another image;
 *             bits 2 to 6: low bits of d; bit 7: more of d follows
 *     uleb    d >> 5, only with bit 7
 *     uleb    which of the keys, only with bit 1
 *     sleb    to - from modulo 2^64; with bit 1 instead a uleb, to
 *     uleb    count - 2, only without bit 0
 *
 * 1. d is from less the one before (less 0 for the first).
 * 2. Edges ascend, so that none is there twice; no count is 0.
 * 3. The last edge ends the blob.
 *
 * Most targets are in the same image and near: two or three bytes and the count.
 */
#define EDGE_ONE   0x01
#define EDGE_OTHER 0x02
#define EDGE_MORE  0x80
#define EDGE_LOW   5 /* bits of d in the first byte */
#define EDGE_LEAST 2 /* bytes of an edge */

/* ---- keys of images ---- */

/* FNV-1a. It is written into databases, so it is not the hash of the tables, which may change. */
static uint64_t hash_more(uint64_t h, const void *p, size_t n)
{
	const uint8_t *bytes = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ bytes[i]) * 0x100000001b3;
	return h;
}

uint64_t edge_image_key(enum image_kind kind, const struct image_id *id, const char *path)
{
	const uint8_t head[] = {(uint8_t)kind, id->size ? id->is_hash : 2};
	uint64_t h = hash_more(0xcbf29ce484222325, head, sizeof head);

	h = id->size ? hash_more(h, id->bytes, id->size) : hash_more(h, path, strlen(path));
	return h ? h : 1;
}

/* ---- lists ---- */

int edge_compare(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->target != y->target)
		return x->target < y->target ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

static uint64_t add_counts(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

size_t edges_settle(struct edge *list, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(list, n, sizeof *list, edge_compare);
	for (size_t i = 0; i < n; i++) {
		if (kept && !edge_compare(&list[kept - 1], &list[i]))
			list[kept - 1].count = add_counts(list[kept - 1].count, list[i].count);
		else
			list[kept++] = list[i];
	}
	return kept;
}

/* ---- writing ---- */

static void put_edge(
	struct buf *out, uint64_t before, const struct edge *e, const struct key_list *keys)
{
	uint64_t d = e->from - before, more = d >> EDGE_LOW;

	buf_u8(out, (uint8_t)((d & ((1 << EDGE_LOW) - 1)) << 2 | (more ? EDGE_MORE : 0) |
			      (e->target ? EDGE_OTHER : 0) | (e->count == 1 ? EDGE_ONE : 0)));
	if (more)
		buf_uleb(out, more);
	if (e->target) {
		buf_uleb(out, key_list_number(keys, e->target));
		buf_uleb(out, e->to);
	} else {
		buf_sleb(out, (int64_t)(e->to - e->from));
	}
	if (e->count != 1)
		buf_uleb(out, e->count - 2);
}

void edges_pack(const struct edge *list, size_t n, struct buf *out)
{
	struct key_list keys = {0};

	for (size_t i = 0; i < n; i++)
		if (list[i].target)
			*vec_add(&keys.list) = list[i].target;
	key_list_settle(&keys);
	key_list_put(&keys, out);
	buf_uleb(out, n);
	for (size_t i = 0; i < n; i++) {
		assert(list[i].count && (!i || edge_compare(&list[i - 1], &list[i]) < 0));
		put_edge(out, i ? list[i - 1].from : 0, &list[i], &keys);
	}
	key_list_deinit(&keys);
}

/* ---- reading ---- */

int edge_reader_init(struct edge_reader *r, const void *p, size_t n)
{
	*r = (struct edge_reader){.at = cursor_over(p, n)};
	if (key_table_read(&r->keys, &r->at))
		return -EBADMSG;
	r->left = cursor_uleb(&r->at);
	if (r->at.failed || r->left > cursor_left(&r->at) / EDGE_LEAST)
		return -EBADMSG;
	return 0;
}

static int read_target(struct edge_reader *r, uint8_t head, struct edge *e)
{
	uint64_t number;

	if (!(head & EDGE_OTHER)) {
		e->to = e->from + (uint64_t)cursor_sleb(&r->at);
		return 0;
	}
	number = cursor_uleb(&r->at);
	if (number >= r->keys.n)
		return -EBADMSG;
	e->target = key_table_at(&r->keys, number);
	e->to = cursor_uleb(&r->at);
	return 0;
}

static int read_edge(struct edge_reader *r, struct edge *e)
{
	uint8_t head = cursor_u8(&r->at);
	uint64_t more = head & EDGE_MORE ? cursor_uleb(&r->at) : 0;
	uint64_t d = more << EDGE_LOW | (head >> 2 & ((1 << EDGE_LOW) - 1));

	*e = (struct edge){.count = 1};
	if (more >> (64 - EDGE_LOW) || __builtin_add_overflow(r->last.from, d, &e->from) ||
		read_target(r, head, e))
		return -EBADMSG;
	if (!(head & EDGE_ONE) && __builtin_add_overflow(cursor_uleb(&r->at), 2, &e->count))
		return -EBADMSG;
	return r->at.failed ? -EBADMSG : 0;
}

int edge_reader_next(struct edge_reader *r, struct edge *out)
{
	struct edge e;

	if (!r->left)
		return cursor_left(&r->at) ? -EBADMSG : 0;
	if (read_edge(r, &e) || (r->last.count && edge_compare(&r->last, &e) >= 0))
		return -EBADMSG;
	*out = r->last = e;
	r->left--;
	return 1;
}

/* ---- as a type of blob ---- */

/* Two profiles read as one. */
struct edge_merger {
	struct edge_reader a, b;
	struct edge ea, eb;
	int ra, rb; /* what the readers said last */
};

static int merger_next(struct edge_merger *m, struct edge *out)
{
	int order;

	if (m->ra < 0 || m->rb < 0)
		return -EBADMSG;
	if (!m->ra && !m->rb)
		return 0;
	order = !m->rb ? -1 : !m->ra ? 1 : edge_compare(&m->ea, &m->eb);
	*out = order <= 0 ? m->ea : m->eb;
	if (!order)
		out->count = add_counts(m->ea.count, m->eb.count);
	if (order <= 0)
		m->ra = edge_reader_next(&m->a, &m->ea);
	if (order >= 0)
		m->rb = edge_reader_next(&m->b, &m->eb);
	return 1;
}

static void add_keys(const struct edge_reader *r, struct key_list *keys)
{
	for (uint64_t i = 0; i < r->keys.n; i++)
		*vec_add(&keys->list) = key_table_at(&r->keys, i);
}

static int merge_edges(
	struct edge_merger *m, const struct key_list *keys, struct buf *body, uint64_t *edges)
{
	uint64_t before = 0;
	struct edge e;
	int r;

	m->ra = edge_reader_next(&m->a, &m->ea);
	m->rb = edge_reader_next(&m->b, &m->eb);
	for (*edges = 0; (r = merger_next(m, &e)) > 0; ++*edges) {
		put_edge(body, before, &e, keys);
		before = e.from;
	}
	return r;
}

static int edge_merge(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	struct edge_merger m;
	struct buf body = {0};
	struct key_list keys = {0};
	uint64_t edges;
	int r;

	if (edge_reader_init(&m.a, a, na) || edge_reader_init(&m.b, b, nb))
		return -EBADMSG;
	add_keys(&m.a, &keys);
	add_keys(&m.b, &keys);
	key_list_settle(&keys);
	r = merge_edges(&m, &keys, &body, &edges);
	if (!r) {
		key_list_put(&keys, out);
		buf_uleb(out, edges);
		buf_put(out, body.p, body.n);
	}
	buf_deinit(&body);
	key_list_deinit(&keys);
	return r;
}

static int edge_weight(const void *p, size_t n, uint64_t *samples)
{
	struct edge_reader reader;
	struct edge e;
	uint64_t sum = 0;
	int r;

	if (edge_reader_init(&reader, p, n))
		return -EBADMSG;
	while ((r = edge_reader_next(&reader, &e)) > 0)
		sum = add_counts(sum, e.count);
	if (!r)
		*samples = sum;
	return r;
}

static int edge_check(const void *p, size_t n)
{
	uint64_t samples;

	return edge_weight(p, n, &samples);
}

const struct blob_type blob_edge = {
	.name = "edge",
	.merge = edge_merge,
	.check = edge_check,
	.weight = edge_weight,
};
