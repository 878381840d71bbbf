#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "flow/random_graph.h"
#include "flow/solver.h"

enum { MOST_NODES = 8, MOST_EDGES = 16, MOST_BRANCHES = 3, GRID = 20 };

static void solve(const struct flow_problem *p, struct flow_solution *s)
{
	struct err e = {0};

	assert_int_equal(solver_solve(p, s, &e), 0);
	assert_true(s->converged);
	assert_true(s->residual < 1e-12);
}

static void close_to(double a, double b, double share)
{
	if (!(fabs(a - b) <= share * fabs(b)))
		fail_msg("%.12g is not %.12g", a, b);
}

/* Flows of a chain from node 0, by Gauss; edges of its columns dominate, so no pivots are needed.
 */
static void naive_flows(const struct graph *g, const double *share, double *node, double *edge)
{
	uint32_t n = g->nodes;
	double *a = xcalloc((size_t)n * n, sizeof *a);

	for (uint32_t i = 0; i < n; i++) {
		a[i * n + i] = 1;
		node[i] = i == 0;
	}
	for (uint32_t e = 0; e < g->edges; e++)
		a[g->edge[e].to * n + g->edge[e].from] -= share[e];
	for (uint32_t c = 0; c < n; c++)
		for (uint32_t i = c + 1; i < n; i++) {
			double f = a[i * n + c] / a[c * n + c];

			for (uint32_t j = c; j < n && f != 0; j++)
				a[i * n + j] -= f * a[c * n + j];
			node[i] -= f * node[c];
		}
	for (uint32_t i = n; i-- > 0;) {
		for (uint32_t j = i + 1; j < n; j++)
			node[i] -= a[i * n + j] * node[j];
		node[i] /= a[i * n + i];
	}
	for (uint32_t e = 0; e < g->edges; e++)
		edge[e] = node[g->edge[e].from] * share[e];
	free(a);
}

/* The likelihood of the header's first lines, without a prior. */
static double naive_likelihood(const struct flow_problem *p, const double *node, const double *edge)
{
	const struct graph *g = p->graph;
	double sum = 0;

	for (uint32_t n = 0; n < g->nodes; n++)
		sum += p->node[n].count * log(node[n]) - p->node[n].exposure * node[n];
	for (uint32_t e = 0; e < g->edges; e++) {
		sum += p->edge[e].count * log(edge[e]) - p->edge[e].exposure * edge[e];
		sum += p->outcome[e] * log(edge[e] / node[g->edge[e].from]);
	}
	return sum;
}

struct small {
	struct graph g;
	struct flow_count node[MOST_NODES], edge[MOST_EDGES];
	double outcome[MOST_EDGES];
	uint32_t branch[MOST_BRANCHES], branches;
	struct flow_problem p;
};

static struct flow_count random_count(uint64_t *seed, uint32_t most)
{
	return (struct flow_count){random_below(seed, most), 0.1 + random_unit(seed)};
}

/* A procedure with few branches, and observations that need not fit together. */
static void small_init(struct small *s, uint64_t *seed, bool outcomes, bool counts)
{
	*s = (struct small){0};
	do {
		graph_deinit(&s->g);
		random_procedure(&s->g, seed, 3 + random_below(seed, MOST_NODES - 2));
		s->branches = 0;
		for (uint32_t n = 0; n < s->g.nodes; n++)
			s->branches += graph_out_degree(&s->g, n) == 2;
	} while (s->branches > MOST_BRANCHES || !s->branches);
	s->branches = 0;
	for (uint32_t n = 0; n < s->g.nodes; n++)
		if (graph_out_degree(&s->g, n) == 2)
			s->branch[s->branches++] = n;
	for (uint32_t n = 0; n < s->g.nodes && counts; n++)
		s->node[n] = random_count(seed, 30);
	for (uint32_t e = 0; e < s->g.edges; e++) {
		if (counts && random_below(seed, 2))
			s->edge[e] = random_count(seed, 20);
		if (outcomes && graph_out_degree(&s->g, s->g.edge[e].from) == 2)
			s->outcome[e] = 1 + random_below(seed, 50);
	}
	s->p = (struct flow_problem){.graph = &s->g,
		.exit = s->g.nodes - 1,
		.node = s->node,
		.edge = s->edge,
		.outcome = s->outcome,
		.prior = 1e-7};
}

