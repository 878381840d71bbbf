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
		*to = (struct path_map){key, im, call_map_create()};
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

void path_maps_deinit(struct path_maps *m)
{
	vec_each (p, &m->list)
		call_map_destroy(p->map);
	vec_deinit(&m->list);
}
