#include "calls/tree.h"

#include "base/buf.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"
#include "store/contexts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Compared as bytes: there is nothing between the fields. */
struct node_key {
	uint64_t image, procedure, site;
	uint32_t parent, recursive;
};

struct node_record {
	struct node_key key;
	uint32_t number, pad;
};

struct call_tree {
	struct metric_names names;
	VEC(struct call_node) nodes;
	struct hmap index; /* struct node_record */
	VEC(struct call_path) paths;
	struct arena arena; /* blocks of paths */
	uint32_t root;
};

struct call_tree *call_tree_create(const struct metric_names *names)
{
	struct call_tree *t = xcalloc(1, sizeof *t);

	if (names)
		t->names = *names;
	hmap_init(&t->index, sizeof(struct node_record), offsetof(struct node_record, number));
	t->root = CALL_NONE;
	return t;
}

void call_tree_destroy(struct call_tree *t)
{
	if (!t)
		return;
	vec_deinit(&t->nodes);
	vec_deinit(&t->paths);
	hmap_deinit(&t->index);
	arena_deinit(&t->arena);
	free(t);
}

const struct metric_names *call_tree_metrics(const struct call_tree *t)
{
	return &t->names;
}

uint32_t call_tree_size(const struct call_tree *t)
{
	return (uint32_t)t->nodes.n;
}

size_t call_tree_memory(const struct call_tree *t)
{
	return t->nodes.n * sizeof *t->nodes.p + t->index.slots * sizeof(struct node_record);
}

struct call_node *call_tree_node(const struct call_tree *t, uint32_t number)
{
	assert(number < t->nodes.n);
	return &t->nodes.p[number];
}

/* ---- adding ---- */

static struct node_key key_of(uint32_t parent, const struct call_place *at)
{
	return (struct node_key){at->image, at->procedure, at->site, parent, at->recursive};
}

uint32_t call_tree_find(const struct call_tree *t, uint32_t parent, const struct call_place *at)
{
	struct node_key key = key_of(parent, at);
	const struct node_record *r = hmap_get(&t->index, &key);

	return r ? r->number : CALL_NONE;
}

uint32_t call_tree_append(struct call_tree *t, uint32_t parent, const struct call_place *at)
{
	assert(parent == CALL_NONE || parent < t->nodes.n);
	*vec_add(&t->nodes) = (struct call_node){.at = *at,
		.parent = parent,
		.depth = parent == CALL_NONE ? 0 : t->nodes.p[parent].depth + 1,
		.child = CALL_NONE,
		.next = CALL_NONE};
	return (uint32_t)t->nodes.n - 1;
}

uint32_t call_tree_child(struct call_tree *t, uint32_t parent, const struct call_place *at)
{
	struct node_key key = key_of(parent, at);
	struct node_record *r;
	bool fresh;

	r = hmap_put(&t->index, &key, &fresh);
	if (fresh)
		r->number = call_tree_append(t, parent, at);
	return r->number;
}

uint32_t call_tree_copy_path(struct call_tree *to, const struct call_tree *from, uint32_t node)
{
	struct call_node n;

	if (node == CALL_NONE)
		return CALL_NONE;
	n = from->nodes.p[node];
	return call_tree_child(to, call_tree_copy_path(to, from, n.parent), &n.at);
}

void call_tree_add_path(struct call_tree *t, uint32_t node, const struct path_shape *shape,
	uint64_t count, const uint64_t *metrics)
{
	size_t size = shape->n * sizeof *shape->blocks;
	uint64_t *blocks = arena_alloc(&t->arena, size);
	struct call_path *p = vec_add(&t->paths);

	memcpy(blocks, shape->blocks, size);
	*p = (struct call_path){.node = node, .shape = *shape, .count = count};
	p->shape.blocks = blocks;
	if (metrics)
		memcpy(p->metrics, metrics, sizeof p->metrics);
}

/* Numbers that are there already move to where the new names say. */
static void unite_names(struct call_tree *t, const struct metric_names *more)
{
	struct metric_names all;

	metric_unite(&t->names, more, &all);
	if (!memcmp(&all, &t->names, sizeof all))
		return;
	vec_each (n, &t->nodes)
		metric_reorder(&t->names, n->metrics, &all, n->metrics);
	vec_each (p, &t->paths)
		metric_reorder(&t->names, p->metrics, &all, p->metrics);
	t->names = all;
}

static void add_metrics(uint64_t *to, const uint64_t *more)
{
	for (uint32_t i = 0; i < METRICS_MOST; i++)
		to[i] = metric_sum(to[i], more[i]);
}

/* `above` has the nodes from the root to the last one. */
typedef VEC(uint32_t) node_list;

static void add_row(struct call_tree *t, const struct context_row *row, const uint64_t *metrics,
	node_list *above)
{
	uint32_t parent = row->depth ? above->p[row->depth - 1] : CALL_NONE, number;
	struct call_node *node;

	if (row->is_path) {
		call_tree_add_path(t, parent, &row->shape, row->count, metrics);
		return;
	}
	number = call_tree_child(t, parent,
		&(struct call_place){row->image, row->procedure, row->site, row->recursive});
	node = &t->nodes.p[number];
	node->count = metric_sum(node->count, row->count);
	add_metrics(node->metrics, metrics);
	above->n = row->depth;
	*vec_add(above) = number;
}