/* The likelihood at given branches, at the best scale. */
static double likelihood_at(const struct small *s, const double *taken)
{
	double share[MOST_EDGES], node[MOST_NODES], edge[MOST_EDGES], counts = 0, expected = 0;

	for (uint32_t e = 0; e < s->g.edges; e++)
		share[e] = 1;
	for (uint32_t b = 0; b < s->branches; b++) {
		const uint32_t *out = s->g.out + s->g.out_first[s->branch[b]];

		share[out[0]] = taken[b];
		share[out[1]] = 1 - taken[b];
	}
	naive_flows(&s->g, share, node, edge);
	for (uint32_t n = 0; n < s->g.nodes; n++) {
		counts += s->node[n].count;
		expected += s->node[n].exposure * node[n];
	}
	for (uint32_t e = 0; e < s->g.edges; e++) {
		counts += s->edge[e].count;
		expected += s->edge[e].exposure * edge[e];
	}
	for (uint32_t n = 0; n < s->g.nodes && counts > 0; n++)
		node[n] *= counts / expected;
	for (uint32_t e = 0; e < s->g.edges && counts > 0; e++)
		edge[e] *= counts / expected;
	return naive_likelihood(&s->p, node, edge);
}

/* The best of a grid over all branches at once. */
static double best_of_grid(const struct small *s)
{
	double best = -INFINITY;
	uint32_t points = 1;

	for (uint32_t b = 0; b < s->branches; b++)
		points *= GRID;
	for (uint32_t i = 0; i < points; i++) {
		double taken[MOST_BRANCHES];

		for (uint32_t b = 0, k = i; b < s->branches; b++, k /= GRID)
			taken[b] = (k % GRID + 0.5) / GRID;
		best = fmax(best, likelihood_at(s, taken));
	}
	return best;
}

static void check_against_grid(bool outcomes, bool counts, uint64_t seed, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		struct flow_solution f;
		struct small s;

		small_init(&s, &seed, outcomes, counts);
		solve(&s.p, &f);
		double best = best_of_grid(&s), own = naive_likelihood(&s.p, f.node, f.edge);

		if (own < best - 1e-4)
			fail_msg("round %d: the grid has %.9g, the solver %.9g", i, best, own);
		assert_true(own < best + 5); /* it is the same likelihood */
		solver_free(&f);
		graph_deinit(&s.g);
	}
}

static void test_outcomes_and_counts(void **state)
{
	(void)state;
	check_against_grid(true, true, 21, 100);
}

static void test_counts_alone(void **state)
{
	(void)state;
	check_against_grid(false, true, 22, 100);
}

static void test_outcomes_alone(void **state)
{
	(void)state;
	uint64_t seed = 23;

	for (int i = 0; i < 300; i++) {
		struct flow_solution f;
		struct small s;

		small_init(&s, &seed, true, false);
		solve(&s.p, &f);
		assert_false(f.scaled);
		close_to(f.node[s.g.nodes - 1], 1, 1e-9);
		for (uint32_t b = 0; b < s.branches; b++) {
			const uint32_t *out = s.g.out + s.g.out_first[s.branch[b]];

			close_to(f.edge[out[0]] / f.edge[out[1]],
				s.outcome[out[0]] / s.outcome[out[1]], 1e-6);
		}
		solver_free(&f);
		graph_deinit(&s.g);
	}
}

