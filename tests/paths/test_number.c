/* Random graphs, with loops of all kinds: all paths are listed by hand, each must have a number. */
#include "paths/number.h"

#include "base/mem.h"
#include "paths/graphs.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LISTED 20000 /* graphs with more paths are not listed */

struct listing {
	const struct numbering *n;
	const uint64_t *increments;
	uint32_t *seen; /* by number */
	uint32_t paths;
	number_path way, decoded;
};

static void check_path(struct listing *l)
{
	uint64_t value = 0, sum = 0;

	vec_each (e, &l->way) {
		value += l->n->value[*e];
		sum += l->increments[*e];
	}
	assert_int_equal(value, sum);
	assert_true(value < l->n->total);
	assert_int_equal(l->seen[value]++, 0);
	numbering_decode(l->n, value, &l->decoded);
	assert_int_equal(l->decoded.n, l->way.n);
	assert_memory_equal(l->decoded.p, l->way.p, l->way.n * sizeof *l->way.p);
	l->paths++;
}

/* By recursion, as nobody would write it elsewhere. A way that is longer than there are nodes goes
 * around. */
static void list_from(struct listing *l, uint32_t node)
{
	assert_true(l->way.n <= l->n->dag.nodes);
	graph_each_out (e, &l->n->dag, node) {
		uint32_t to = l->n->dag.edge[*e].to;

		*vec_add(&l->way) = *e;
		if (to == l->n->outside)
			check_path(l);
		else
			list_from(l, to);
		l->way.n--;
	}
}

static void list_all(const struct numbering *n, const uint64_t *increments)
{
	struct listing l = {.n = n, .increments = increments};

	if (n->total > LISTED)
		return;
	l.seen = xcalloc(n->total + 1, sizeof *l.seen);
	list_from(&l, n->outside);
	assert_int_equal(l.paths, n->total);
	free(l.seen);
	vec_deinit(&l.way);
	vec_deinit(&l.decoded);
}

/* Walks on the graph itself: what is counted by path must be what was walked, edge by edge. */
static void walk(const struct graph *g, const struct numbering *n, const uint64_t *increments)
{
	uint64_t *truth = xcalloc(g->edges + 1, sizeof *truth);
	uint64_t *count = xcalloc(n->dag.edges + 1, sizeof *count);
	uint32_t at = n->outside;
	number_path path = {0};
	uint64_t sum = 0;

	for (int steps = 0; steps < 300; steps++) {
		uint32_t degree = graph_out_degree(g, at), edge;

		if (!degree)
			break;
		edge = g->out[g->out_first[at] + draw(degree)];
		truth[edge]++;
		sum += increments[edge];
		at = g->edge[edge].to;
		if (!n->cut[edge] && at != n->outside)
			continue;
		assert_true(sum < n->total);
		numbering_decode(n, sum, &path);
		vec_each (e, &path)
			count[*e]++;
		sum = n->cut[edge] ? increments[n->begins[edge]] : 0;
		if (steps > 200 && at == n->outside)
			break;
	}
	if (at == n->outside)
		assert_memory_equal(truth, count, g->edges * sizeof *truth);
	free(truth);
	free(count);
	vec_deinit(&path);
}

static void check_recalled(const struct numbering *n, const struct graph *g)
{
	struct numbering again;
	uint64_t *wrong = xmemdup(n->value, n->dag.edges * sizeof *wrong);

	assert_int_equal(
		numbering_recall(&again, g, n->outside, n->cut, n->value, n->dag.edges), 0);
	assert_int_equal(again.total, n->total);
	assert_memory_equal(again.paths, n->paths, g->nodes * sizeof *n->paths);
	numbering_deinit(&again);
	if (n->total > 1) { /* the first edge from outside that has paths is 0 */
		wrong[g->out[g->out_first[n->outside]]] += n->total;
		if (n->paths[g->edge[g->out[g->out_first[n->outside]]].to])
			assert_int_equal(numbering_recall(&again, g, n->outside, n->cut, wrong,
						 n->dag.edges),
				-EBADMSG);
		else
			assert_int_equal(numbering_recall(&again, g, n->outside, n->cut, n->value,
						 n->dag.edges),
				0);
		numbering_deinit(&again);
	}
	free(wrong);
}

static void try_graph(uint32_t nodes, bool cyclic, bool cuts, uint64_t limit)
{
	struct graph g;
	struct numbering n;
	struct number_wish wish = {.limit = limit};
	double *weight;
	bool *cut;

	draw_graph(&g, nodes, draw(nodes * 2), cyclic);
	weight = xcalloc(g.edges + 1, sizeof *weight);
	cut = xcalloc(g.edges + 1, sizeof *cut);
	draw_weights(&g, weight);
	for (uint32_t i = 0; i < g.edges && cuts; i++)
		cut[i] = !draw(4);
	wish.cut = cuts ? cut : NULL;
	wish.weight = draw(2) ? weight : NULL;
	wish.often = draw(2) ? weight : NULL;
	numbering_init(&n, &g, nodes - 1, &wish);
	uint64_t *increments = numbering_increments(&n, weight);
	list_all(&n, increments);
	for (int i = 0; i < 5; i++)
		walk(&g, &n, increments);
	if (!cyclic && !cuts && !limit)
		assert_int_equal(n.ncut, 0);
	check_recalled(&n, &g);
	free(increments);
	numbering_deinit(&n);
	graph_deinit(&g);
	free(weight);
	free(cut);
}

