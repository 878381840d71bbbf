#include "store/excursions.h"

#include "base/buf.h"
#include "base/mem.h"
#include "store/thin.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

/*
 * A profile of excursions (unpacked):
 *
 *   keys of other images (keys.h)
 *   uleb    number of excursions, and 32768 times the level they were thinned to
 *   excursions, in the order of their numbers, each:
 *     uleb    number less the one before's (less 0 for the first)
 *     uleb    weight
 *     uleb    instructions
 *     uleb    number of edges
 *     edges, in the order of edge_compare, each:
 *       uleb    2 * (from less the one before's), and 1 when `to` is in another image
 *       uleb    which of the keys, only then
 *       sleb    to - from modulo 2^64; in another image instead a uleb, to
 *       uleb    count
 *
 * There are at most EXCURSIONS_MOST, EXCURSIONS_MERGED where profiles were put together. Numbers
 * and edges ascend, so that none is there twice; no weight and no count is 0. The last excursion
 * ends the blob.
 *
 * Too many are thinned by their numbers: at level n one in 2^n stays, the same ones in all images,
 * and stands for 2^n. Without the level, what comes to a thinned profile later would be taken for
 * as rare as what is there already.
 */
#define LEVEL_UNIT 32768
#define LEVEL_MOST 63
#define PART_LEAST 4 /* bytes of an excursion */
#define EDGE_LEAST 3 /* bytes of an edge */

int excursion_compare(const void *a, const void *b)
{
	const struct excursion_part *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* ---- writing ---- */

static void put_edge(
	struct buf *out, uint64_t before, const struct edge *e, const struct key_list *keys)
{
	buf_uleb(out, (e->from - before) << 1 | (e->target ? 1 : 0));
	if (e->target) {
		buf_uleb(out, key_list_number(keys, e->target));
		buf_uleb(out, e->to);
	} else {
		buf_sleb(out, (int64_t)(e->to - e->from));
	}
	buf_uleb(out, e->count);
}

static void put_part(struct buf *out, uint64_t before, const struct excursion_part *x,
	const struct key_list *keys)
{
	buf_uleb(out, x->number - before);
	buf_uleb(out, x->weight);
	buf_uleb(out, x->instructions);
	buf_uleb(out, x->nedges);
	for (size_t i = 0; i < x->nedges; i++) {
		assert(x->edges[i].count && !(x->edges[i].from >> 63));
		assert(!i || edge_compare(&x->edges[i - 1], &x->edges[i]) < 0);
		put_edge(out, i ? x->edges[i - 1].from : 0, &x->edges[i], keys);
	}
}

static void pack(const struct excursion_part *list, size_t n, unsigned level, struct buf *out)
{
	struct key_list keys = {0};

	assert(n <= EXCURSIONS_MOST);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < list[i].nedges; k++)
			if (list[i].edges[k].target)
				*vec_add(&keys.list) = list[i].edges[k].target;
	key_list_settle(&keys);
	key_list_put(&keys, out);
	buf_uleb(out, (uint64_t)level * LEVEL_UNIT + n);
	for (size_t i = 0; i < n; i++) {
		assert(list[i].weight);
		assert(!i || excursion_compare(&list[i - 1], &list[i]) < 0);
		put_part(out, i ? list[i - 1].number : 0, &list[i], &keys);
	}
	key_list_deinit(&keys);
}

void excursions_pack(const struct excursion_part *list, size_t n, struct buf *out)
{
	pack(list, n, 0, out);
}

/* ---- reading ---- */

int excursion_reader_init(struct excursion_reader *r, const void *p, size_t n)
{
	uint64_t head;

	*r = (struct excursion_reader){.at = cursor_over(p, n)};
	if (key_table_read(&r->keys, &r->at))
		return -EBADMSG;
	head = cursor_uleb(&r->at);
	r->left = head % LEVEL_UNIT;
	if (r->at.failed || head / LEVEL_UNIT > LEVEL_MOST || r->left > EXCURSIONS_MOST ||
		r->left > cursor_left(&r->at) / PART_LEAST)
		return -EBADMSG;
	r->level = (unsigned)(head / LEVEL_UNIT);
	return 0;
}

void excursion_reader_deinit(struct excursion_reader *r)
{
	vec_deinit(&r->edges);
}

static int read_edge(struct excursion_reader *r, uint64_t before, struct edge *e)
{
	uint64_t head = cursor_uleb(&r->at), number;

	*e = (struct edge){0};
	if (__builtin_add_overflow(before, head >> 1, &e->from) || e->from >> 63)
		return -EBADMSG;
	if (head & 1) {
		number = cursor_uleb(&r->at);
		if (number >= r->keys.n)
			return -EBADMSG;
		e->target = key_table_at(&r->keys, number);
		e->to = cursor_uleb(&r->at);
	} else {
		e->to = e->from + (uint64_t)cursor_sleb(&r->at);
	}
	e->count = cursor_uleb(&r->at);
	return e->count ? 0 : -EBADMSG;
}

