#include "analyze/path_list.h"

#include "analyze/counted_scene.h"
#include "analyze/path_code.h"
#include "analyze/path_predict.h"

static struct path_list *list_of(struct counted_scene *sc, const char *metric, double hot)
{
	struct path_list *l;

	if (!sc->sel)
		counted_select(sc, NULL);
	if (path_list_create(sc->sel, &(struct path_list_options){metric, hot}, &l, &sc->e))
		fail_msg("%s", sc->e.text);
	return l;
}

static void by_what_was_measured(void **state)
{
	struct path_list *l = list_of(*state, NULL, 0.05);
	const struct path_summary *s = path_list_summary(l);
	const struct path_entry *const *paths;
	const struct path_procedure *procedures;

	assert_string_equal(s->metric, "tsc");
	assert_true(s->measured);
	assert_int_equal(s->paths, 4);
	assert_int_equal(s->hot, 2);
	assert_true(s->weight == 1110 && s->instructions == 751);
	assert_int_equal(path_list_procedures(l, &procedures), 3);
	assert_int_equal(path_list_ranked(l, &paths), 4);
	assert_int_equal(paths[0]->shape.n, 5);
	assert_int_equal(paths[0]->length, 10);
	assert_int_equal(paths[0]->class, PATH_DENSE);
	assert_int_equal(paths[0]->rank, 1);
	assert_string_equal(procedures[paths[0]->procedure].name, "f");
	assert_int_equal(paths[1]->length, 5);
	assert_int_equal(paths[1]->class, PATH_SPARSE);
	assert_int_equal(paths[2]->class, PATH_COLD);
	assert_int_equal(paths[2]->length, 0); /* its code is not kept */
	assert_int_equal(s->without_code, 1);
	assert_int_equal(paths[3]->length, 1); /* a call that does not come back */
	path_list_destroy(l);
}

/* The paper's tables 4 and 5. */
static void classes_add_up(void **state)
{
	struct path_list *l = list_of(*state, "tsc", 0.05);
	const struct path_share *of = path_list_summary(l)->of;

	assert_int_equal(of[PATH_DENSE].paths, 1);
	assert_true(of[PATH_DENSE].weight == 1000 && of[PATH_DENSE].instructions == 500);
	assert_int_equal(of[PATH_DENSE].procedures, 0);
	assert_int_equal(of[PATH_SPARSE].paths, 1);
	assert_int_equal(of[PATH_SPARSE].procedures, 1); /* 1100 / 750 is less than 1110 / 751 */
	assert_int_equal(of[PATH_SPARSE].in_procedures, 2);
	assert_true(of[PATH_SPARSE].procedures_weight == 1100);
	assert_int_equal(of[PATH_COLD].paths, 2);
	assert_int_equal(of[PATH_COLD].procedures, 2);
	path_list_destroy(l);
}

static void by_executions_and_instructions(void **state)
{
	const struct path_entry *const *paths;
	struct path_list *l = list_of(*state, PATH_BY_COUNT, 0.1);

	assert_true(path_list_summary(l)->weight == 111);
	assert_int_equal(path_list_summary(l)->hot, 2);
	path_list_destroy(l);
	l = list_of(*state, PATH_BY_INSTRUCTIONS, 0.1);
	assert_true(path_list_summary(l)->weight == 751);
	assert_false(path_list_summary(l)->measured);
	path_list_ranked(l, &paths);
	assert_true(paths[0]->weight == 500 && paths[1]->weight == 250);
	path_list_destroy(l);
}

static void what_is_not_there(void **state)
{
	struct counted_scene *sc = *state;
	struct path_list *l;

	counted_select(sc, NULL);
	assert_int_equal(
		path_list_create(sc->sel, &(struct path_list_options){"misses", 0}, &l, &sc->e),
		-EINVAL);
	assert_non_null(strstr(sc->e.text, "tsc, executions and instructions"));
	selection_destroy(sc->sel);
	store_close(sc->s);
	counted_select(sc, "libx.so");
	assert_int_equal(
		path_list_create(sc->sel, &(struct path_list_options){NULL, 0}, &l, &sc->e),
		-ENOENT);
}

/* Two branches that agree: by edges alone each of four paths would run a quarter of the times. */
static void edges_do_not_know(void **state)
{
	struct counted_scene *sc = *state;
	struct path_list *l = list_of(sc, "instructions", 0.1);
	struct path_prediction p;
	const struct path_entry *all;
	size_t n = path_list_all(l, &all);

	path_predict(l, 0.1, &p);
	for (size_t i = 0; i < n; i++)
		assert_true(p.counts[i] == (all[i].count == 50 ? 25 : (double)all[i].count));
	assert_int_equal(p.hot, 2);
	assert_int_equal(p.foretold, 2);
	assert_int_equal(p.wrong, 0);
	assert_int_equal(p.never, 2);
	/* main and g (a block counts as an instruction) are foretold, of f one half */
	assert_true(p.overlap > 0.506 && p.overlap < 0.508);
	path_prediction_deinit(&p);
	path_list_destroy(l);
}

static void note(void *arg, uint64_t address)
{
	uint64_t **to = arg;

	*(*to)++ = address;
}

static void paths_are_walked(void **state)
{
	static const uint64_t blocks[] = {0x2000, 0x2008, 0x200d}, away[] = {0x2000, 0x9000};
	static const uint64_t want[] = {0x2000, 0x2002, 0x2008, 0x200a, 0x200d};
	struct counted_scene *sc = *state;
	struct path_shape s = {.n = 3, .blocks = blocks}, bad = {.n = 2, .blocks = away};
	struct path_shape around = {.n = 1, .blocks = blocks, .end = PATH_NEXT, .next = 0x2000};
	struct selected_image *im;
	struct path_codes *codes;
	struct path_code *c;
	uint64_t got[8], *end = got;

	counted_select(sc, NULL);
	codes = path_codes_create(sc->sel);
	selection_images(sc->sel, &im);
	assert_int_equal(selection_load(sc->sel, im, &sc->e), 0);
	assert_int_equal(
		path_code_create(codes, im, store_procedure_at(&im->procedures, 0x2000), &c), 0);
	assert_int_equal(path_code_each(c, &s, note, &end), 0);
	assert_int_equal(end - got, 5);
	assert_memory_equal(got, want, sizeof want);
	assert_int_equal(path_code_length(c, &s), 5);
	assert_int_equal(path_code_length(c, &bad), 0);
	assert_int_equal(path_code_length(c, &around), 2);
	path_code_destroy(c);
	assert_int_equal(
		path_code_create(codes, im, store_procedure_at(&im->procedures, 0x3000), &c),
		-ENOENT);
	path_codes_destroy(codes);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, counted_set_up, counted_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(by_what_was_measured),
		TEST(classes_add_up),
		TEST(by_executions_and_instructions),
		TEST(what_is_not_there),
		TEST(edges_do_not_know),
		TEST(paths_are_walked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
