#include "burst/path_sites.h"

#include <string.h>

#include "paths/map.h"
#include "paths/read.h"

struct key {
	uint64_t point, number;
};

struct known {
	struct key key;
	uint32_t site;
};

void path_sites_init(struct path_sites *p)
{
	*p = (struct path_sites){0};
	hmap_init(&p->known, sizeof(struct known), sizeof(struct key));
}

void path_sites_deinit(struct path_sites *p)
{
	hmap_deinit(&p->known);
	vec_deinit(&p->list);
	arena_deinit(&p->shapes);
}

uint32_t path_sites_add(struct path_sites *p, uint64_t point, const struct path_site *path,
	const struct trace_site *like, trace_sites *sites)
{
	struct key key = {point, path->number};
	bool fresh;
	struct known *k = hmap_put(&p->known, &key, &fresh);

	if (fresh) {
		k->site = (uint32_t)sites->n;
		*vec_add(sites) = *like;
		*vec_add(&p->list) = *path;
		p->list.p[p->list.n - 1].site = k->site;
	}
	return k->site;
}

/* ---- shapes ---- */

static int by_procedure(const void *a, const void *b)
{
	const struct path_site *x = a, *y = b;

	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	return x->procedure < y->procedure ? -1 : x->procedure > y->procedure;
}

struct settling {
	struct path_sites *own;
	struct trace_site *sites;
	size_t at; /* of the list: the first that is left */
	number_path path;
	block_list blocks;
};

static const struct path_shape *keep(struct settling *s, const struct path_shape *shape)
{
	struct path_shape *own = arena_alloc(&s->own->shapes, sizeof *own);
	uint64_t *blocks = arena_alloc(&s->own->shapes, shape->n * sizeof *blocks);

	memcpy(blocks, shape->blocks, shape->n * sizeof *blocks);
	*own = *shape;
	own->blocks = blocks;
	return own;
}

/* The sites of one function, which come next in the list if it has some. */
static void settle_function(struct settling *s, uint32_t image, const struct path_function *f,
	const struct numbering *n)
{
	for (; s->at < s->own->list.n; s->at++) {
		const struct path_site *p = &s->own->list.p[s->at];
		struct path_shape shape;

		if (p->image > image || (p->image == image && p->procedure > f->graph.start))
			return;
		if (p->image == image && p->procedure == f->graph.start && p->number < n->total &&
			paths_read_shape(f, n, p->number, &s->path, &s->blocks, &shape))
			s->sites[p->site].path = keep(s, &shape);
	}
}

static void settle_image(struct settling *s, uint32_t image, const struct burst_map *map)
{
	struct path_function f = {0};
	struct paths_map_reader reader;
	struct numbering n;

	if (paths_map_open(&reader, map->paths.p, map->paths.n))
		return;
	while (paths_map_next(&reader, &f, &n) > 0) {
		settle_function(s, image, &f, &n);
		numbering_deinit(&n);
	}
	path_function_deinit(&f);
}

void path_sites_settle(struct path_sites *p, const struct burst_map *const *maps, size_t n,
	struct trace_site *sites)
{
	struct settling s = {.own = p, .sites = sites};

	if (!p->list.n)
		return;
	vec_sort(&p->list, by_procedure);
	for (uint32_t i = 0; i < n; i++)
		settle_image(&s, i, maps[i]);
	vec_deinit(&s.path);
	vec_deinit(&s.blocks);
}
