#include "analyze/inclusive.h"

#include "analyze/context_tree.h"
#include "analyze/counted_scene.h"

struct want {
	const char *name;
	double own, all;
};

static void assert_rows(struct counted_scene *sc, const char *metric, const struct want *want)
{
	const struct context_procedure *procedures;
	struct context_tree *t;
	inclusive_list rows = {0};

	counted_select(sc, NULL);
	if (context_tree_create(
		    sc->sel, &(struct context_tree_options){.metric = metric}, &t, &sc->e))
		fail_msg("%s", sc->e.text);
	context_tree_procedures(t, &procedures);
	inclusive_rows(t, &rows);
	assert_int_equal(rows.n, 4);
	for (size_t i = 0; i < rows.n; i++) {
		assert_string_equal(procedures[rows.p[i].procedure].name, want[i].name);
		assert_true(rows.p[i].own == want[i].own);
		assert_true(rows.p[i].all == want[i].all);
	}
	vec_deinit(&rows);
	context_tree_destroy(t);
}

/* main calls f, f h, h g, and g calls h again: those 5 calls are in h's once. */
static void recursion_counts_once(void **state)
{
	static const struct want want[] = {
		{"main", 1, 181}, {"f", 100, 180}, {"h", 55, 80}, {"g", 25, 30}};

	assert_rows(*state, "calls", want);
}

static void by_metric(void **state)
{
	static const struct want want[] = {
		{"main", 10, 1760}, {"f", 1000, 1750}, {"h", 500, 750}, {"g", 250, 250}};

	assert_rows(*state, NULL, want);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, counted_set_up, counted_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(recursion_counts_once),
		TEST(by_metric),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
