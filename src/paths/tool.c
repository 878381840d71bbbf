#include "paths/tool.h"

#include "edit/guide.h"
#include "paths/map.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int apply(const void *options, struct edit *edit, const char *counts, void **state,
	struct buf *map, struct err *e)
{
	struct paths_options o = *(const struct paths_options *)options;
	struct paths *p = NULL;
	int rc;

	o.counts = counts;
	rc = paths_create(edit, &o, &p, map, e);
	*state = p;
	return rc;
}

static void release(void *state)
{
	paths_destroy(state);
}

static int outline(const struct buf *map, struct edit_outline *out)
{
	struct paths_map_reader r;
	int rc = paths_map_open(&r, map->p, map->n);

	if (!rc)
		*out = (struct edit_outline){r.layout.words * sizeof(uint64_t), r.graphs.path};
	return rc;
}

void paths_tool(const struct paths_options *o, struct edit_tool *out)
{
	*out = (struct edit_tool){
		.options = o, .apply = apply, .release = release, .outline = outline};
	snprintf(out->name, sizeof out->name, "paths%s%s%s", o->full ? "-full" : "",
		o->atomic ? "-atomic" : "", o->per_thread ? "-thread" : "");
	measures_tag(&o->measures, out->name, sizeof out->name);
	if (o->guide && guide_hash(o->guide))
		snprintf(out->name + strlen(out->name), sizeof out->name - strlen(out->name),
			"-refined-%016" PRIx64, guide_hash(o->guide));
}
