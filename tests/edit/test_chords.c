/* Random graphs and random walks on them: counts of the chords must give the counts of all edges.
 */
#include "edit/chords.h"

#include "base/mem.h"
#include "base/vec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed = 1;
static bool every[64]; /* node may lose flow */

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % below);
}

/* Node n - 1 is outside. Everything can be reached, and the outside from everything. */
static void draw_graph(struct graph *g, uint32_t n, uint32_t extra)
{
	VEC(struct graph_edge) list = {0};
	uint32_t out = n - 1;

	*vec_add(&list) = (struct graph_edge){out, 0};
	for (uint32_t i = 1; i < out; i++)
		*vec_add(&list) = (struct graph_edge){draw(i), i};
	for (uint32_t i = 0; i < out; i++)
		if (i + 1 == out || !draw(4))
			*vec_add(&list) = (struct graph_edge){i, out};
		else
			*vec_add(&list) = (struct graph_edge){i, i + 1 + draw(out - i - 1)};
	for (uint32_t i = 0; i < extra; i++)
		*vec_add(&list) = (struct graph_edge){draw(out), draw(out)};
	if (!draw(3))
		*vec_add(&list) = (struct graph_edge){out, draw(out)}; /* a landing pad */
	graph_init(g, n, list.p, (uint32_t)list.n);
	vec_deinit(&list);
}

/* Walks from outside to outside; ends in the middle when it comes to `loses` and luck wants it. */
static void walk(const struct graph *g, uint32_t loses, uint64_t *count, uint64_t *lost)
{
	uint32_t at = g->nodes - 1;

	do {
		uint32_t degree = graph_out_degree(g, at);
		uint32_t edge = g->out[g->out_first[at] + draw(degree)];

		if (at == loses && !draw(3)) {
			lost[at]++;
			return;
		}
		count[edge]++;
		at = g->edge[edge].to;
	} while (at != g->nodes - 1);
}

static void draw_weights(const struct graph *g, double *weight)
{
	for (uint32_t i = 0; i < g->edges; i++)
		weight[i] = draw(1000);
}

struct trial {
	struct graph graph;
	struct chords chords;
	uint64_t *truth, *count, *lost;
	int64_t *balance;
	double *weight;
};

static void begin(struct trial *t, uint32_t nodes)
{
	draw_graph(&t->graph, nodes, draw(nodes));
	t->truth = xcalloc(t->graph.edges, sizeof *t->truth);
	t->count = xcalloc(t->graph.edges, sizeof *t->count);
	t->lost = xcalloc(nodes, sizeof *t->lost);
	t->balance = xcalloc(nodes, sizeof *t->balance);
	t->weight = xcalloc(t->graph.edges, sizeof *t->weight);
	draw_weights(&t->graph, t->weight);
}

static void end(struct trial *t)
{
	chords_deinit(&t->chords);
	graph_deinit(&t->graph);
	free(t->truth);
	free(t->count);
	free(t->lost);
	free(t->balance);
	free(t->weight);
}

/* Only what is counted; the rest is garbage. */
static void observe(struct trial *t)
{
	for (uint32_t i = 0; i < t->graph.edges; i++)
		t->count[i] = t->chords.counted[i] ? t->truth[i] : 0xdead;
}

static void assert_all_known(struct trial *t)
{
	for (uint32_t i = 0; i < t->graph.edges; i++)
		assert_int_equal(t->count[i], t->truth[i]);
}

static int64_t sum(const int64_t *list, uint32_t n)
{
	int64_t all = 0;

	for (uint32_t i = 0; i < n; i++)
		all += list[i];
	return all;
}

static void counts_of_chords_tell_all(void **state)
{
	(void)state;
	for (int round = 0; round < 300; round++) {
		struct trial t = {0};

		begin(&t, 2 + draw(40));
		for (int i = 0; i < 20; i++)
			walk(&t.graph, GRAPH_NONE, t.truth, t.lost);
		assert_int_equal(
			chords_choose(&t.chords, &t.graph, t.graph.nodes - 1, t.weight, every), 0);
		observe(&t);
		assert_true(chords_solve(&t.chords, NULL, t.count));
		assert_all_known(&t);
		chords_balance(&t.chords, t.count, t.balance);
		assert_int_equal(sum(t.balance, t.chords.parts), 0);
		end(&t);
	}
}

static void without_a_check_one_less_is_counted(void **state)
{
	(void)state;
	for (int round = 0; round < 100; round++) {
		struct trial t = {0};
		struct chords all;
		int more = 0;

		begin(&t, 2 + draw(40));
		for (int i = 0; i < 20; i++)
			walk(&t.graph, GRAPH_NONE, t.truth, t.lost);
		assert_int_equal(
			chords_choose(&t.chords, &t.graph, t.graph.nodes - 1, t.weight, NULL), 0);
		assert_int_equal(
			chords_choose(&all, &t.graph, t.graph.nodes - 1, t.weight, every), 0);
		for (uint32_t i = 0; i < t.graph.edges; i++)
			more += all.counted[i] - t.chords.counted[i];
		assert_int_equal(more, all.parts);
		chords_deinit(&all);
		observe(&t);
		assert_true(chords_solve(&t.chords, NULL, t.count));
		assert_all_known(&t);
		end(&t);
	}
}

