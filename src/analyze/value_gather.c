#include "analyze/value_gather.h"

#include "base/err.h"
#include "base/mem.h"
#include "values/values_pack.h"

#include <errno.h>
#include <stdlib.h>

struct gather_walk {
	struct value_gathering *g;
	struct err *e;
};

static struct value_image *value_image_of(struct value_gathering *g, struct selected_image *im)
{
	struct value_image *vi = im->user;

	if (vi)
		return vi;
	vi = im->user = xcalloc(1, sizeof *vi);
	vi->image = im;
	*vec_add(&g->images) = vi;
	return vi;
}

/* ---- values ---- */

static int add_values(struct value_image *vi, const struct store_profile *p)
{
	/* What collectors keep is to be shown: the report sets no limits of its own. */
	static const struct value_options all = {
		.capacity = HOTLIST_CAPACITY_MAX, .keys = SIZE_MAX};

	if (!vi->values)
		vi->values = value_profile_create(&all);
	return value_profile_unpack(vi->values, p->data, p->size);
}

static int visit_values(void *arg, const struct store_profile *p)
{
	struct gather_walk *w = arg;
	struct selected_image *im = selection_image(w->g->sel, p->image);
	int rc;

	if (!im || selection_event(w->g->sel, p->event) < 0)
		return 0;
	rc = add_values(value_image_of(w->g, im), p);
	if (rc == -EINVAL)
		return err_set(w->e, rc,
			"%s: its values were kept by the algorithm that is not the default; this "
			"version does not read them",
			im->path);
	if (rc)
		return err_set(w->e, rc,
			"a value profile of %s is damaged; 'culprit db check' tells more",
			im->path);
	return 0;
}

/* ---- edges ---- */

static void add_edge(struct value_image *vi, const struct edge *edge)
{
	enum { ENOUGH = 4096 };

	/* Summing up whenever the list has doubled keeps it within twice what is distinct. */
	if (vi->edges.n >= ENOUGH && vi->edges.n >= 2 * vi->settled)
		vi->edges.n = vi->settled = edges_settle(vi->edges.p, vi->edges.n);
	*vec_add(&vi->edges) = *edge;
}

static int visit_edges(void *arg, const struct store_profile *p)
{
	struct gather_walk *w = arg;
	struct selected_image *im = selection_image(w->g->sel, p->image);
	struct edge_reader reader;
	struct edge edge;
	int rc;

	if (!im || selection_event(w->g->sel, p->event) < 0)
		return 0;
	rc = edge_reader_init(&reader, p->data, p->size);
	while (!rc && (rc = edge_reader_next(&reader, &edge)) > 0) {
		add_edge(value_image_of(w->g, im), &edge);
		rc = 0;
	}
	if (rc)
		return err_set(w->e, rc,
			"an edge profile of %s is damaged; 'culprit db check' tells more",
			im->path);
	return 0;
}

/* ---- samples ---- */

static int visit_samples(
	void *arg, struct selected_image *im, size_t event, struct pc_reader *pcs, struct err *e)
{
	struct value_gathering *g = arg;
	struct value_image *vi = im->user;
	struct code_walk walk = code_walk_start(&im->map, im->segments, im->nsegments);
	struct pc_count pc;
	uint64_t vaddr;
	int rc;

	(void)e;
	if (event)
		return 0;
	while ((rc = pc_reader_next(pcs, &pc)) > 0) {
		g->time += pc.count;
		if (!vi)
			continue;
		code_walk_to(&walk, pc.offset, &vaddr);
		pc_pool_add(&vi->pcs, vaddr, 0, pc.count);
	}
	return rc;
}

/* ---- the whole ---- */

static void make_keys(struct value_gathering *g)
{
	struct selected_image *images;
	size_t n = selection_images(g->sel, &images);

	g->keys = xcalloc(n + 1, sizeof *g->keys);
	for (size_t i = 0; i < n; i++)
		g->keys[i] = edge_image_key(images[i].kind, &images[i].identity, images[i].path);
}

static int finish(struct value_gathering *g, struct err *e)
{
	vec_each (at, &g->images) {
		struct value_image *vi = *at;
		int rc = selection_load(g->sel, vi->image, e);

		if (rc)
			return rc;
		vi->edges.n = edges_settle(vi->edges.p, vi->edges.n);
		if (vi->values)
			g->refused += value_profile_refused(vi->values);
	}
	return 0;
}

int value_gather(struct value_gathering *g, struct selection *sel, struct err *e)
{
	struct store_filter filter = *selection_filter(sel);
	struct gather_walk w = {g, e};
	int rc;

	g->sel = sel;
	make_keys(g);
	filter.type = &blob_value;
	rc = store_profiles(selection_store(sel), &filter, visit_values, &w, e);
	filter.type = &blob_edge;
	if (!rc)
		rc = store_profiles(selection_store(sel), &filter, visit_edges, &w, e);
	if (!rc)
		rc = finish(g, e);
	if (!rc)
		rc = selection_profiles(sel, visit_samples, g, e);
	vec_each (vi, &g->images)
		pc_pool_settle(&(*vi)->pcs);
	return rc;
}

void value_gather_deinit(struct value_gathering *g)
{
	vec_each (at, &g->images) {
		struct value_image *vi = *at;

		vi->image->user = NULL;
		value_profile_destroy(vi->values);
		vec_deinit(&vi->edges);
		pc_pool_deinit(&vi->pcs);
		value_file_deinit(&vi->file);
		free(vi);
	}
	vec_deinit(&g->images);
	free(g->keys);
}

static size_t first_at(const struct pc_pool *p, uint64_t vaddr)
{
	size_t low = 0, high = p->list.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (p->list.p[mid].vaddr < vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

uint64_t value_image_samples(const struct value_image *vi, uint64_t start, uint64_t end)
{
	uint64_t sum = 0;

	for (size_t i = first_at(&vi->pcs, start); i < vi->pcs.list.n; i++) {
		if (vi->pcs.list.p[i].vaddr >= end)
			break;
		sum += vi->pcs.list.p[i].count;
	}
	return sum;
}

struct selected_image *value_image_of_key(const struct value_gathering *g, uint64_t key)
{
	struct selected_image *images;
	size_t n = selection_images(g->sel, &images);

	for (size_t i = 0; i < n; i++)
		if (g->keys[i] == key)
			return &images[i];
	return NULL;
}
