#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "flow/loops.h"
#include "flow/random_graph.h"

enum { MOST = 12 };

/* The definition itself: members as sets of bits. */
struct naive {
	uint32_t n;
	struct {
		uint32_t header, parent, members;
	} loop[MOST];
};

/* What a reaches by one edge or more inside of the set. */
static uint32_t reach_inside(const struct graph *g, uint32_t a, uint32_t set)
{
	uint32_t reached = 0, before;

	do {
		before = reached;
		for (uint32_t e = 0; e < g->edges; e++) {
			uint32_t from = g->edge[e].from, to = g->edge[e].to;

			if ((set >> from & set >> to & 1) && (from == a || reached >> from & 1))
				reached |= 1u << to;
		}
	} while (reached != before);
	return reached;
}

static void naive_loops(struct naive *l, const struct graph *g, const struct graph_walk *w)
{
	struct {
		uint32_t set, parent;
	} todo[2 * MOST] = {{0, GRAPH_NONE}};
	uint32_t n = 1;

	for (uint32_t a = 0; a < g->nodes; a++)
		todo[0].set |= (uint32_t)(w->pre[a] != GRAPH_NONE) << a;
	while (n--) {
		uint32_t set = todo[n].set, parent = todo[n].parent;
		uint32_t reach[MOST] = {0};

		for (uint32_t a = 0; a < g->nodes; a++)
			if (set >> a & 1)
				reach[a] = reach_inside(g, a, set);
		for (uint32_t i = 0; i < w->reached; i++) {
			uint32_t a = w->preorder[i], members = 0;

			if (!(set >> a & reach[a] >> a & 1))
				continue;
			for (uint32_t b = 0; b < g->nodes; b++)
				members |= (reach[a] >> b & reach[b] >> a & 1) << b;
			l->loop[l->n].header = a;
			l->loop[l->n].parent = parent;
			l->loop[l->n].members = members;
			todo[n].set = members & ~(1u << a);
			todo[n++].parent = l->n++;
			set &= ~members;
		}
	}
}

static void check_loop(const struct loops *l, const struct graph *g, const struct graph_walk *w,
	uint32_t i, uint32_t members)
{
	uint32_t entries = 0, exits = 0, backs = 0, side = 0;

	for (uint32_t e = 0; e < g->edges; e++) {
		uint32_t from = g->edge[e].from, to = g->edge[e].to;
		int inside = members >> from & 1, goes_in = members >> to & 1;

		if (w->pre[from] == GRAPH_NONE)
			continue;
		entries += !inside && goes_in;
		side += !inside && goes_in && to != l->loop[i].header;
		exits += inside && !goes_in;
		backs += inside && to == l->loop[i].header;
	}
	assert_int_equal(l->loop[i].entries, entries);
	assert_int_equal(l->loop[i].exits, exits);
	assert_int_equal(l->loop[i].backs, backs);
	assert_int_equal(l->loop[i].irreducible, side > 0);
	assert_int_equal(l->loop[i].nodes, __builtin_popcount(members));
	for (uint32_t a = 0; a < g->nodes; a++)
		assert_int_equal(loops_contain(l, i, a), members >> a & 1);
}

static void check_edges(const struct loops *l, const struct graph *g, const struct graph_walk *w,
	const struct naive *naive)
{
	for (uint32_t e = 0; e < g->edges; e++) {
		uint32_t from = g->edge[e].from, to = g->edge[e].to, flags = 0;

		for (uint32_t i = 0; i < naive->n && w->pre[from] != GRAPH_NONE; i++) {
			uint32_t members = naive->loop[i].members;

			if (members >> from & 1)
				flags |= to == naive->loop[i].header ? LOOP_BACK
					 : members >> to & 1         ? 0
								     : LOOP_LEAVE;
			else if (members >> to & 1)
				flags |= LOOP_ENTER;
		}
		assert_int_equal(l->edge[e], flags);
	}
}