int call_tree_add(struct call_tree *t, const void *p, size_t n)
{
	struct context_reader reader;
	struct context_row row;
	node_list above = {0};
	int rc = context_reader_init(&reader, p, n);

	if (rc)
		return rc;
	unite_names(t, &reader.names);
	while ((rc = context_reader_next(&reader, &row)) > 0) {
		uint64_t metrics[METRICS_MOST];

		if (t->nodes.n >= CALL_NONE - 1) {
			rc = -EBADMSG;
			break;
		}
		metric_reorder(&reader.names, row.metrics, &t->names, metrics);
		add_row(t, &row, metrics, &above);
	}
	vec_deinit(&above);
	context_reader_deinit(&reader);
	return rc;
}

/* ---- in order ---- */

static int compare_paths(const void *a, const void *b)
{
	const struct call_path *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return path_shape_compare(&x->shape, &y->shape);
}

static void settle_paths(struct call_tree *t)
{
	size_t kept = 0;

	vec_sort(&t->paths, compare_paths);
	vec_each (p, &t->paths) {
		struct call_path *last = kept ? &t->paths.p[kept - 1] : NULL;

		if (last && !compare_paths(last, p)) {
			last->count = metric_sum(last->count, p->count);
			add_metrics(last->metrics, p->metrics);
		} else {
			t->paths.p[kept++] = *p;
		}
	}
	t->paths.n = kept;
	for (size_t i = kept; i--;) {
		struct call_node *node = &t->nodes.p[t->paths.p[i].node];

		node->path = (uint32_t)i;
		node->npaths++;
	}
}

static struct context_row row_of(const struct call_node *n)
{
	return (struct context_row){.depth = n->depth,
		.image = n->at.image,
		.procedure = n->at.procedure,
		.site = n->at.site,
		.recursive = n->at.recursive,
		.count = n->count};
}

/* As context_row_compare, of children of one node. */
static int compare_places(const void *a, const void *b, void *nodes)
{
	const struct call_place *x = &((struct call_node *)nodes + *(const uint32_t *)a)->at;
	const struct call_place *y = &((struct call_node *)nodes + *(const uint32_t *)b)->at;

	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	if (x->procedure != y->procedure)
		return x->procedure < y->procedure ? -1 : 1;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	return (int)x->recursive - (int)y->recursive;
}

static uint32_t link_children(struct call_tree *t, uint32_t *list, size_t n)
{
	uint32_t first = CALL_NONE;

	if (n > 1)
		qsort_r(list, n, sizeof *list, compare_places, t->nodes.p);
	while (n--) {
		t->nodes.p[list[n]].next = first;
		first = list[n];
	}
	return first;
}

/* Parent by parent, as most have few children: roots are those of 0, others of their number + 1. */
void call_tree_settle(struct call_tree *t)
{
	size_t n = t->nodes.n;
	_cleanup_free_ uint32_t *order = xcalloc(n + 1, sizeof *order);
	_cleanup_free_ size_t *end = xcalloc(n + 2, sizeof *end);

	vec_each (node, &t->nodes) {
		node->path = node->npaths = 0;
		end[(uint32_t)(node->parent + 1) + 1]++;
	}
	for (size_t i = 0; i < n; i++)
		end[i + 1] += end[i];
	for (size_t i = 0; i < n; i++)
		order[end[(uint32_t)(t->nodes.p[i].parent + 1)]++] = (uint32_t)i;
	t->root = link_children(t, order, end[0]);
	for (size_t i = 0; i < n; i++)
		t->nodes.p[i].child = link_children(t, order + end[i], end[i + 1] - end[i]);
	settle_paths(t);
}

uint32_t call_tree_root(const struct call_tree *t)
{
	return t->root;
}

const struct call_path *call_tree_path(const struct call_tree *t, uint32_t number)
{
	assert(number < t->paths.n);
	return &t->paths.p[number];
}

uint32_t call_tree_after(const struct call_tree *t, uint32_t node)
{
	if (t->nodes.p[node].child != CALL_NONE)
		return t->nodes.p[node].child;
	while (node != CALL_NONE && t->nodes.p[node].next == CALL_NONE)
		node = t->nodes.p[node].parent;
	return node == CALL_NONE ? CALL_NONE : t->nodes.p[node].next;
}

/* ---- as a profile ---- */

static void pack_node(
	const struct call_tree *t, const struct call_node *node, struct context_writer *w)
{
	struct context_row row = row_of(node);

	memcpy(row.metrics, node->metrics, sizeof row.metrics);
	context_writer_put(w, &row);
	for (uint32_t i = 0; i < node->npaths; i++) {
		const struct call_path *p = &t->paths.p[node->path + i];

		row = (struct context_row){.depth = node->depth + 1,
			.is_path = true,
			.procedure = node->at.procedure,
			.shape = p->shape,
			.count = p->count};
		memcpy(row.metrics, p->metrics, sizeof row.metrics);
		context_writer_put(w, &row);
	}
}

void call_tree_pack(struct call_tree *t, struct buf *out)
{
	struct key_list keys = {0};
	struct context_writer w;

	call_tree_settle(t);
	vec_each (n, &t->nodes)
		if (n->at.image &&
			(n->parent == CALL_NONE || t->nodes.p[n->parent].at.image != n->at.image))
			*vec_add(&keys.list) = n->at.image;
	context_writer_init(&w, &t->names, &keys, t->nodes.n + t->paths.n, out);
	for (uint32_t i = t->root; i != CALL_NONE; i = call_tree_after(t, i))
		pack_node(t, &t->nodes.p[i], &w);
	context_writer_deinit(&w);
}
