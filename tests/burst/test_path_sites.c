/* A map of paths that is written by hand: which shapes the numbers of paths get. */
#include "burst/path_sites.h"

#include "paths/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { A, B, OUTSIDE };

/* Blocks a and b of 16 bytes: a goes to b or returns, b goes back to a. */
static const struct exact_link links[] = {
	{.from = OUTSIDE, .to = A, .kind = EXACT_LINK_ENTRY},
	{.from = A, .to = B, .kind = EXACT_LINK_INSIDE},
	{.from = A, .to = OUTSIDE, .kind = EXACT_LINK_RETURN},
	{.from = B, .to = A, .kind = EXACT_LINK_INSIDE},
};
enum { ENTRY, A_B, RETURN, BACK, AGAIN };

static const struct trace_site like = {.image = 7, .at = 0x1234, .kind = TRACE_PATH};

/* The values of its edges are kept: they are the same for all such functions. */
static void add_function(struct paths_map_writer *w, uint64_t start, uint64_t *values)
{
	struct path_function f = {.how = PATH_HOW_ARRAY};
	struct numbering n;
	struct graph g;

	f.graph.start = start;
	for (uint64_t i = 0; i < 2; i++)
		*vec_add(&f.graph.blocks) =
			(struct exact_block){.start = start + 16 * i, .size = 16, .last = 2};
	for (size_t i = 0; i < sizeof links / sizeof *links; i++)
		*vec_add(&f.graph.links) = links[i];
	path_graph(&f.graph, &g);
	numbering_init(&n, &g, OUTSIDE, &(struct number_wish){0});
	graph_deinit(&g);
	assert_int_equal(n.total, 4);
	for (size_t i = 0; i < f.graph.links.n; i++)
		f.graph.links.p[i].counted = n.cut[i];
	for (uint32_t i = 0; i < n.dag.edges; i++)
		*vec_add(&f.values) = values[i] = n.value[i];
	paths_map_add(w, &f);
	numbering_deinit(&n);
	path_function_deinit(&f);
}

static void make_map(struct burst_map *map, uint64_t first, uint64_t second, uint64_t *values)
{
	static const struct path_layout layout = {.words = 64, .stride = 1, .hash = 64};
	struct paths_map_writer w = {0};
	struct image_id id = {.size = 4};

	*map = (struct burst_map){0};
	add_function(&w, first, values);
	add_function(&w, second, values);
	paths_map_finish(&w, &layout, &id, "/bin/x", &map->paths);
}

static uint32_t add(struct path_sites *p, trace_sites *sites, uint64_t point, uint32_t image,
	uint64_t procedure, uint64_t number)
{
	struct path_site path = {procedure, number, image, 0};

	return path_sites_add(p, point, &path, &like, sites);
}

static void check(const struct trace_site *s, enum path_start start, enum path_end last,
	uint64_t first, uint64_t second)
{
	assert_non_null(s->path);
	assert_int_equal(s->path->start, start);
	assert_int_equal(s->path->end, last);
	assert_int_equal(s->path->n, second ? 2 : 1);
	assert_int_equal(s->path->blocks[0], first);
	if (second)
		assert_int_equal(s->path->blocks[1], second);
	assert_int_equal(s->image, like.image);
	assert_int_equal(s->at, like.at);
}

static void shapes(void **state)
{
	struct burst_map maps[2];
	const struct burst_map *list[] = {&maps[0], &maps[1]};
	struct path_sites p;
	trace_sites sites = {0};
	uint64_t v[AGAIN + 1];
	uint32_t around, whole, last, unknown, elsewhere, other;

	(void)state;
	make_map(&maps[0], 0x1000, 0x2000, v);
	make_map(&maps[1], 0x2000, 0x3000, v);
	path_sites_init(&p);
	/* Not in the order of the maps. */
	other = add(&p, &sites, 5, 1, 0x2000, v[ENTRY] + v[RETURN]);
	last = add(&p, &sites, 1, 0, 0x2000, v[AGAIN] + v[RETURN]);
	around = add(&p, &sites, 0, 0, 0x1000, v[ENTRY] + v[A_B] + v[BACK]);
	whole = add(&p, &sites, 1, 0, 0x1000, v[ENTRY] + v[RETURN]);
	unknown = add(&p, &sites, 1, 0, 0x1000, 4);
	elsewhere = add(&p, &sites, 9, 0, 0x1800, 0);
	assert_int_equal(sites.n, 6);
	assert_int_equal(add(&p, &sites, 0, 0, 0x1000, v[ENTRY] + v[A_B] + v[BACK]), around);
	assert_int_equal(sites.n, 6);
	path_sites_settle(&p, list, 2, sites.p);
	check(&sites.p[around], PATH_ENTRY, PATH_NEXT, 0x1000, 0x1010);
	assert_int_equal(sites.p[around].path->next, 0x1000);
	check(&sites.p[whole], PATH_ENTRY, PATH_RETURN, 0x1000, 0);
	check(&sites.p[last], PATH_AGAIN, PATH_RETURN, 0x2000, 0);
	check(&sites.p[other], PATH_ENTRY, PATH_RETURN, 0x2000, 0);
	assert_null(sites.p[unknown].path);
	assert_null(sites.p[elsewhere].path);
	path_sites_deinit(&p);
	vec_deinit(&sites);
	buf_deinit(&maps[0].paths);
	buf_deinit(&maps[1].paths);
}

/* What can not be read gives no shapes, and ends nothing. */
static void damaged(void **state)
{
	struct burst_map map;
	const struct burst_map *list[] = {&map};
	uint64_t v[AGAIN + 1];

	(void)state;
	make_map(&map, 0x1000, 0x2000, v);
	for (size_t left = map.paths.n; left-- > 0;) {
		struct path_sites p;
		trace_sites sites = {0};

		map.paths.n = left;
		path_sites_init(&p);
		add(&p, &sites, 0, 0, 0x2000, v[ENTRY] + v[RETURN]);
		path_sites_settle(&p, list, 1, sites.p);
		assert_null(sites.p[0].path);
		path_sites_deinit(&p);
		vec_deinit(&sites);
	}
	buf_deinit(&map.paths);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes),
		cmocka_unit_test(damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
