/*
 * Random walks on random graphs that are cut at seams: paths without a counter are derived, and
 * pieces put together, and both are held against what was walked.
 */
#include "paths/derive.h"

#include "base/mem.h"
#include "paths/graphs.h"
#include "paths/join.h"
#include "paths/seams.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LIMIT 500 /* paths of a graph */
#define STEPS 400 /* of a walk */

struct walk {
	struct graph g;
	uint32_t outside;
	VEC(uint32_t) edges; /* one after the other; begins and ends outside */
	double *often;       /* by edge */
};

/* One way out of each node is taken most of the time. */
static bool walk_init(struct walk *w)
{
	uint32_t at;

	*w = (struct walk){0};
	draw_graph(&w->g, 3 + draw(12), draw(12), true);
	at = w->outside = w->g.nodes - 1;
	w->often = xcalloc(w->g.edges + 1, sizeof *w->often);
	for (int i = 0; i < 4 * STEPS; i++) {
		uint32_t degree = graph_out_degree(&w->g, at), edge;

		if (!degree || (at == w->outside && i > STEPS))
			break;
		edge = w->g.out[w->g.out_first[at] + (draw(8) ? 0 : draw(degree))];
		*vec_add(&w->edges) = edge;
		w->often[edge]++;
		at = w->g.edge[edge].to;
	}
	return at == w->outside && w->edges.n;
}

static void walk_deinit(struct walk *w)
{
	graph_deinit(&w->g);
	vec_deinit(&w->edges);
	free(w->often);
}

static void number_at_seams(const struct walk *w, struct numbering *whole, struct numbering *n)
{
	bool *all = xmalloc(w->g.nodes + w->g.edges + 1), *cut;

	memset(all, true, w->g.nodes + w->g.edges + 1);
	numbering_init(whole, &w->g, w->outside, &(struct number_wish){0});
	cut = xmemdup(whole->cut, w->g.edges + 1);
	seams_cut(whole, &w->g, &(struct seams_wish){w->often, all, all, all, draw(2)}, cut);
	numbering_init(n, &w->g, w->outside, &(struct number_wish){.cut = cut});
	free(cut);
	free(all);
}

/* What is true of all paths; what a machine has that does what the plan says. */
static void run(const struct walk *w, const struct numbering *n, const struct plan *plan,
	uint64_t *truth, uint64_t *counts)
{
	uint64_t sum = 0, variable = 0;

	vec_each (e, &w->edges) {
		const struct plan_step *s = &plan->step[*e];

		sum += n->value[*e];
		if (s->op == PLAN_SET)
			variable = s->by;
		if (s->op == PLAN_ADD)
			variable += s->by;
		if (s->op == PLAN_COUNT || s->op == PLAN_COUNTED)
			counts[s->by + (s->op == PLAN_COUNT ? variable : 0)]++;
		if (!n->cut[*e] && w->g.edge[*e].to != w->outside)
			continue;
		truth[sum]++;
		sum = n->cut[*e] ? n->value[n->begins[*e]] : 0;
		if (n->cut[*e] && plan->step[n->begins[*e]].op == PLAN_SET)
			variable = plan->step[n->begins[*e]].by;
	}
}

/* ---- deriving ---- */

static size_t derive(const struct walk *w, const struct numbering *n, uint64_t *truth)
{
	bool *safe = xmalloc(w->g.nodes + 1);
	uint64_t *counts = xcalloc(n->total + 1, sizeof *counts), off;
	path_derived_list list = {0};
	struct plan plan;
	size_t derived;

	memset(safe, true, w->g.nodes + 1);
	plan_init(&plan, n, w->often, safe);
	derive_choose(n, w->often, safe, &plan, &list);
	run(w, n, &plan, truth, counts);
	assert_int_equal(derive_counts(n, list.p, list.n, counts, &off), 0);
	assert_int_equal(off, 0);
	assert_memory_equal(truth, counts, n->total * sizeof *truth);
	derived = list.n;
	*vec_add(&list) = (struct path_derived){n->total, false};
	assert_int_equal(derive_counts(n, list.p, list.n, counts, &off), -EBADMSG);
	plan_deinit(&plan);
	vec_deinit(&list);
	free(counts);
	free(safe);
	return derived;
}

/* Where calls may not come back nothing is told. */
static void derive_nothing(const struct walk *w, const struct numbering *n)
{
	bool *safe = xcalloc(w->g.nodes + 1, sizeof *safe);
	path_derived_list list = {0};
	struct plan plan;

	plan_init(&plan, n, w->often, NULL);
	derive_choose(n, w->often, safe, &plan, &list);
	assert_int_equal(list.n, 0);
	plan_deinit(&plan);
	vec_deinit(&list);
	free(safe);
}