static void losses_show_and_are_followed(void **state)
{
	bool any = false;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct trial t = {0};
		bool may[64];
		uint32_t loses;

		begin(&t, 3 + draw(40));
		loses = draw(t.graph.nodes - 1);
		for (uint32_t i = 0; i < t.graph.nodes; i++)
			may[i] = i == loses || !draw(4);
		for (int i = 0; i < 20; i++)
			walk(&t.graph, loses, t.truth, t.lost);
		assert_int_equal(
			chords_choose(&t.chords, &t.graph, t.graph.nodes - 1, t.weight, may), 0);
		observe(&t);
		chords_balance(&t.chords, t.count, t.balance);
		assert_int_equal(sum(t.balance, t.chords.parts), t.lost[loses]);
		assert_int_equal(t.balance[t.chords.part[loses]], t.lost[loses]);
		assert_true(chords_solve(&t.chords, t.lost, t.count));
		assert_all_known(&t);
		any |= t.lost[loses] > 0;
		end(&t);
	}
	assert_true(any);
}

static void what_cannot_be_counted_follows(void **state)
{
	int solved = 0;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct trial t = {0};

		begin(&t, 3 + draw(20));
		for (int i = 0; i < 2; i++)
			t.weight[draw(t.graph.edges)] = -1;
		for (int i = 0; i < 20; i++)
			walk(&t.graph, GRAPH_NONE, t.truth, t.lost);
		if (chords_choose(&t.chords, &t.graph, t.graph.nodes - 1, t.weight, every) == 0) {
			for (uint32_t i = 0; i < t.graph.edges; i++)
				assert_false(t.weight[i] < 0 && t.chords.counted[i]);
			observe(&t);
			assert_true(chords_solve(&t.chords, NULL, t.count));
			assert_all_known(&t);
			solved++;
		}
		end(&t);
	}
	assert_true(solved > 150);
}

static void too_much_that_cannot_be_counted_is_refused(void **state)
{
	struct graph_edge list[] = {{2, 0}, {0, 1}, {0, 1}, {1, 2}};
	double weight[] = {1, -1, -1, 1};
	struct graph g;
	struct chords c;

	(void)state;
	graph_init(&g, 3, list, 4);
	assert_int_equal(chords_choose(&c, &g, 2, weight, every), -ENOSPC);
	graph_deinit(&g);
}

/* entry -> head; head -> body -> head; head -> exit: the loop is counted on one light edge. */
static void heavy_edges_are_spared(void **state)
{
	struct graph_edge list[] = {{3, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {2, 3}};
	double weight[] = {1, 50, 40, 60, 1, 1};
	bool expected[] = {true, false, true, true, false, true};
	struct graph g;
	struct chords c;

	(void)state;
	graph_init(&g, 4, list, 6);
	assert_int_equal(chords_choose(&c, &g, 3, weight, every), 0);
	assert_memory_equal(c.counted, expected, sizeof expected);
	chords_deinit(&c);
	graph_deinit(&g);
}

static void a_choice_can_be_recalled(void **state)
{
	struct trial t = {0};
	struct chords again;
	bool *counted;

	(void)state;
	begin(&t, 30);
	assert_int_equal(chords_choose(&t.chords, &t.graph, 29, t.weight, every), 0);
	assert_int_equal(chords_recall(&again, &t.graph, 29, t.chords.counted), 0);
	assert_memory_equal(again.counted, t.chords.counted, t.graph.edges);
	chords_deinit(&again);
	counted = xcalloc(t.graph.edges, sizeof *counted);
	assert_int_equal(chords_recall(&again, &t.graph, 29, counted), -EBADMSG);
	free(counted);
	end(&t);
}

static void contradictions_are_told(void **state)
{
	struct graph_edge list[] = {{2, 0}, {0, 1}, {0, 2}, {1, 2}};
	double weight[] = {1, 1, 1, 1};
	uint64_t count[] = {1, 0, 5, 3};
	struct graph g;
	struct chords c;
	int64_t balance[3];

	(void)state;
	graph_init(&g, 3, list, 4);
	assert_int_equal(chords_choose(&c, &g, 2, weight, every), 0);
	chords_balance(&c, count, balance);
	assert_int_equal(balance[0], -7);
	chords_solve(&c, NULL, count);
	assert_true(count[1] < 1000);
	chords_deinit(&c);
	graph_deinit(&g);
}

/* entry -> test; test -> exit, or -> call -> exit: only the way that calls is counted twice. */
static void ways_that_lose_nothing_are_spared(void **state)
{
	struct graph_edge list[] = {{2, 0}, {0, 2}, {0, 1}, {1, 2}};
	double weight[] = {10, 9, 1, 1};
	bool loses[] = {false, true, false}, expected[] = {false, true, true, true};
	uint64_t count[] = {0, 9, 3, 2};
	int64_t balance[3];
	struct graph g;
	struct chords c;

	(void)state;
	graph_init(&g, 3, list, 4);
	assert_int_equal(chords_choose(&c, &g, 2, weight, loses), 0);
	assert_memory_equal(c.counted, expected, sizeof expected);
	chords_balance(&c, count, balance);
	assert_int_equal(balance[c.part[1]], 1);
	assert_int_equal(balance[c.part[0]], 0);
	assert_true(chords_solve(&c, (uint64_t[]){0, 1, 0}, count));
	assert_int_equal(count[0], 12);
	chords_deinit(&c);
	graph_deinit(&g);
}

int main(void)
{
	memset(every, 1, sizeof every);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_of_chords_tell_all),
		cmocka_unit_test(without_a_check_one_less_is_counted),
		cmocka_unit_test(losses_show_and_are_followed),
		cmocka_unit_test(what_cannot_be_counted_follows),
		cmocka_unit_test(too_much_that_cannot_be_counted_is_refused),
		cmocka_unit_test(heavy_edges_are_spared),
		cmocka_unit_test(ways_that_lose_nothing_are_spared),
		cmocka_unit_test(a_choice_can_be_recalled),
		cmocka_unit_test(contradictions_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
