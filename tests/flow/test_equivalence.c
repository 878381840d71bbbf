#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "flow/equivalence.h"
#include "flow/random_graph.h"

enum { MOST_NODES = 12, MOST_EDGES = 40 };

static int reaches(const struct graph *g, uint32_t a, uint32_t b)
{
	return naive_reaches(g, a, b, GRAPH_NONE, GRAPH_NONE);
}

/* A node from which there is no way out, and a way back to it. */
static int is_stuck(const struct graph *g, uint32_t node, uint32_t exit)
{
	int cyclic = 0;

	if (reaches(g, node, exit))
		return 0;
	for (uint32_t b = 0; b < g->nodes; b++)
		if (reaches(g, node, b) && !reaches(g, b, node))
			return 0;
	graph_each_out (e, g, node)
		cyclic = 1;
	return cyclic;
}

/* The graph of the definition: halves of nodes, edges from ends back to the entry. */
struct definition {
	struct graph g, closed;
	uint32_t entry, exit;
	int reached[MOST_NODES], stuck[MOST_NODES];
};

static uint32_t stuck_first(const struct definition *d, uint32_t node)
{
	for (uint32_t b = 0; b < d->g.nodes; b++)
		if (d->stuck[b] && reaches(&d->g, node, b))
			return b;
	return GRAPH_NONE;
}

static void define(struct definition *d)
{
	struct graph_edge list[MOST_EDGES + 3 * MOST_NODES];
	const struct graph *g = &d->g;
	uint32_t n = 0, start;

	for (uint32_t a = 0; a < g->nodes; a++) {
		d->reached[a] = reaches(g, d->entry, a);
		d->stuck[a] = d->reached[a] && is_stuck(g, a, d->exit);
	}
	for (uint32_t e = 0; e < g->edges; e++) {
		uint32_t from = g->edge[e].from, to = g->edge[e].to;

		list[n++] = (struct graph_edge){3 * from + 1, 3 * to};
		if (d->stuck[to] && !d->stuck[from])
			list[n - 1].to = 3 * stuck_first(d, to) + 2;
		if (!d->reached[from])
			list[n - 1] = (struct graph_edge){3 * from, 3 * from};
	}
	for (uint32_t a = 0; a < g->nodes; a++)
		list[n++] = (struct graph_edge){3 * a, 3 * a + 1};
	start = d->stuck[d->entry] ? 3 * stuck_first(d, d->entry) + 2 : 3 * d->entry;
	for (uint32_t a = 0; a < g->nodes; a++) {
		if (d->stuck[a] && stuck_first(d, a) == a)
			list[n++] = (struct graph_edge){3 * a + 2, start};
		else if (d->reached[a] && (a == d->exit || !graph_out_degree(g, a)))
			list[n++] = (struct graph_edge){3 * a + 1, start};
	}
	graph_init(&d->closed, 3 * g->nodes, list, n);
}

/* Whether some cycle has the edge, but not the other one. */
static int on_cycle(const struct graph *g, uint32_t e, uint32_t without)
{
	return naive_reaches(g, g->edge[e].to, g->edge[e].from, without, GRAPH_NONE);
}

static void check_classes(const struct definition *d, const struct equivalence *q)
{
	uint32_t things = d->g.edges + d->g.nodes, class[MOST_EDGES + MOST_NODES];

	memcpy(class, q->edge, d->g.edges * sizeof *class);
	memcpy(class + d->g.edges, q->node, d->g.nodes * sizeof *class);
	for (uint32_t a = 0; a < things; a++) {
		assert_true(class[a] < q -> n);
		for (uint32_t b = 0; b < a; b++) {
			int same = on_cycle(&d->closed, a, GRAPH_NONE) &&
				   on_cycle(&d->closed, b, GRAPH_NONE) &&
				   !on_cycle(&d->closed, a, b) && !on_cycle(&d->closed, b, a);

			assert_int_equal(class[a] == class[b], same);
		}
	}
}

static void random_definition(struct definition *d, uint64_t *seed, int i)
{
	uint32_t nodes = 1 + random_below(seed, i % 50 ? 7 : MOST_NODES);
	uint32_t edges = random_below(seed, 3 * nodes);

	memset(d, 0, sizeof *d);
	if (i & 1 && nodes > 1)
		random_procedure(&d->g, seed, nodes);
	else
		random_graph(&d->g, seed, nodes, edges);
	d->entry = i & 2 ? 0 : random_below(seed, nodes);
	d->exit = i & 2 ? nodes - 1 : random_below(seed, nodes);
	define(d);
}

