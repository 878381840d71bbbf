#include "analyze/scene.h"
#include "analyze/timeline.h"

static struct timeline *make(struct scene *sc, struct timeline_options o, int64_t epoch)
{
	struct selection_options so = {.filter = {.epochs = &epoch, .nepochs = epoch ? 1 : 0}};
	struct timeline *t = NULL;

	if (!sc->s)
		assert_int_equal(store_open(sc->path, STORE_READ, &sc->s, &sc->e), 0);
	selection_destroy(sc->sel);
	sc->sel = NULL;
	assert_int_equal(selection_create(sc->s, &so, &sc->sel, &sc->e), 0);
	assert_int_equal(timeline_create(sc->sel, &o, &t, &sc->e), 0);
	return t;
}

static double sum_of(const struct timeline *t)
{
	const struct timeline_part *parts;
	size_t n = timeline_parts(t, &parts);
	double sum = 0;

	for (size_t i = 0; i < timeline_slices(t); i++)
		for (size_t p = 0; p < n; p++)
			sum += timeline_weight(t, i, p);
	return sum;
}

static void one_stretch_is_even(void **state)
{
	struct scene *sc = *state;
	struct timeline *t = make(sc, (struct timeline_options){TIMELINE_IMAGES, 6, 8}, 1);
	const struct timeline_part *parts;

	assert_int_equal(timeline_parts(t, &parts), 4);
	assert_string_equal(parts[0].name, "demo");
	assert_int_equal(parts[0].samples, 900);
	assert_int_equal(timeline_slices(t), 6);
	assert_int_equal(timeline_time(t, 0), 1000 * 1000000);
	assert_int_equal(timeline_time(t, 6), 1060 * 1000000);
	for (size_t i = 0; i < 6; i++)
		assert_float_equal(timeline_weight(t, i, 0), 150, 1e-6);
	assert_float_equal(sum_of(t), 1000, 1e-6);
	timeline_destroy(t);
}

static void stretches_stand_where_they_were(void **state)
{
	struct scene *sc = *state;
	/* 1060 s in 53 slices of 20 s: epoch 1 is in the first three, epoch 2 in the last three. */
	struct timeline *t = make(sc, (struct timeline_options){TIMELINE_IMAGES, 53, 8}, 0);

	assert_float_equal(sum_of(t), 1100, 1e-6);
	assert_float_equal(timeline_weight(t, 0, 0), 300, 1e-6);
	assert_float_equal(timeline_weight(t, 2, 0), 300, 1e-6);
	for (size_t i = 3; i < 50; i++)
		assert_float_equal(timeline_weight(t, i, 0), 0, 1e-6);
	assert_float_equal(timeline_weight(t, 52, 0), 100.0 / 3, 1e-6);
	timeline_destroy(t);
}

static void the_rest_is_one_part(void **state)
{
	struct scene *sc = *state;
	struct timeline *t = make(sc, (struct timeline_options){TIMELINE_PROCEDURES, 2, 2}, 1);
	const struct timeline_part *parts;

	assert_int_equal(timeline_parts(t, &parts), 3);
	assert_string_equal(parts[0].name, "hot");
	assert_int_equal(parts[0].start, 0x401000);
	assert_string_equal(parts[1].name, "demo!0x401100");
	assert_null(parts[2].name);
	assert_int_equal(parts[2].samples, 200);
	assert_float_equal(sum_of(t), 1000, 1e-6);
	timeline_destroy(t);
}

static void nothing_has_no_slices(void **state)
{
	struct scene *sc = *state;
	struct timeline *t = make(sc, (struct timeline_options){TIMELINE_IMAGES, 5, 8}, 77);

	assert_int_equal(timeline_slices(t), 0);
	timeline_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_stretch_is_even, scene_set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(
			stretches_stand_where_they_were, scene_set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(
			the_rest_is_one_part, scene_set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(
			nothing_has_no_slices, scene_set_up, scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
