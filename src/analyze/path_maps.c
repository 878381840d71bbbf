#include "analyze/path_maps.h"

#include "base/err.h"
#include "store/contexts.h"
#include "store/edges.h"

#include <errno.h>

struct loading {
	struct selection *sel;
	struct path_maps *out;
};

struct path_map *path_maps_find(const struct path_maps *m, uint64_t program)
{
	vec_each (p, &m->list)
		if (p->program == program)
			return p;
	return NULL;
}

static int take_map(void *arg, const struct store_profile *p)
{
	struct loading *l = arg;
	const struct selected_image *im = selection_image(l->sel, p->image);
	struct path_map *to;
	uint64_t key;

	if (!im)
		return 0;
	key = edge_image_key(im->kind, &im->identity, im->path);
	to = path_maps_find(l->out, key);
	if (!to) {
		to = vec_add(&l->out->list);
		*to = (struct path_map){.program = key, .image = im, .map = call_map_create()};
	}
	return call_map_add(to->map, p->data, p->size);
}

int path_maps_load(struct selection *sel, struct path_maps *out, struct err *e)
{
	struct store_filter filter = *selection_filter(sel);
	struct loading l = {sel, out};
	int rc;

	filter.type = &blob_pathmap;
	filter.event = filter.comm = NULL;
	filter.pid = 0;
	rc = store_profiles(selection_store(sel), &filter, take_map, &l, e);
	if (rc == -EBADMSG)
		err_set(e, rc, "a path map is damaged: 'culprit db check' says which");
	else if (!rc && !out->list.n)
		rc = err_set(e, -ENOENT,
			"no path maps in what was selected; 'culprit record -g -- COMMAND' learns "
			"them");
	if (rc)
		path_maps_deinit(out);
	return rc;
}

/* ---- of contexts that were counted ---- */

struct counted {
	uint64_t program;
	const struct selected_image *image;
	struct call_tree *tree;
};

struct counting {
	struct selection *sel;
	VEC(struct counted) list;
};

static int take_counted(void *arg, const struct store_profile *p)
{
	struct counting *c = arg;
	const struct selected_image *im = selection_image(c->sel, p->image);
	struct counted *to = NULL;
	uint64_t key;

	if (!im)
		return 0;
	key = edge_image_key(im->kind, &im->identity, im->path);
	vec_each (k, &c->list)
		if (k->program == key)
			to = k;
	if (!to) {
		to = vec_add(&c->list);
		*to = (struct counted){key, im, call_tree_create(NULL)};
	}
	return call_tree_add(to->tree, p->data, p->size);
}

static struct call_sites *sites_of(struct selection *sel)
{
	struct call_sites *sites = call_sites_create();
	struct selected_image *list;
	size_t n = selection_images(sel, &list);

	for (size_t i = 0; i < n; i++)
		if (list[i].kind == IMAGE_ELF)
			call_sites_add(sites,
				edge_image_key(list[i].kind, &list[i].identity, list[i].path),
				list[i].path, &list[i].identity);
	return sites;
}

static int load_counted(struct counting *c, struct err *e)
{
	struct store_filter filter = *selection_filter(c->sel);
	int rc;

	filter.type = &blob_context;
	filter.event = CONTEXT_EVENT_COUNTED;
	filter.comm = NULL;
	filter.pid = 0;
	rc = store_profiles(selection_store(c->sel), &filter, take_counted, c, e);
	if (rc != -EBADMSG)
		return rc;
	return err_set(e, rc, "contexts are damaged: 'culprit db check' says which");
}

/* The tree of a program becomes a map of its own, or goes into the one that knows its roots. */
static void teach(struct counted *c, struct call_map *known, struct path_map *to,
	struct call_sites *sites, struct call_training *sum)
{
	struct call_trainer *trainer = call_trainer_create(c->tree, sites);

	c->tree = NULL;
	call_trainer_recall(trainer, known, to->map);
	call_trainer_sites(trainer, &to->sites);
	call_trainer_sum(trainer, sum);
	call_trainer_destroy(trainer);
}

static void counting_deinit(struct counting *c)
{
	vec_each (k, &c->list)
		call_tree_destroy(k->tree);
	vec_deinit(&c->list);
}

int path_maps_train(struct selection *sel, struct path_maps *maps, struct err *e)
{
	struct call_sites *sites = sites_of(sel);
	struct counting c = {.sel = sel};
	int rc = load_counted(&c, e);

	vec_each (k, &c.list) {
		struct path_map *m = rc ? NULL : path_maps_find(maps, k->program);

		if (m)
			teach(k, m->map, m, sites, &maps->training);
	}
	counting_deinit(&c);
	call_sites_destroy(sites);
	return rc;
}

int path_maps_count(
	struct selection *sel, const struct path_maps *others, struct path_maps *out, struct err *e)
{
	struct call_sites *sites = sites_of(sel);
	struct counting c = {.sel = sel};
	int rc = load_counted(&c, e);

	vec_each (k, &c.list) {
		const struct path_map *m = rc ? NULL : path_maps_find(others, k->program);
		struct path_map own = {.program = k->program, .image = k->image};

		if (!m)
			continue;
		own.map = call_map_create();
		teach(k, m->map, &own, sites, &out->training);
		*vec_add(&out->list) = own;
	}
	out->counted = !rc && out->list.n;
	counting_deinit(&c);
	call_sites_destroy(sites);
	return rc;
}

void path_maps_deinit(struct path_maps *m)
{
	vec_each (p, &m->list) {
		call_map_destroy(p->map);
		vec_deinit(&p->sites.list);
	}
	vec_deinit(&m->list);
}