/* Two loops, one in the other, each left once in 100,000 times. */
static void test_rare_exits(void **state)
{
	(void)state;
	const struct graph_edge list[] = {{0, 1}, {1, 2}, {2, 2}, {2, 3}, {3, 1}, {3, 4}};
	const double outcome[] = {0, 0, 1e7 - 100, 100, 1e7 - 100, 100};
	struct flow_count node[5] = {{100, 1}};
	struct flow_solution f;
	struct graph g;

	graph_init(&g, 5, list, 6);
	struct flow_problem p = {
		.graph = &g, .exit = 4, .node = node, .outcome = outcome, .prior = 1e-9};

	solve(&p, &f);
	close_to(f.node[0], 100, 1e-4);
	close_to(f.node[3], 1e7, 1e-4);
	close_to(f.node[2], 1e12, 1e-4);
	/* Each of three independent counts of 100 has an error of a tenth. */
	close_to(f.node_error[0].absolute, 0.1, 0.01);
	close_to(f.node_error[1].absolute, 0.1 * sqrt(2), 0.01);
	close_to(f.node_error[2].absolute, 0.1 * sqrt(3), 0.01);
	close_to(f.edge_error[2].absolute, 0.1 * sqrt(3), 0.01);
	close_to(f.edge_error[3].absolute, 0.1 * sqrt(2), 0.01);
	/* Nearly all of the total is the inner loop. */
	assert_true(f.node_error[2].relative < 1e-4);
	close_to(f.node_error[3].relative, 0.1, 0.01);
	close_to(f.node_error[0].relative, 0.1 * sqrt(2), 0.01);
	close_to(f.edge_error[5].relative, 0.1 * sqrt(2), 0.01);
	solver_free(&f);
	graph_deinit(&g);
}

/* Counts of a node and of the edges that it divides into add up. */
static void test_errors_of_counts(void **state)
{
	(void)state;
	const struct graph_edge list[] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
	struct flow_count node[4] = {{5000, 1}}, edge[4] = {{2000, 1}, {3000, 1}};
	struct flow_solution f;
	struct graph g;

	graph_init(&g, 4, list, 4);
	struct flow_problem p = {.graph = &g, .exit = 3, .node = node, .edge = edge, .prior = 1e-9};

	solve(&p, &f);
	close_to(f.node[3], 5000, 1e-6);
	close_to(f.edge[2], 2000, 1e-6);
	close_to(f.node_error[3].absolute, sqrt(1 / 10000.), 0.01);
	/* Var x1 when x1 and x2 are observed, and their sum again. */
	double a = 2000, b = 3000, c = 5000, var = a * (b + c) / (a + b + c);

	close_to(f.edge_error[0].absolute, sqrt(var) / a, 0.01);
	close_to(f.edge_error[2].absolute, sqrt(var) / a, 0.01);
	close_to(f.node_error[1].absolute, sqrt(var) / a, 0.01);
	solver_free(&f);
	graph_deinit(&g);
}

static void test_bound(void **state)
{
	(void)state;
	const struct graph_edge list[] = {{0, 1}, {1, 1}, {1, 2}};
	const double outcome[] = {0, 1e6, 0}, bound[] = {INFINITY, 50, INFINITY};
	struct flow_count node[3] = {{100, 10}};
	struct flow_solution f;
	struct graph g;

	graph_init(&g, 3, list, 3);
	struct flow_problem p = {.graph = &g, .exit = 2, .node = node, .outcome = outcome};

	solve(&p, &f);
	assert_true(f.edge[1] > 1e6); /* nothing says how often it turns */
	assert_true(f.edge_error[1].absolute > 10);
	solver_free(&f);
	p.bound = bound;
	solve(&p, &f);
	assert_true(f.edge[1] < 50);
	assert_true(f.edge[1] > 45);
	solver_free(&f);
	graph_deinit(&g);
}

