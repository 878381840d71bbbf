#include "analyze/context_tree.h"

#include "analyze/context_size.h"
#include "analyze/counted_scene.h"

static struct context_tree *tree_of(struct counted_scene *sc, const struct context_tree_options *o)
{
	struct context_tree *t;

	if (!sc->sel)
		counted_select(sc, NULL);
	if (context_tree_create(sc->sel, o, &t, &sc->e))
		fail_msg("%s", sc->e.text);
	return t;
}

struct want {
	const char *name;
	uint32_t depth;
	uint64_t count;
	double own, all;
	bool recursive;
};

static void assert_nodes(const struct context_tree *t, const struct want *want, size_t n)
{
	const struct context_procedure *procedures;
	const struct context_node *nodes;

	assert_int_equal(context_tree_nodes(t, &nodes), n);
	context_tree_procedures(t, &procedures);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(procedures[nodes[i].procedure].name, want[i].name);
		assert_int_equal(nodes[i].depth, want[i].depth);
		assert_int_equal(nodes[i].count, want[i].count);
		assert_int_equal(nodes[i].recursive, want[i].recursive);
		assert_true(nodes[i].own == want[i].own && nodes[i].all == want[i].all);
	}
}
#define ASSERT_NODES(t, want) assert_nodes(t, want, sizeof want / sizeof *want)

static void from_the_top(void **state)
{
	static const struct want want[] = {
		{"main", 0, 1, 10, 1760, false},
		{"f", 1, 100, 1000, 1750, false},
		{"h", 2, 50, 500, 750, false},
		{"g", 3, 25, 250, 250, false},
		{"h", 4, 5, 0, 0, true},
	};
	struct context_tree *t = tree_of(*state, &(struct context_tree_options){0});

	assert_string_equal(context_tree_metric(t), "tsc");
	assert_true(context_tree_total(t) == 1760);
	ASSERT_NODES(t, want);
	context_tree_destroy(t);
}

static void call_sites_apart(void **state)
{
	static const struct want want[] = {
		{"main", 0, 1, 1, 181, false},
		{"f", 1, 60, 60, 140, false},
		{"h", 2, 50, 50, 80, false},
		{"g", 3, 25, 25, 30, false},
		{"h", 4, 5, 5, 5, true},
		{"f", 1, 40, 40, 40, false},
	};
	struct context_tree *t =
		tree_of(*state, &(struct context_tree_options){.metric = "calls", .sites = true});

	ASSERT_NODES(t, want);
	context_tree_destroy(t);
}

static void from_the_bottom(void **state)
{
	static const struct want want[] = {
		{"f", 0, 100, 1000, 1000, false},
		{"main", 1, 100, 0, 1000, false},
		{"h", 0, 50, 500, 500, false},
		{"f", 1, 50, 0, 500, false},
		{"main", 2, 50, 0, 500, false},
	};
	struct context_tree *t = tree_of(*state, &(struct context_tree_options){0});
	struct context_tree *callers = context_tree_callers(t, 300);

	ASSERT_NODES(callers, want);
	assert_true(context_tree_total(callers) == 1760);
	context_tree_destroy(callers);
	context_tree_destroy(t);
}

/* What is left out keeps its place and weighs nothing. */
static void only_some(void **state)
{
	static const struct want want[] = {
		{"main", 0, 1, 0, 500, false},
		{"f", 1, 100, 0, 500, false},
		{"h", 2, 50, 500, 500, false},
		{"g", 3, 25, 0, 0, false},
		{"h", 4, 5, 0, 0, true},
	};
	struct counted_scene *sc = *state;
	struct context_tree *t = tree_of(sc, &(struct context_tree_options){.procedure = "h*"});

	ASSERT_NODES(t, want);
	context_tree_destroy(t);
	selection_destroy(sc->sel);
	store_close(sc->s);
	counted_select(sc, "libx.so");
	t = tree_of(sc, &(struct context_tree_options){0});
	ASSERT_NODES(t, want);
	context_tree_destroy(t);
}

/* The paper's table 3. */
static void how_large(void **state)
{
	struct context_tree *t = tree_of(*state, &(struct context_tree_options){.sites = true});
	struct context_size s;

	context_size(t, &s);
	assert_int_equal(s.nodes, 5);
	assert_int_equal(s.roots, 1);
	assert_int_equal(s.procedures, 4);
	assert_int_equal(s.recursive, 1);
	assert_int_equal(s.deepest, 4);
	assert_int_equal(s.leaves, 2);
	assert_int_equal(s.interior, 3);
	assert_true(s.height == 3 && s.degree > 1.33 && s.degree < 1.34);
	assert_int_equal(s.replication, 2);
	assert_int_equal(s.sites, 5);
	assert_int_equal(s.paths, 3);
	assert_int_equal(s.one_path, 1); /* f calls h on one of its two paths */
	context_tree_destroy(t);
}

static void what_is_not_there(void **state)
{
	struct counted_scene *sc = *state;
	struct context_tree *t;

	counted_select(sc, NULL);
	assert_int_equal(context_tree_create(sc->sel,
				 &(struct context_tree_options){.metric = "misses"}, &t, &sc->e),
		-EINVAL);
	assert_non_null(strstr(sc->e.text, "calls, tsc"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, counted_set_up, counted_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(from_the_top),
		TEST(call_sites_apart),
		TEST(from_the_bottom),
		TEST(only_some),
		TEST(how_large),
		TEST(what_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