/* ---- putting together ---- */

/* How often the walk took these edges in turn, where an edge of the dag that begins a path stands
 * for any edge to its node. */
static uint64_t times_walked(
	const struct walk *w, const struct numbering *n, const uint32_t *edges, size_t size)
{
	uint64_t times = 0;

	for (size_t i = 0; i + size <= w->edges.n; i++) {
		size_t k = 0;

		while (k < size && (edges[k] < n->given ? edges[k] == w->edges.p[i + k]
							: n->dag.edge[edges[k]].to ==
								  w->g.edge[w->edges.p[i + k]].to))
			k++;
		times += k == size;
	}
	return times;
}

static size_t join(const struct walk *w, const struct numbering *whole, const struct numbering *n,
	const uint64_t *truth)
{
	uint64_t *visits = xcalloc(w->g.nodes + 1, sizeof *visits);
	struct joining j = {0};
	number_path path = {0};
	size_t joined = 0;

	for (uint64_t i = 0; i < n->total; i++) {
		numbering_decode(n, i, &path);
		if (truth[i])
			join_add(&j, n, &path, truth[i]);
		for (size_t k = 0; k + 1 < path.n; k++)
			visits[n->dag.edge[path.p[k]].to] += truth[i];
	}
	join_all(&j, n, &w->g, whole->cut);
	vec_each (p, &j.pieces) {
		const uint32_t *edges = j.edges.p + p->first;

		for (size_t k = 0; k + 1 < p->n; k++) {
			visits[n->dag.edge[edges[k]].to] -= p->count;
			joined += k && edges[k] >= n->given;
		}
		if (edges[0] >= n->given || !n->cut[edges[0]])
			assert_true(p->count <= times_walked(w, n, edges, p->n));
	}
	for (uint32_t i = 0; i < w->outside; i++)
		assert_int_equal(visits[i], 0);
	free(visits);
	vec_deinit(&path);
	joining_deinit(&j);
	return joined;
}

static void test_walks(void **state)
{
	size_t derived = 0, joined = 0;

	(void)state;
	for (int i = 0; i < 600; i++) {
		struct numbering whole, n;
		struct walk w;

		if (walk_init(&w)) {
			uint64_t *truth;

			number_at_seams(&w, &whole, &n);
			truth = xcalloc((n.total < LIMIT ? n.total : 0) + 1, sizeof *truth);
			if (n.total < LIMIT) {
				derived += derive(&w, &n, truth);
				derive_nothing(&w, &n);
				joined += join(&w, &whole, &n, truth);
			}
			free(truth);
			numbering_deinit(&n);
			numbering_deinit(&whole);
		}
		walk_deinit(&w);
	}
	assert_true(derived > 100 && joined > 100);
}

/* Of 100 that come to where ways meet 95 come by one, and 60 go on by one: 55 do both. */
static void test_definite(void **state)
{
	static const struct graph_edge both[] = {
		{5, 0}, {0, 1}, {0, 2}, {1, 2}, {2, 3}, {2, 4}, {3, 5}, {4, 5}};
	static const bool cut[] = {false, false, true, true, false, false, false, false};
	static const bool around[8] = {false};
	struct joining j = {0};
	struct numbering n;
	number_path path = {0};
	struct graph g;
	uint64_t rest = 0;

	(void)state;
	graph_init(&g, 6, both, 8);
	numbering_init(&n, &g, 5, &(struct number_wish){.cut = cut});
	assert_int_equal(n.total, 4);
	for (uint64_t i = 0; i < n.total; i++) {
		numbering_decode(&n, i, &path);
		join_add(&j, &n, &path,
			path.p[path.n - 1] == 2   ? 95
			: path.p[path.n - 1] == 3 ? 5
			: path.p[path.n - 1] == 6 ? 60
						  : 40);
	}
	join_all(&j, &n, &g, around);
	assert_int_equal(j.pieces.n, 6);
	vec_each (p, &j.pieces) {
		if (p->from == 5 && p->to == 5)
			assert_true(p->count == 55 || p->count == 35);
		else
			rest += p->count;
	}
	assert_int_equal(rest, 5 + 5 + 5 + 5);
	vec_deinit(&path);
	joining_deinit(&j);
	numbering_deinit(&n);
	graph_deinit(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walks),
		cmocka_unit_test(test_definite),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
