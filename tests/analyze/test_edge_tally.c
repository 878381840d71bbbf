#include "analyze/scene.h"

#include <errno.h>

#include <sqlite3.h>

#define KERNEL 0xffffffff81000000

static int tally(struct scene *sc, const struct selection_options *o)
{
	int rc = store_open(sc->path, STORE_READ, &sc->s, &sc->e);

	if (!rc)
		rc = selection_create(sc->s, o, &sc->sel, &sc->e);
	return rc ? rc : edge_tally_create(sc->sel, &sc->edges, &sc->e);
}

static void assert_edges(
	const struct image_edges *im, const char *path, const struct edge_sum *want, size_t n)
{
	assert_string_equal(im->image->path, path);
	assert_int_equal(im->n, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(im->edges[i].from, want[i].from);
		assert_int_equal(im->edges[i].to, want[i].to);
		assert_int_equal(im->edges[i].count, want[i].count);
		assert_int_equal(im->edges[i].procedure, want[i].procedure);
	}
}

/* Fragments go with their procedure, though other procedures lie in between. */
static void sums_by_image_and_procedure(void **state)
{
	static const struct edge_sum demo[] = {{0x40100b, 0x401004, 505, 0},
		{0x40100b, 0x40100d, 50, 0}, {0x40100e, 0x401110, 10, 0},
		{0x402008, 0x401004, 3, 0}, {0x401108, 0x401200, 120, 1}};
	static const struct edge_sum kernel[] = {{KERNEL + 0x510, KERNEL + 0x520, 100, 0}};
	struct scene *sc = *state;
	const struct image_edges *images;

	assert_int_equal(tally(sc, &(struct selection_options){0}), 0);
	assert_int_equal(edge_tally_images(sc->edges, &images), 2);
	assert_edges(&images[0], "/opt/demo/bin/demo", demo, 5);
	assert_edges(&images[1], "[kernel]", kernel, 1);
	assert_int_equal(edge_tally_nowhere(sc->edges), 7 + 9);
}

static void filters(void **state)
{
	static const char *const faults[] = {"page-faults"};
	static const struct edge_sum want[] = {{0x40100b, 0x401004, 5, 0}};
	const struct selection_options o = {.events = faults, .nevents = 1};
	struct scene *sc = *state;
	const struct image_edges *images;

	assert_int_equal(tally(sc, &o), 0);
	assert_int_equal(edge_tally_images(sc->edges, &images), 1);
	assert_edges(&images[0], "/opt/demo/bin/demo", want, 1);
	assert_int_equal(edge_tally_nowhere(sc->edges), 0);
}

static void nothing_selected(void **state)
{
	const struct selection_options o = {.filter.comm = "nobody"};
	struct scene *sc = *state;
	const struct image_edges *images;

	assert_int_equal(tally(sc, &o), 0);
	assert_int_equal(edge_tally_images(sc->edges, &images), 0);
}

static void damage_is_named(void **state)
{
	struct scene *sc = *state;
	sqlite3 *db;

	/* Stored without compression: one edge is said to be there, and is not. */
	assert_int_equal(sqlite3_open(sc->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				 "UPDATE profiles SET data = x'040001' WHERE type = "
				 "(SELECT id FROM names WHERE text = 'edge')",
				 NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(tally(sc, &(struct selection_options){0}), -EBADMSG);
	assert_non_null(strstr(sc->e.text, "culprit db check"));
	assert_null(strchr(sc->e.text, '\n'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			sums_by_image_and_procedure, scene_set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(filters, scene_set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(nothing_selected, scene_set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(damage_is_named, scene_set_up, scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