/* An infinite loop, a dead end, what nobody reaches, a wide branch with edges side by side. */
static void test_odd_graphs(void **state)
{
	(void)state;
	const struct graph_edge list[] = {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 4}, {1, 1}, {3, 5},
		{5, 3}, {4, 6}, {7, 6}, {7, 0}};
	const double outcome[] = {10, 20, 30, 15, 25, 5, 1, 99, 0, 7, 7};
	struct flow_count node[8] = {{10, 1}, [5] = {1000, 1}};
	struct flow_solution f;
	struct graph g;

	graph_init(&g, 8, list, 11);
	struct flow_problem p = {
		.graph = &g, .exit = 6, .node = node, .outcome = outcome, .prior = 1e-6};

	solve(&p, &f);
	close_to(f.edge[0] / f.node[0], 0.1, 1e-2);
	close_to(f.edge[1] / f.node[0], 0.2, 1e-2);
	close_to(f.edge[4] / f.edge[3], 25. / 15, 1e-2);
	close_to(f.node[6], f.edge[3] + f.edge[4], 1e-12);
	close_to(f.node[5], 1000, 1e-2);
	close_to(f.edge[7], 1000, 1e-2);
	assert_true(f.node[7] == 0 && f.edge[9] == 0 && f.edge[10] == 0);
	assert_true(isinf(f.node_error[7].absolute) && isinf(f.edge_error[9].relative));
	solver_free(&f);
	graph_deinit(&g);
}

/* Any graph at all, with any observations that need not make sense. */
static void test_anything(void **state)
{
	(void)state;
	uint64_t seed = 26;
	struct err err = {0};
	int astray = 0;

	for (int i = 0; i < 2000; i++) {
		uint32_t nodes = 1 + random_below(&seed, MOST_NODES);
		struct flow_count node[MOST_NODES] = {0}, edge[3 * MOST_NODES] = {0};
		double outcome[3 * MOST_NODES] = {0}, bound[3 * MOST_NODES];
		struct flow_solution f;
		struct graph g;

		random_graph(&g, &seed, nodes, random_below(&seed, 3 * nodes));
		for (uint32_t n = 0; n < nodes; n++)
			if (random_below(&seed, 2))
				node[n] = random_count(&seed, 1 + random_below(&seed, 10000));
		for (uint32_t e = 0; e < g.edges; e++) {
			if (random_below(&seed, 2))
				edge[e] = random_count(&seed, 1 + random_below(&seed, 100));
			if (random_below(&seed, 2))
				outcome[e] = random_below(&seed, 1 + random_below(&seed, 100000));
			bound[e] = random_below(&seed, 5) ? INFINITY : 1000 * random_unit(&seed);
		}
		struct flow_problem p = {.graph = &g,
			.entry = random_below(&seed, nodes),
			.exit = random_below(&seed, nodes),
			.node = random_below(&seed, 4) ? node : NULL,
			.edge = random_below(&seed, 2) ? edge : NULL,
			.outcome = random_below(&seed, 4) ? outcome : NULL,
			.bound = random_below(&seed, 2) ? bound : NULL};

		assert_int_equal(solver_solve(&p, &f, &err), 0);
		assert_true(f.residual < 1e-12);
		astray += !f.converged;
		for (uint32_t e = 0; e < g.edges; e++) {
			assert_true(f.edge[e] >= 0 && f.edge[e] < INFINITY);
			assert_false(isnan(f.edge_error[e].absolute));
			assert_false(isnan(f.edge_error[e].relative));
			if (p.bound && f.scaled)
				assert_true(f.edge[e] <= bound[e]);
		}
		solver_free(&f);
		graph_deinit(&g);
	}
	assert_true(astray <= 10);
}

static void test_refusals(void **state)
{
	(void)state;
	const struct graph_edge list[] = {{0, 1}};
	struct flow_count node[2] = {{1, 0}};
	const double outcome[] = {-1}, nothing[] = {NAN};
	struct flow_solution f;
	struct graph g;
	struct err e = {0};

	graph_init(&g, 2, list, 1);
	struct flow_problem p = {.graph = &g, .exit = 1, .node = node};

	assert_int_equal(solver_solve(&p, &f, &e), -EINVAL);
	p.node = NULL;
	p.outcome = outcome;
	assert_int_equal(solver_solve(&p, &f, &e), -EINVAL);
	p.outcome = nothing;
	assert_int_equal(solver_solve(&p, &f, &e), -EINVAL);
	p.outcome = NULL;
	p.exit = 2;
	assert_int_equal(solver_solve(&p, &f, &e), -EINVAL);
	p.exit = 1;
	assert_int_equal(solver_solve(&p, &f, &e), 0);
	close_to(f.edge[0], 1, 1e-12);
	solver_free(&f);
	graph_deinit(&g);
}

