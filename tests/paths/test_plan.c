/* Random walks on random graphs, by a machine that does only what the plan says. */
#include "paths/plan.h"

#include "base/mem.h"
#include "paths/graphs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct machine {
	const struct numbering *n;
	const struct plan *plan;
	uint64_t variable;
	uint64_t *count; /* by edge of the dag */
	number_path path;
};

static void end_path(struct machine *m, uint64_t number)
{
	assert_true(number < m->n->total);
	numbering_decode(m->n, number, &m->path);
	vec_each (e, &m->path)
		m->count[*e]++;
}

static void do_step(struct machine *m, uint32_t edge)
{
	const struct plan_step *s = &m->plan->step[edge];

	switch (s->op) {
	case PLAN_NOTHING:
		return;
	case PLAN_SET:
		m->variable = s->by;
		return;
	case PLAN_ADD:
		m->variable += s->by;
		return;
	case PLAN_COUNT:
		end_path(m, m->variable + s->by);
		break;
	case PLAN_COUNTED:
		end_path(m, s->by);
		break;
	}
	m->variable = 0xdeadbeef; /* nobody may rely on it */
}

static void walk(const struct graph *g, struct machine *m)
{
	uint64_t *truth = xcalloc(g->edges + 1, sizeof *truth);
	uint32_t at = m->n->outside;

	m->count = xcalloc(m->n->dag.edges + 1, sizeof *m->count);
	m->variable = 0xdeadbeef;
	for (int steps = 0; steps < 300 || at != m->n->outside; steps++) {
		uint32_t degree = graph_out_degree(g, at), edge;

		if (!degree || steps > 5000)
			break;
		edge = g->out[g->out_first[at] + draw(degree)];
		truth[edge]++;
		do_step(m, edge);
		if (m->n->cut[edge])
			do_step(m, m->n->begins[edge]);
		at = g->edge[edge].to;
		if (at != m->n->outside && !m->plan->held[at])
			m->variable = 0xdeadbeef;
	}
	if (at == m->n->outside)
		assert_memory_equal(truth, m->count, g->edges * sizeof *truth);
	free(truth);
	free(m->count);
}

/* Twice: counting where paths end, and at some places also where they are decided. */
static void try_graph(const struct graph *g, const struct number_wish *wish, const double *weight)
{
	bool *early = xcalloc(g->nodes + 1, sizeof *early);
	struct numbering n;
	struct plan plan;
	struct machine m = {.n = &n, .plan = &plan};

	numbering_init(&n, g, g->nodes - 1, wish);
	for (uint32_t i = 0; i < g->nodes; i++)
		early[i] = draw(5);
	for (int i = 0; i < 8; i++) {
		plan_init(&plan, &n, weight, i & 1 ? early : NULL);
		walk(g, &m);
		plan_deinit(&plan);
	}
	vec_deinit(&m.path);
	numbering_deinit(&n);
	free(early);
}

static void test_walks(void **state)
{
	(void)state;
	for (int i = 0; i < 400; i++) {
		struct graph g;
		double *weight;

		draw_graph(&g, 3 + draw(30), draw(40), true);
		weight = xcalloc(g.edges + 1, sizeof *weight);
		draw_weights(&g, weight);
		try_graph(&g, &(struct number_wish){.limit = draw(2) ? 0 : 100},
			draw(3) ? weight : NULL);
		free(weight);
		graph_deinit(&g);
	}
}

/* Without a variable every edge can still be counted. */
static void test_short(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		struct numbering n;
		struct plan plan;
		struct graph g;
		bool *cut;

		draw_graph(&g, 3 + draw(30), draw(40), true);
		cut = plan_short(&g, g.nodes - 1);
		numbering_init(&n, &g, g.nodes - 1, &(struct number_wish){.cut = cut});
		plan_init(&plan, &n, NULL, NULL);
		assert_false(plan.variable);
		plan_deinit(&plan);
		numbering_deinit(&n);
		try_graph(&g, &(struct number_wish){.cut = cut}, NULL);
		free(cut);
		graph_deinit(&g);
	}
}

static void test_one_path_needs_no_variable(void **state)
{
	static const struct graph_edge line[] = {{3, 0}, {0, 1}, {1, 2}, {2, 3}};
	struct graph g;
	struct numbering n;
	struct plan plan;

	(void)state;
	graph_init(&g, 4, line, 4);
	numbering_init(&n, &g, 3, &(struct number_wish){0});
	plan_init(&plan, &n, NULL, NULL);
	assert_false(plan.variable);
	assert_int_equal(n.total, 1);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(plan.step[i].op, PLAN_NOTHING);
	assert_int_equal(plan.step[3].op, PLAN_COUNTED);
	plan_deinit(&plan);
	numbering_deinit(&n);
	graph_deinit(&g);
}

/* Of two ways that meet again each is counted at once. */
static void test_decided_paths_need_no_variable(void **state)
{
	static const struct graph_edge both[] = {{4, 0}, {0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}};
	static const bool early[] = {false, true, true, true, false};
	struct graph g;
	struct numbering n;
	struct plan plan;

	(void)state;
	graph_init(&g, 5, both, 6);
	numbering_init(&n, &g, 4, &(struct number_wish){0});
	plan_init(&plan, &n, NULL, NULL);
	assert_true(plan.variable);
	plan_deinit(&plan);
	plan_init(&plan, &n, NULL, early);
	assert_false(plan.variable);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(plan.step[i].op, i == 1 || i == 2 ? PLAN_COUNTED : PLAN_NOTHING);
	plan_deinit(&plan);
	numbering_deinit(&n);
	graph_deinit(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_path_needs_no_variable),
		cmocka_unit_test(test_decided_paths_need_no_variable),
		cmocka_unit_test(test_walks),
		cmocka_unit_test(test_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