static void test_random(void **state)
{
	(void)state;
	uint64_t seed = 7;
	uint32_t shared = 0, stuck = 0;

	for (int i = 0; i < 3000; i++) {
		struct definition d;
		struct equivalence q;

		random_definition(&d, &seed, i);
		equivalence_init(&q, &d.g, d.entry, d.exit);
		check_classes(&d, &q);
		shared += d.g.edges + d.g.nodes - q.n;
		for (uint32_t a = 0; a < d.g.nodes; a++)
			stuck += d.stuck[a];
		equivalence_deinit(&q);
		graph_deinit(&d.closed);
		graph_deinit(&d.g);
	}
	assert_true(shared > 4000); /* the test tests something */
	assert_true(stuck > 200);
}

/* Walks at random until an end; of a part that cannot be left, some of the inside as well. */
static void run(const struct definition *d, uint64_t *seed, uint32_t *counts)
{
	uint32_t node = d->entry, inside = 5 + random_below(seed, 30);

	for (;;) {
		uint32_t outs = graph_out_degree(&d->g, node);

		counts[d->g.edges + node]++;
		if (!outs || (node == d->exit && random_below(seed, 2)) ||
			(d->stuck[node] && !inside--))
			return;
		uint32_t e = d->g.out[d->g.out_first[node] + random_below(seed, outs)];

		counts[e]++;
		node = d->g.edge[e].to;
	}
}

/* The promise itself, counted. */
static void test_runs(void **state)
{
	(void)state;
	uint64_t seed = 8;

	for (int i = 0; i < 2000; i++) {
		uint32_t counts[MOST_EDGES + MOST_NODES] = {0};
		struct definition d;
		struct equivalence q;

		random_definition(&d, &seed, i);
		equivalence_init(&q, &d.g, d.entry, d.exit);
		uint32_t things = d.g.edges + d.g.nodes;

		run(&d, &seed, counts);
		for (uint32_t a = 0; a < things; a++) {
			uint32_t at = a < d.g.edges ? d.g.edge[a].from : a - d.g.edges;
			uint32_t class = a < d.g.edges ? q.edge[a] : q.node[at];

			for (uint32_t b = 0; b < a; b++) {
				if (class != (b < d.g.edges ? q.edge[b] : q.node[b - d.g.edges]))
					continue;
				uint32_t differ = counts[a] > counts[b] ? counts[a] - counts[b]
									: counts[b] - counts[a];

				assert_true(differ <= (uint32_t)d.stuck[at]);
			}
		}
		equivalence_deinit(&q);
		graph_deinit(&d.closed);
		graph_deinit(&d.g);
	}
}

/* A server: start, a loop for ever with a way through in two, and no way out. */
static void test_server(void **state)
{
	(void)state;
	const struct graph_edge list[] = {
		{0, 1}, {1, 2}, {2, 3}, {2, 4}, {3, 5}, {4, 5}, {5, 2}, {6, 7}};
	struct equivalence q;
	struct graph g;

	graph_init(&g, 8, list, 8);
	equivalence_init(&q, &g, 0, 7);
	assert_int_equal(q.edge[0], q.edge[1]);
	assert_int_equal(q.node[0], q.node[1]);
	assert_int_equal(q.node[0], q.edge[1]);
	assert_int_equal(q.node[2], q.node[5]);
	assert_int_equal(q.edge[6], q.node[5]);
	assert_int_equal(q.edge[2], q.node[3]);
	assert_int_equal(q.edge[2], q.edge[4]);
	assert_int_equal(q.edge[3], q.node[4]);
	assert_int_equal(q.n, 4 + 3); /* nobody reaches 6, 7 and their edge */
	equivalence_deinit(&q);
	graph_deinit(&g);
}

static void test_large(void **state)
{
	(void)state;
	enum { N = 100000 };
	uint64_t seed = 9;
	struct equivalence q;
	struct graph g;

	random_procedure(&g, &seed, N);
	equivalence_init(&q, &g, 0, N - 1);
	for (uint32_t n = 0; n < N; n++)
		if (graph_out_degree(&g, n) == 1)
			assert_int_equal(q.node[n], q.edge[g.out[g.out_first[n]]]);
	equivalence_deinit(&q);
	graph_deinit(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_server),
		cmocka_unit_test(test_large),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