static int read_edges(struct excursion_reader *r, uint64_t n)
{
	r->edges.n = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct edge e;

		if (read_edge(r, i ? r->edges.p[i - 1].from : 0, &e) ||
			(i && edge_compare(&r->edges.p[i - 1], &e) >= 0))
			return -EBADMSG;
		*vec_add(&r->edges) = e;
	}
	return 0;
}

int excursion_reader_next(struct excursion_reader *r, struct excursion_part *out)
{
	struct excursion_part x = {0};
	uint64_t n;

	if (!r->left)
		return cursor_left(&r->at) ? -EBADMSG : 0;
	if (__builtin_add_overflow(r->last.number, cursor_uleb(&r->at), &x.number))
		return -EBADMSG;
	x.weight = cursor_uleb(&r->at);
	x.instructions = cursor_uleb(&r->at);
	n = cursor_uleb(&r->at);
	if (!x.weight || n > cursor_left(&r->at) / EDGE_LEAST || read_edges(r, n) || r->at.failed ||
		(r->last.weight && x.number == r->last.number))
		return -EBADMSG;
	x.edges = r->edges.p;
	x.nedges = n;
	*out = r->last = x;
	r->left--;
	return 1;
}

/* ---- as a type of blob ---- */

struct part_list {
	VEC(struct excursion_part) list;
	struct arena edges;
	unsigned level;
};

static int read_all(const void *p, size_t n, struct part_list *out)
{
	struct excursion_reader reader;
	struct excursion_part x;
	int r = excursion_reader_init(&reader, p, n);

	out->level = reader.level;
	while (!r && (r = excursion_reader_next(&reader, &x)) > 0) {
		size_t bytes = x.nedges * sizeof *x.edges;
		struct edge *edges = arena_alloc(&out->edges, bytes + 1);

		if (bytes)
			memcpy(edges, x.edges, bytes);
		x.edges = edges;
		*vec_add(&out->list) = x;
		r = 0;
	}
	excursion_reader_deinit(&reader);
	return r;
}

static void part_list_deinit(struct part_list *l)
{
	vec_deinit(&l->list);
	arena_deinit(&l->edges);
}

/* Stretches of one excursion stay together. */
static bool stays(uint64_t number, unsigned level)
{
	return !level || !(thin_seed(number / EXCURSION_STRETCHES, 0) >> (64 - level));
}

static void lift(struct part_list *l, unsigned level)
{
	unsigned by = level - l->level;
	size_t kept = 0;

	vec_each (x, &l->list) {
		if (!stays(x->number, level))
			continue;
		l->list.p[kept] = *x;
		l->list.p[kept++].weight =
			x->weight > UINT64_MAX >> by ? UINT64_MAX : x->weight << by;
	}
	l->list.n = kept;
	l->level = level;
}

/* Takes those of another at the same level. One that is in both, as after a copy of a copy, is
 * there once. */
static void join(struct part_list *to, const struct part_list *other)
{
	size_t kept = 0;

	vec_each (x, &other->list)
		*vec_add(&to->list) = *x;
	vec_sort(&to->list, excursion_compare);
	vec_each (x, &to->list)
		if (!kept || excursion_compare(&to->list.p[kept - 1], x))
			to->list.p[kept++] = *x;
	to->list.n = kept;
}

static int excursion_merge(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	struct part_list x = {0}, y = {0};
	int r = read_all(a, na, &x);

	if (!r)
		r = read_all(b, nb, &y);
	if (!r) {
		unsigned level = x.level > y.level ? x.level : y.level;

		lift(&x, level);
		lift(&y, level);
		join(&x, &y);
		while (x.list.n > EXCURSIONS_MERGED)
			lift(&x, x.level + 1);
		pack(x.list.p, x.list.n, x.level, out);
	}
	part_list_deinit(&x);
	part_list_deinit(&y);
	return r;
}

static int excursion_weight(const void *p, size_t n, uint64_t *samples)
{
	struct excursion_reader reader;
	struct excursion_part x;
	int r = excursion_reader_init(&reader, p, n);

	*samples = 0;
	while (!r && (r = excursion_reader_next(&reader, &x)) > 0) {
		++*samples;
		r = 0;
	}
	excursion_reader_deinit(&reader);
	return r;
}

static int excursion_check(const void *p, size_t n)
{
	uint64_t samples;

	return excursion_weight(p, n, &samples);
}

const struct blob_type blob_excursion = {
	.name = "excursion",
	.merge = excursion_merge,
	.check = excursion_check,
	.weight = excursion_weight,
};
