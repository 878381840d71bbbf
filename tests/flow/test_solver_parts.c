#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "flow/random_graph.h"
#include "flow/solver_internal.h"

enum { MOST = 12 };

/* Inverts by Gauss and Jordan with pivots. */
static void invert(double a[2 * MOST][2 * MOST], double inverse[2 * MOST][2 * MOST], int n)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			inverse[i][j] = i == j;
	for (int c = 0; c < n; c++) {
		int pivot = c;

		for (int i = c; i < n; i++)
			if (fabs(a[i][c]) > fabs(a[pivot][c]))
				pivot = i;
		for (int j = 0; j < n; j++) {
			double t = a[c][j], u = inverse[c][j];

			a[c][j] = a[pivot][j];
			a[pivot][j] = t;
			inverse[c][j] = inverse[pivot][j];
			inverse[pivot][j] = u;
		}
		double by = a[c][c];

		for (int j = 0; j < n; j++) {
			a[c][j] /= by;
			inverse[c][j] /= by;
		}
		for (int i = 0; i < n; i++) {
			double f = a[i][c];

			for (int j = 0; j < n && i != c; j++) {
				a[i][j] -= f * a[c][j];
				inverse[i][j] -= f * inverse[c][j];
			}
		}
	}
}

static void random_pattern(struct pattern *p, struct graph *g, uint64_t *seed)
{
	uint32_t nodes = 2 + random_below(seed, MOST - 2);

	random_graph(g, seed, nodes, random_below(seed, 3 * nodes));
	assert_int_equal(pattern_init(p, nodes, g->edge, g->edges, nodes / 2), 0);
	assert_int_equal(p->place[nodes / 2], nodes - 1);
}

/* Every pair has a slot, and any two rows of a column meet in the column of the first. */
static void check_pattern(const struct pattern *p, const struct graph *g)
{
	for (uint32_t e = 0; e < g->edges; e++) {
		uint32_t a = p->place[g->edge[e].from], b = p->place[g->edge[e].to];

		if (a != b)
			assert_int_equal(p->row[pattern_slot(p, a, b)], a > b ? a : b);
	}
	for (uint32_t c = 0; c < p->n; c++)
		for (uint32_t i = p->first[c]; i < p->first[c + 1]; i++) {
			assert_true(p->row[i] > c);
			for (uint32_t j = i + 1; j < p->first[c + 1]; j++) {
				uint32_t slot = pattern_slot(p, p->row[i], p->row[j]);

				assert_true(p->row[j] > p->row[i]);
				assert_int_equal(p->row[slot], p->row[j]);
			}
		}
}

/* Positive in the first of each block, negative in the second: any order of pivots will do. */
static void fill(struct blocks *b, double dense[2 * MOST][2 * MOST], uint64_t *seed)
{
	const struct pattern *p = b->p;

	for (uint32_t c = 0; c < p->n; c++) {
		double across = random_unit(seed);

		b->diagonal[c] = (struct block){{{4 + random_unit(seed), across}, {across, -5}}};
		for (uint32_t i = p->first[c]; i < p->first[c + 1]; i++)
			for (int k = 0; k < 4; k++)
				b->below[i].a[k / 2][k % 2] = random_unit(seed) - 0.5;
		for (int k = 0; k < 4; k++)
			dense[2 * c + k / 2][2 * c + k % 2] = b->diagonal[c].a[k / 2][k % 2];
		for (uint32_t i = p->first[c]; i < p->first[c + 1]; i++)
			for (int k = 0; k < 4; k++) {
				uint32_t row = 2 * p->row[i] + k / 2, column = 2 * c + k % 2;

				dense[row][column] = dense[column][row] =
					b->below[i].a[k / 2][k % 2];
			}
	}
}

static void check_solve(const struct blocks *b, double inverse[2 * MOST][2 * MOST], uint64_t *seed)
{
	double side[MOST][2], x[MOST][2];
	uint32_t n = b->p->n;

	for (uint32_t i = 0; i < 2 * n; i++)
		side[i / 2][i % 2] = x[i / 2][i % 2] = random_unit(seed);
	blocks_solve(b, x);
	for (uint32_t i = 0; i < 2 * n; i++) {
		double expect = 0;

		for (uint32_t j = 0; j < 2 * n; j++)
			expect += inverse[i][j] * side[j / 2][j % 2];
		assert_true(fabs(x[i / 2][i % 2] - expect) < 1e-10);
	}
}

static void test_blocks(void **state)
{
	(void)state;
	uint64_t seed = 11;

	for (int round = 0; round < 300; round++) {
		double dense[2 * MOST][2 * MOST] = {0}, inverse[2 * MOST][2 * MOST];
		struct pattern p;
		struct blocks b;
		struct graph g;

		random_pattern(&p, &g, &seed);
		check_pattern(&p, &g);
		blocks_init(&b, &p);
		fill(&b, dense, &seed);
		invert(dense, inverse, 2 * p.n);
		blocks_factor(&b);
		check_solve(&b, inverse, &seed);
		blocks_invert(&b);
		for (uint32_t c = 0; c < p.n; c++)
			for (int k = 0; k < 4; k++) {
				double d = b.diagonal[c].a[k / 2][k % 2];

				assert_true(
					fabs(d - inverse[2 * c + k / 2][2 * c + k % 2]) < 1e-10);
				for (uint32_t i = p.first[c]; i < p.first[c + 1]; i++) {
					d = b.below[i].a[k / 2][k % 2] -
					    inverse[2 * p.row[i] + k / 2][2 * c + k % 2];
					assert_true(fabs(d) < 1e-10);
				}
			}
		blocks_deinit(&b);
		pattern_deinit(&p);
		graph_deinit(&g);
	}
}

/* A loop that is left once in 1e12 times, in a loop like it: no digit is lost. */
static void test_chain(void **state)
{
	(void)state;
	const struct graph_edge pair[] = {{0, 1}, {1, 2}, {2, 0}};
	const double rare = 1e-12;
	struct pattern p;

	assert_int_equal(pattern_init(&p, 3, pair, 3, 0), 0);
	double down[4] = {0}, up[4] = {0}, out[3] = {0}, flow[3];
	uint32_t source = p.place[0], a = p.place[1], b = p.place[2];

	/* source -> a -> b, b -> a but rarely out, and a stays at a but rarely (not given). */
	(source < a ? down : up)[pattern_slot(&p, source, a)] = 1;
	(a < b ? down : up)[pattern_slot(&p, a, b)] = rare;
	(b < a ? down : up)[pattern_slot(&p, a, b)] = 1 - rare;
	out[b] = rare;
	chain_solve(&p, down, up, out, flow);
	assert_true(fabs(flow[b] * rare - 1) < 1e-14);
	assert_true(fabs(flow[a] * rare * rare - 1) < 1e-14);
	pattern_deinit(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_chain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