static double random_normal(uint64_t *seed)
{
	return sqrt(-2 * log(random_unit(seed))) * cos(2 * M_PI * random_unit(seed));
}

static double random_poisson(uint64_t *seed, double mean)
{
	double limit = exp(-mean), product = 1;
	int n = 0;

	if (mean > 500)
		return fmax(0, round(mean + sqrt(mean) * random_normal(seed)));
	while ((product *= random_unit(seed)) > limit)
		n++;
	return n;
}

/* How far estimates are off, in their own errors. */
struct tally {
	double squares;
	uint32_t n, within[3]; /* 1, 2, 3 errors */
};

static void tally_add(struct tally *t, double estimate, double truth, double error)
{
	double off = fabs(log(estimate / truth)) / error;

	if (error > 0.2)
		return; /* errors of logarithms mean little beyond */
	t->squares += off * off;
	t->n++;
	for (int i = 0; i < 3; i++)
		t->within[i] += off <= i + 1;
}

/* Procedures of known frequencies, seen through outcomes of branches and counts of blocks. */
static void recover(struct tally *absolute, struct tally *relative, uint64_t *seed, uint32_t blocks)
{
	struct graph g;

	random_procedure(&g, seed, blocks);
	double *share = xcalloc(g.edges, sizeof *share), *edge = xcalloc(g.edges, sizeof *edge);
	double *outcome = xcalloc(g.edges, sizeof *outcome);
	double *flow = xcalloc(g.nodes, sizeof *flow), total = 0, found = 0;
	struct flow_count *node = xcalloc(g.nodes, sizeof *node);
	struct flow_solution f;

	for (uint32_t n = 0; n < g.nodes; n++) {
		double taken = 0.1 + 0.8 * random_unit(seed);

		graph_each_out (e, &g, n)
			share[*e] = graph_out_degree(&g, n) == 1 ? 1
				    : g.edge[*e].to == n + 1     ? fmax(taken, 0.5)
								 : 1 - fmax(taken, 0.5);
	}
	for (uint32_t n = 0; n < g.nodes; n++)
		if (graph_out_degree(&g, n) == 2) { /* parallel edges to the next block */
			const uint32_t *out = g.out + g.out_first[n];

			share[out[1]] = 1 - share[out[0]];
		}
	naive_flows(&g, share, flow, edge);
	for (uint32_t n = 0; n < g.nodes; n++) {
		double seen = random_poisson(seed, 300 * flow[n]);

		if (random_below(seed, 4) == 0) {
			node[n].exposure = 2 + 2 * random_unit(seed);
			node[n].count = random_poisson(seed, node[n].exposure * 50 * flow[n]);
		}
		if (graph_out_degree(&g, n) == 2 && random_below(seed, 10))
			for (; seen > 0; seen--)
				outcome[g.out[g.out_first[n] +
					      (random_unit(seed) >
						      share[g.out[g.out_first[n]]])]]++;
	}
	struct flow_problem p = {
		.graph = &g, .exit = g.nodes - 1, .node = node, .outcome = outcome};

	solve(&p, &f);
	for (uint32_t n = 0; n < g.nodes; n++) {
		total += flow[n];
		found += f.node[n];
	}
	for (uint32_t n = 0; n < g.nodes; n++) {
		tally_add(absolute, f.node[n], 50 * flow[n], f.node_error[n].absolute);
		tally_add(relative, f.node[n] / found, flow[n] / total, f.node_error[n].relative);
	}
	for (uint32_t e = 0; e < g.edges; e++) {
		tally_add(absolute, f.edge[e], 50 * edge[e], f.edge_error[e].absolute);
		tally_add(relative, f.edge[e] / found, edge[e] / total, f.edge_error[e].relative);
	}
	solver_free(&f);
	graph_deinit(&g);
	free(share);
	free(edge);
	free(outcome);
	free(flow);
	free(node);
}

