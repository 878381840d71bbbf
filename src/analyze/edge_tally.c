#include "analyze/edge_tally.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"
#include "store/edges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct edge_tally {
	struct selection *sel;
	VEC(struct image_edges) images;
	uint64_t nowhere;
};

/* The edges of one image while profiles are read, in `user` of the image. */
struct edge_pool {
	VEC(struct edge) list;
	size_t settled;
};

static void pool_add(struct edge_pool *p, const struct edge *edge)
{
	enum { ENOUGH = 4096 };

	/* Summing up whenever the list has doubled keeps it within twice what is distinct. */
	if (p->list.n >= ENOUGH && p->list.n >= 2 * p->settled)
		p->list.n = p->settled = edges_settle(p->list.p, p->list.n);
	*vec_add(&p->list) = *edge;
}

/* ---- from profiles to pools ---- */

struct edge_walk {
	struct edge_tally *t;
	struct err *e;
};

static int read_profile(struct selected_image *im, const struct store_profile *p)
{
	struct edge_reader reader;
	struct edge edge;
	int r = edge_reader_init(&reader, p->data, p->size);

	if (r)
		return r;
	if (!im->user)
		im->user = xcalloc(1, sizeof(struct edge_pool));
	while ((r = edge_reader_next(&reader, &edge)) > 0)
		if (!edge.target)
			pool_add(im->user, &edge);
	return r;
}

static int visit(void *arg, const struct store_profile *p)
{
	struct edge_walk *w = arg;
	struct selected_image *im = selection_image(w->t->sel, p->image);

	if (!im || selection_event(w->t->sel, p->event) < 0)
		return 0;
	if (read_profile(im, p))
		return err_set(w->e, -EBADMSG,
			"an edge profile of %s is damaged; 'culprit db check' tells more",
			im->path);
	return 0;
}

/* ---- from pools to sums ---- */

static int compare_sums(const void *a, const void *b)
{
	const struct edge_sum *x = a, *y = b;

	if (x->procedure != y->procedure)
		return x->procedure < y->procedure ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

static bool place_target(const struct selected_image *im, uint64_t offset, uint64_t *vaddr)
{
	*vaddr = offset;
	return !im->nsegments || segments_vaddr(im->segments, im->nsegments, offset, vaddr);
}

static void place_edges(
	struct edge_tally *t, const struct selected_image *im, const struct edge_pool *pool)
{
	struct code_walk walk = code_walk_start(&im->map, im->segments, im->nsegments);
	VEC(struct edge_sum) sums = {0};

	vec_each (edge, &pool->list) {
		struct edge_sum sum = {.count = edge->count};

		sum.procedure = code_walk_to(&walk, edge->from, &sum.from);
		if (sum.procedure == CODE_NOWHERE || !place_target(im, edge->to, &sum.to))
			t->nowhere += edge->count;
		else
			*vec_add(&sums) = sum;
	}
	vec_sort(&sums, compare_sums);
	if (sums.n)
		*vec_add(&t->images) = (struct image_edges){im, sums.p, sums.n};
}

static int take_pool(struct edge_tally *t, struct selected_image *im, struct err *e)
{
	struct edge_pool *pool = im->user;
	int rc = selection_load(t->sel, im, e);

	if (rc)
		return rc;
	pool->list.n = edges_settle(pool->list.p, pool->list.n);
	place_edges(t, im, pool);
	return 0;
}

static int compare_images(const void *a, const void *b)
{
	const struct selected_image *x = ((const struct image_edges *)a)->image;
	const struct selected_image *y = ((const struct image_edges *)b)->image;
	int c = strcmp(x->path, y->path);

	return c ? c : memcmp(x->identity.bytes, y->identity.bytes, sizeof x->identity.bytes);
}

static int gather(struct edge_tally *t, struct err *e)
{
	struct store_filter filter = *selection_filter(t->sel);
	struct edge_walk w = {t, e};
	struct selected_image *images;
	size_t n = selection_images(t->sel, &images);
	int rc;

	filter.type = &blob_edge;
	rc = store_profiles(selection_store(t->sel), &filter, visit, &w, e);
	for (size_t i = 0; i < n; i++) {
		struct edge_pool *pool = images[i].user;

		if (!pool)
			continue;
		if (!rc)
			rc = take_pool(t, &images[i], e);
		vec_deinit(&pool->list);
		free(pool);
		images[i].user = NULL;
	}
	vec_sort(&t->images, compare_images);
	return rc;
}

int edge_tally_create(struct selection *sel, struct edge_tally **out, struct err *e)
{
	struct edge_tally *t = xcalloc(1, sizeof *t);
	int rc;

	t->sel = sel;
	if ((rc = gather(t, e))) {
		edge_tally_destroy(t);
		return rc;
	}
	*out = t;
	return 0;
}

void edge_tally_destroy(struct edge_tally *t)
{
	if (!t)
		return;
	vec_each (im, &t->images)
		free(im->edges);
	vec_deinit(&t->images);
	free(t);
}

size_t edge_tally_images(const struct edge_tally *t, const struct image_edges **out)
{
	*out = t->images.p;
	return t->images.n;
}

uint64_t edge_tally_nowhere(const struct edge_tally *t)
{
	return t->nowhere;
}
