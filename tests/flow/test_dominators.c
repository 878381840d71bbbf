#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "flow/components.h"
#include "flow/dominators.h"
#include "flow/random_graph.h"

static void check_dominators(const struct graph *g, uint32_t root)
{
	struct dominators d;

	dominators_init(&d, g, root);
	for (uint32_t b = 0; b < g->nodes; b++) {
		int there = naive_reaches(g, root, b, GRAPH_NONE, GRAPH_NONE);
		uint32_t above = 0;

		for (uint32_t a = 0; a < g->nodes; a++) {
			int expect = there && naive_reaches(g, root, a, GRAPH_NONE, GRAPH_NONE) &&
				     !naive_reaches(g, root, b, GRAPH_NONE, a);

			assert_int_equal(dominates(&d, a, b), expect);
			above += expect;
		}
		/* The immediate dominator has one dominator less than the node. */
		if (d.tree.parent[b] != GRAPH_NONE) {
			assert_int_equal(d.tree.depth[b] + 1, above);
			assert_true(dominates(&d, d.tree.parent[b], b));
			assert_int_equal(d.tree.depth[d.tree.parent[b]] + 2, above);
		} else {
			assert_true(b == root || !there);
		}
	}
	dominators_deinit(&d);
}

static void test_random(void **state)
{
	(void)state;
	uint64_t seed = 3;

	for (int i = 0; i < 1500; i++) {
		uint32_t nodes = 1 + random_below(&seed, 10);
		struct graph g, r;

		random_graph(&g, &seed, nodes, random_below(&seed, 3 * nodes));
		check_dominators(&g, random_below(&seed, nodes));
		graph_reverse(&g, &r);
		check_dominators(&r, random_below(&seed, nodes));
		graph_deinit(&r);
		graph_deinit(&g);
	}
}

static void test_climb(void **state)
{
	(void)state;
	uint64_t seed = 4;
	enum { N = 300 };
	uint32_t parent[N], order[N];
	struct tree t;

	for (uint32_t i = 0; i < N; i++) {
		order[i] = i;
		/* Two trees, one with a long way down. */
		parent[i] = i < 2     ? GRAPH_NONE
			    : i < 200 ? i - 1 - (i == 2)
				      : random_below(&seed, i);
	}
	tree_init(&t, N, parent, order, N);
	for (uint32_t a = 0; a < N; a++)
		for (uint32_t b = 0; b < N; b++) {
			uint32_t up = a, under;

			for (; up != GRAPH_NONE; up = parent[up]) {
				for (under = b; under != GRAPH_NONE && under != up;)
					under = parent[under];
				if (under == up)
					break;
			}
			assert_int_equal(tree_climb(&t, a, b), up);
		}
	tree_deinit(&t);
}

static void test_components(void **state)
{
	(void)state;
	uint64_t seed = 5;

	for (int i = 0; i < 1000; i++) {
		uint32_t nodes = 1 + random_below(&seed, 10), root = random_below(&seed, nodes);
		struct components c;
		struct graph g;

		random_graph(&g, &seed, nodes, random_below(&seed, 2 * nodes + 1));
		components_init(&c, &g, root);
		for (uint32_t a = 0; a < nodes; a++) {
			uint32_t size = 0;

			assert_int_equal(c.of[a] != GRAPH_NONE,
				naive_reaches(&g, root, a, GRAPH_NONE, GRAPH_NONE));
			if (c.of[a] == GRAPH_NONE)
				continue;
			assert_true(c.of[a] < c.n);
			for (uint32_t b = 0; b < nodes; b++) {
				int both = naive_reaches(&g, a, b, GRAPH_NONE, GRAPH_NONE) &&
					   naive_reaches(&g, b, a, GRAPH_NONE, GRAPH_NONE);

				assert_int_equal(c.of[b] == c.of[a], both);
				size += both;
			}
			assert_int_equal(c.size[c.of[a]], size);
		}
		for (uint32_t e = 0; e < g.edges; e++)
			if (c.of[g.edge[e].from] != GRAPH_NONE)
				assert_true(c.of[g.edge[e].to] <= c.of[g.edge[e].from]);
		components_deinit(&c);
		graph_deinit(&g);
	}
}

/* Each pair of nodes i, i + 1 on the way down jumps back up as well. */
static void test_deep(void **state)
{
	(void)state;
	enum { N = 200000 };
	struct graph_edge *list = xmalloc(2 * N * sizeof *list);
	struct dominators d;
	struct components c;
	struct graph g;
	uint32_t n = 0;

	for (uint32_t i = 0; i + 1 < N; i++) {
		list[n++] = (struct graph_edge){i, i + 1};
		list[n++] = (struct graph_edge){i + 1, i / 2};
	}
	graph_init(&g, N, list, n);
	dominators_init(&d, &g, 0);
	assert_int_equal(d.tree.depth[N - 1], N - 1);
	assert_true(dominates(&d, N / 2, N - 1));
	components_init(&c, &g, 0);
	assert_int_equal(c.n, 1);
	components_deinit(&c);
	dominators_deinit(&d);
	graph_deinit(&g);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_climb),
		cmocka_unit_test(test_components),
		cmocka_unit_test(test_deep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
