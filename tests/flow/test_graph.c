#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "flow/random_graph.h"

static void check_rows(const struct graph *g)
{
	uint32_t outs = 0, ins = 0;

	for (uint32_t n = 0; n < g->nodes; n++) {
		uint32_t before = GRAPH_NONE;

		graph_each_out (e, g, n) {
			assert_int_equal(g->edge[*e].from, n);
			assert_true(before == GRAPH_NONE || *e > before);
			before = *e;
			outs++;
		}
		before = GRAPH_NONE;
		graph_each_in (e, g, n) {
			assert_int_equal(g->edge[*e].to, n);
			assert_true(before == GRAPH_NONE || *e > before);
			before = *e;
			ins++;
		}
	}
	assert_int_equal(outs, g->edges);
	assert_int_equal(ins, g->edges);
}

static void test_rows(void **state)
{
	(void)state;
	uint64_t seed = 1;

	for (int i = 0; i < 500; i++) {
		uint32_t nodes = 1 + random_below(&seed, 12);
		struct graph g, r;

		random_graph(&g, &seed, nodes, random_below(&seed, 30));
		check_rows(&g);
		graph_reverse(&g, &r);
		check_rows(&r);
		for (uint32_t e = 0; e < g.edges; e++) {
			assert_int_equal(g.edge[e].from, r.edge[e].to);
			assert_int_equal(g.edge[e].to, r.edge[e].from);
		}
		graph_deinit(&r);
		graph_deinit(&g);
	}
}

static void test_empty(void **state)
{
	(void)state;
	struct graph g;

	graph_init(&g, 0, NULL, 0);
	assert_int_equal(g.edges, 0);
	graph_deinit(&g);
	assert_null(g.edge);
}

/* Ancestry by numbers is ancestry by the tree's edges. */
static int is_ancestor(const struct graph *g, const struct graph_walk *w, uint32_t a, uint32_t b)
{
	while (b != a && w->parent[b] != GRAPH_NONE)
		b = g->edge[w->parent[b]].from;
	return a == b;
}

static void check_walk(const struct graph *g, uint32_t root)
{
	struct graph_walk w;
	uint32_t reached = 0;

	graph_walk_init(&w, g, root);
	assert_int_equal(w.preorder[0], root);
	assert_int_equal(w.postorder[w.reached - 1], root);
	assert_int_equal(w.parent[root], GRAPH_NONE);
	for (uint32_t n = 0; n < g->nodes; n++) {
		int there = naive_reaches(g, root, n, GRAPH_NONE, GRAPH_NONE);

		assert_int_equal(w.pre[n] != GRAPH_NONE, there);
		assert_int_equal(w.post[n] != GRAPH_NONE, there);
		if (!there)
			continue;
		reached++;
		assert_int_equal(w.preorder[w.pre[n]], n);
		assert_int_equal(w.postorder[w.post[n]], n);
		for (uint32_t m = 0; m < g->nodes; m++)
			if (w.pre[m] != GRAPH_NONE)
				assert_int_equal(w.pre[n] <= w.pre[m] && w.post[n] >= w.post[m],
					is_ancestor(g, &w, n, m));
	}
	assert_int_equal(reached, w.reached);
	/* Depth first: no edge leads from a finished node to one that is not yet begun. */
	for (uint32_t e = 0; e < g->edges; e++) {
		uint32_t from = g->edge[e].from, to = g->edge[e].to;

		if (w.pre[from] != GRAPH_NONE)
			assert_true(w.pre[to] <= w.pre[from] || is_ancestor(g, &w, from, to));
	}
	graph_walk_deinit(&w);
}

static void test_walk(void **state)
{
	(void)state;
	uint64_t seed = 2;

	for (int i = 0; i < 500; i++) {
		uint32_t nodes = 1 + random_below(&seed, 9);
		struct graph g;

		random_graph(&g, &seed, nodes, random_below(&seed, 20));
		check_walk(&g, random_below(&seed, nodes));
		graph_deinit(&g);
	}
}

static void test_walk_is_not_recursive(void **state)
{
	(void)state;
	enum { LENGTH = 1000000 };
	struct graph_edge *list = xmalloc(LENGTH * sizeof *list);
	struct graph g;
	struct graph_walk w;

	for (uint32_t i = 0; i + 1 < LENGTH; i++)
		list[i] = (struct graph_edge){i, i + 1};
	graph_init(&g, LENGTH, list, LENGTH - 1);
	graph_walk_init(&w, &g, 0);
	assert_int_equal(w.reached, LENGTH);
	assert_int_equal(w.post[LENGTH - 1], 0);
	graph_walk_deinit(&w);
	graph_deinit(&g);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_walk_is_not_recursive),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
