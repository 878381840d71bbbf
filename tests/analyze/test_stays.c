#include "analyze/stays.h"
#include "analyze/walk_scene.h"
#include "store/stays.h"

#define LINE(n) ((uint64_t)(n)*STAYS_LINE)

static void open_scene(struct walk_scene *sc)
{
	static const struct stay list[] = {
		{LINE(1), 0, 1000, 0},
		{LINE(1), 1, 0, 400},
		{LINE(2) + 7, 0, 900, 100},
		{LINE(2) + 8, 0, 6, 3},
	};
	struct buf data = {0};

	stays_pack(list, sizeof list / sizeof *list, &data);
	walk_scene_open_with(sc, &blob_stay, &data);
	buf_deinit(&data);
}

static void test_shares(void **state)
{
	struct stays_share share = {-1, -1};
	struct walk_scene sc;
	struct stays *s = NULL;

	(void)state;
	open_scene(&sc);
	assert_int_equal(stays_create(sc.sel, &s, &sc.e), 0);
	/* What never was gone may be so now and then. */
	assert_true(stays_data(s, sc.image, LINE(1), &share));
	assert_float_equal(share.likely, 0, 1e-9);
	assert_true(share.most > 0 && share.most < 0.005);
	/* A line is found by any of its bytes. */
	assert_true(stays_code(s, sc.image, LINE(1) + 63, &share));
	assert_float_equal(share.likely, 1, 1e-9);
	assert_float_equal(share.most, 1, 1e-9);
	assert_true(stays_data(s, sc.image, LINE(2) + 7, &share));
	assert_float_equal(share.likely, 0.1, 1e-9);
	assert_true(share.most > 0.12 && share.most < 0.13);
	/* Too seldom; never. */
	assert_false(stays_data(s, sc.image, LINE(2) + 8, &share));
	assert_false(stays_code(s, sc.image, LINE(2), &share));
	assert_false(stays_data(s, sc.image, LINE(3), &share));
	stays_destroy(s);
	walk_scene_close(&sc);
}

static void test_none(void **state)
{
	struct walk_step step = {4, 0, 8};
	struct walk walk = {.weight = 1, .instructions = 2, .nsteps = 1, .steps = &step};
	struct walk_scene sc;
	struct stays *s = (struct stays *)&sc;

	(void)state;
	walk_scene_open(&sc, &walk, 1);
	assert_int_equal(stays_create(sc.sel, &s, &sc.e), 0);
	assert_null(s);
	stays_destroy(NULL);
	walk_scene_close(&sc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