static void test_acyclic(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++)
		try_graph(3 + draw(12), false, false, 0);
}

static void test_cyclic(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++)
		try_graph(3 + draw(14), true, false, 0);
}

static void test_cut(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++)
		try_graph(3 + draw(20), draw(2), true, 0);
}

static void test_limited(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++)
		try_graph(3 + draw(40), draw(2), draw(2), 60 + draw(200));
}

/* A chain of diamonds has two paths to the power of their number. */
static void make_diamonds(struct graph *g, uint32_t count)
{
	VEC(struct graph_edge) list = {0};
	uint32_t out = 2 * count + 1;

	*vec_add(&list) = (struct graph_edge){out, 0};
	for (uint32_t i = 0; i < count; i++) {
		*vec_add(&list) = (struct graph_edge){2 * i, 2 * i + 1};
		*vec_add(&list) = (struct graph_edge){2 * i, 2 * i + 2};
		*vec_add(&list) = (struct graph_edge){2 * i + 1, 2 * i + 2};
	}
	*vec_add(&list) = (struct graph_edge){2 * count, out};
	graph_init(g, out + 1, list.p, (uint32_t)list.n);
	vec_deinit(&list);
}

static void test_never_wraps(void **state)
{
	struct graph g;
	struct numbering n;
	number_path path = {0};

	(void)state;
	make_diamonds(&g, 62);
	numbering_init(&n, &g, g.nodes - 1, &(struct number_wish){0});
	assert_int_equal(n.total, NUMBER_MOST);
	assert_int_equal(n.ncut, 0);
	numbering_decode(&n, n.total - 1, &path);
	assert_in_range(path.n, 63, 126);
	numbering_deinit(&n);
	graph_deinit(&g);

	make_diamonds(&g, 500);
	numbering_init(&n, &g, g.nodes - 1, &(struct number_wish){0});
	assert_in_range(n.total, 1u << 30, NUMBER_MOST);
	assert_in_range(n.ncut, 7, 30);
	assert_int_equal(n.shortened, n.ncut);
	uint64_t *increments = numbering_increments(&n, NULL);
	for (int i = 0; i < 20; i++)
		walk(&g, &n, increments);
	free(increments);
	numbering_deinit(&n);
	graph_deinit(&g);
	vec_deinit(&path);
}

/* Light edges go first when there are too many paths. */
static void test_cuts_light_edges(void **state)
{
	struct graph g;
	struct numbering n;
	double weight[64] = {0};

	(void)state;
	make_diamonds(&g, 12);
	for (uint32_t i = 0; i < g.edges; i++)
		weight[i] = i % 3 == 1 ? 1 : 100;
	numbering_init(&n, &g, g.nodes - 1, &(struct number_wish){.weight = weight, .limit = 500});
	assert_in_range(n.total, 2, 500);
	assert_true(n.shortened > 0);
	for (uint32_t i = 0; i < g.edges; i++)
		assert_true(!n.cut[i] || weight[i] == 1);
	numbering_deinit(&n);
	graph_deinit(&g);
}

/* The most frequent path has the last number, and the next ones are those that leave it late. */
static void test_frequent_paths_are_last(void **state)
{
	struct graph g;
	struct numbering n;
	double often[64] = {0};
	number_path path = {0};

	(void)state;
	make_diamonds(&g, 12);
	for (uint32_t i = 0; i < g.edges; i++)
		often[i] = i % 3 == 1 ? 100 : 1; /* all go into the blocks between */
	numbering_init(&n, &g, g.nodes - 1, &(struct number_wish){.often = often});
	assert_int_equal(n.total, 4096);
	numbering_decode(&n, n.total - 1, &path);
	assert_int_equal(path.n, 2 + 2 * 12);
	numbering_decode(&n, n.total - 2, &path);
	assert_int_equal(path.n, 1 + 2 * 12);
	assert_int_equal(path.p[path.n - 3], 1 + 3 * 10 + 2); /* from the last diamond but one */
	numbering_decode(&n, 0, &path);
	assert_int_equal(path.n, 2 + 12);
	numbering_deinit(&n);
	graph_deinit(&g);
	vec_deinit(&path);
}

/* The first diamond of the paper's figure 1: a, b, c, d, e, f with six paths. */
static void test_figure_1(void **state)
{
	static const struct graph_edge list[] = {
		{6, 0}, {0, 2}, {0, 1}, {1, 2}, {1, 3}, {2, 3}, {3, 5}, {3, 4}, {4, 5}, {5, 6}};
	struct graph g;
	struct numbering n;

	(void)state;
	graph_init(&g, 7, list, 10);
	numbering_init(&n, &g, 6, &(struct number_wish){0});
	assert_int_equal(n.total, 6);
	assert_int_equal(n.paths[0], 6);
	assert_int_equal(n.paths[1], 4);
	assert_int_equal(n.paths[3], 2);
	uint64_t *increments = numbering_increments(&n, NULL);
	uint32_t added = 0;
	for (uint32_t i = 1; i < 9; i++)
		added += increments[i] != 0;
	assert_true(added <= 3);
	list_all(&n, increments);
	free(increments);
	numbering_deinit(&n);
	graph_deinit(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figure_1),
		cmocka_unit_test(test_acyclic),
		cmocka_unit_test(test_cyclic),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_limited),
		cmocka_unit_test(test_never_wraps),
		cmocka_unit_test(test_cuts_light_edges),
		cmocka_unit_test(test_frequent_paths_are_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