static void check_tally(const struct tally *t)
{
	double rms = sqrt(t->squares / t->n);

	print_message(
		"%u estimates: %.2f errors rms; within 1, 2, 3 errors %.1f%%, %.1f%%, %.1f%%\n",
		t->n, rms, 100. * t->within[0] / t->n, 100. * t->within[1] / t->n,
		100. * t->within[2] / t->n);
	assert_true(t->n > 1000);
	assert_true(rms > 0.85 && rms < 1.15);
	assert_true(t->within[0] > 0.6 * t->n);
	assert_true(t->within[1] > 0.93 * t->n);
	assert_true(t->within[2] > 0.99 * t->n);
}

static void test_recovery(void **state)
{
	(void)state;
	struct tally absolute = {0}, relative = {0};
	uint64_t seed = 24;

	for (int i = 0; i < 60; i++)
		recover(&absolute, &relative, &seed, 10 + random_below(&seed, 60));
	check_tally(&absolute);
	check_tally(&relative);
}

static void test_large(void **state)
{
	(void)state;
	enum { N = 5000 };
	uint64_t seed = 25;
	struct graph g;
	struct flow_solution f;

	random_procedure(&g, &seed, N);
	double *outcome = xcalloc(g.edges, sizeof *outcome);

	for (uint32_t e = 0; e < g.edges; e++)
		outcome[e] = random_below(&seed, 100);
	struct flow_problem p = {.graph = &g, .exit = N - 1, .outcome = outcome};

	solve(&p, &f);
	solver_free(&f);
	graph_deinit(&g);
	free(outcome);
}

/* A search that begins where that of nearly the same problem ended comes to the same end, sooner;
 * one of another graph does no harm. */
static void test_near(void **state)
{
	(void)state;
	enum { N = 200 };
	uint64_t seed = 26;
	struct flow_solution first, again, near;
	struct graph g, other;

	random_procedure(&g, &seed, N);
	random_procedure(&other, &seed, N / 2);
	double *outcome = xcalloc(g.edges + other.edges, sizeof *outcome);
	struct flow_count *node = xcalloc(N, sizeof *node);

	for (uint32_t e = 0; e < g.edges + other.edges; e++)
		outcome[e] = 1 + random_below(&seed, 100);
	for (uint32_t n = 0; n < N; n++)
		node[n] = (struct flow_count){random_below(&seed, 30), 0.1};
	struct flow_problem p = {.graph = &g, .exit = N - 1, .node = node, .outcome = outcome};

	solve(&p, &first);
	for (uint32_t n = 0; n < N; n++)
		node[n].count += n % 2;
	solve(&p, &again);
	p.near = &first.end;
	solve(&p, &near);
	assert_true(near.steps < again.steps);
	for (uint32_t n = 0; n < N; n++)
		close_to(near.node[n], again.node[n], 0.01);
	solver_free(&near);
	p.graph = &other;
	p.exit = N / 2 - 1;
	solve(&p, &near);
	solver_free(&near);
	for (uint32_t i = 0; i < first.end.n; i++)
		first.end.odds[i] = (int)random_below(&seed, 60) - 30;
	p.graph = &g;
	p.exit = N - 1;
	solve(&p, &near);
	close_to(near.likelihood, again.likelihood, 1e-3);
	solver_free(&first);
	solver_free(&again);
	solver_free(&near);
	graph_deinit(&g);
	graph_deinit(&other);
	free(outcome);
	free(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outcomes_alone),
		cmocka_unit_test(test_counts_alone),
		cmocka_unit_test(test_outcomes_and_counts),
		cmocka_unit_test(test_rare_exits),
		cmocka_unit_test(test_errors_of_counts),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_odd_graphs),
		cmocka_unit_test(test_anything),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_recovery),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_near),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