static int check_graph(const struct graph *g, uint32_t root)
{
	struct naive naive = {0};
	struct graph_walk w;
	struct loops l;
	int irreducible = 0;

	graph_walk_init(&w, g, root);
	naive_loops(&naive, g, &w);
	loops_init(&l, g, root);
	assert_int_equal(l.n, naive.n);
	for (uint32_t i = 0; i < naive.n; i++) {
		uint32_t at = l.of[naive.loop[i].header], up = naive.loop[i].parent;

		assert_int_equal(l.loop[at].header, naive.loop[i].header);
		if (up == GRAPH_NONE) {
			assert_int_equal(l.loop[at].parent, GRAPH_NONE);
			assert_int_equal(l.loop[at].depth, 1);
		} else {
			uint32_t above = l.of[naive.loop[up].header];

			assert_int_equal(l.loop[at].parent, above);
			assert_true(above < at);
			assert_int_equal(l.loop[at].depth, l.loop[above].depth + 1);
		}
		check_loop(&l, g, &w, at, naive.loop[i].members);
		irreducible += l.loop[at].irreducible;
	}
	for (uint32_t a = 0; a < g->nodes; a++) {
		uint32_t around = 0;

		for (uint32_t i = 0; i < naive.n; i++)
			around += naive.loop[i].members >> a & 1;
		assert_int_equal(l.of[a] == GRAPH_NONE ? 0 : l.loop[l.of[a]].depth, around);
	}
	check_edges(&l, g, &w, &naive);
	loops_deinit(&l);
	graph_walk_deinit(&w);
	return irreducible;
}

static void test_random(void **state)
{
	(void)state;
	uint64_t seed = 6;
	int irreducible = 0;

	for (int i = 0; i < 5000; i++) {
		uint32_t nodes = 1 + random_below(&seed, MOST);
		struct graph g;

		random_graph(&g, &seed, nodes, random_below(&seed, 3 * nodes));
		irreducible += check_graph(&g, random_below(&seed, nodes));
		graph_deinit(&g);
	}
	assert_true(irreducible > 1000);
}

/* 0 -> 1 -> 2 -> 1, 2 -> 3: nothing about it is a matter of choice. */
static void test_while(void **state)
{
	(void)state;
	const struct graph_edge list[] = {{0, 1}, {1, 2}, {2, 1}, {1, 3}, {3, 3}};
	struct graph g;
	struct loops l;

	graph_init(&g, 4, list, 5);
	loops_init(&l, &g, 0);
	assert_int_equal(l.n, 2);
	assert_int_equal(l.of[0], GRAPH_NONE);
	assert_int_equal(l.loop[l.of[2]].header, 1);
	assert_int_equal(l.loop[l.of[1]].backs, 1);
	assert_int_equal(l.edge[0], LOOP_ENTER);
	assert_int_equal(l.edge[1], 0);
	assert_int_equal(l.edge[2], LOOP_BACK);
	assert_int_equal(l.edge[3], LOOP_ENTER | LOOP_LEAVE);
	assert_int_equal(l.edge[4], LOOP_BACK);
	assert_false(l.loop[0].irreducible);
	loops_deinit(&l);
	graph_deinit(&g);
}

/*
 * A ladder down with a way up from each rung and side entries into all loops: nests as deep as the
 * graph, where handing edges on from header to header is quadratic.
 */
static void test_deep_nest(void **state)
{
	(void)state;
	enum { N = 100000 };
	struct graph_edge *list = xmalloc(3 * N * sizeof *list);
	struct graph g;
	struct loops l;
	uint32_t n = 0;

	for (uint32_t i = 0; i + 1 < N; i++)
		list[n++] = (struct graph_edge){i, i + 1};
	for (uint32_t i = 1; i < N; i++) {
		list[n++] = (struct graph_edge){N - 1, i};
		list[n++] = (struct graph_edge){0, N - i};
	}
	graph_init(&g, N, list, n);
	loops_init(&l, &g, 0);
	assert_int_equal(l.n, N - 1);
	assert_int_equal(l.loop[N - 2].depth, N - 1);
	assert_true(l.loop[0].irreducible);
	loops_deinit(&l);
	graph_deinit(&g);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_while),
		cmocka_unit_test(test_deep_nest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
