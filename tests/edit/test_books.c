/* Programs that are made up run at random, and end somewhere: what is called exact must be true. */
#include "edit/books.h"

#include "base/mem.h"
#include "edit/chords.h"
#include "edit/exact_map.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FUNCTIONS = 40, STEPS = 3000, BLOCK = 16, SPACING = 0x1000 };

static uint64_t seed = 7;

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % below);
}

struct made {
	struct exact_function f;
	struct graph graph;
	uint64_t *truth, *entered; /* by link, by block */
};

struct program {
	struct made made[FUNCTIONS];
	bool stops; /* some blocks end the process */
	uint32_t steps;
	bool ended;
	struct buf map;
	uint64_t *counters;
	size_t n;
};

/* Functions call those with higher numbers, which lie anywhere. */
static uint32_t place_of(uint32_t function)
{
	return function * 17 % FUNCTIONS;
}

static uint32_t function_at(uint64_t start)
{
	uint32_t function = 0;

	while (place_of(function) != start / SPACING - 1)
		function++;
	return function;
}

static uint64_t start_of(uint32_t function)
{
	return (uint64_t)(place_of(function) + 1) * SPACING;
}

/* ---- making ---- */

static void link_blocks(struct made *m, uint32_t from, uint32_t to, enum exact_link_kind kind)
{
	*vec_add(&m->f.links) = (struct exact_link){.from = from, .to = to, .kind = kind};
}

static void make_block(struct program *p, uint32_t function, uint32_t i, uint32_t n)
{
	struct made *m = &p->made[function];
	struct exact_block *b = vec_add(&m->f.blocks);

	*b = (struct exact_block){
		.start = start_of(function) + i * BLOCK, .size = BLOCK, .last = 5};
	if (i + 1 == n) {
		link_blocks(m, i, n, EXACT_LINK_RETURN);
	} else if (p->stops && !draw(12)) {
		link_blocks(m, i, n, EXACT_LINK_STOP);
	} else if (function + 1 < FUNCTIONS && !draw(3)) {
		b->call = EXACT_CALLS_COUNTED;
		b->callee = start_of(function + 1 + draw(FUNCTIONS - function - 1));
		link_blocks(m, i, i + 1, EXACT_LINK_INSIDE);
	} else {
		b->call = draw(6) ? EXACT_CALLS_NOBODY : EXACT_CALLS_OUTSIDE;
		link_blocks(m, i, i + 1, EXACT_LINK_INSIDE);
		if (!b->call && draw(2))
			link_blocks(m, i, draw(3) ? i + 1 + draw(n - i - 1) : draw(i + 1),
				EXACT_LINK_INSIDE);
	}
}

static void choose(struct made *m)
{
	size_t n = m->f.links.n;
	struct graph_edge *edges = xcalloc(n, sizeof *edges);
	double *weights = xcalloc(n, sizeof *weights);
	bool *loses = xcalloc(exact_outside(&m->f) + 1, sizeof *loses);
	struct chords c;

	for (size_t i = 0; i < n; i++) {
		edges[i] = (struct graph_edge){m->f.links.p[i].from, m->f.links.p[i].to};
		weights[i] = draw(100);
	}
	graph_init(&m->graph, exact_outside(&m->f) + 1, edges, (uint32_t)n);
	for (size_t i = 0; i < m->f.blocks.n; i++)
		loses[i] = m->f.blocks.p[i].call != EXACT_CALLS_NOBODY;
	assert_int_equal(chords_choose(&c, &m->graph, exact_outside(&m->f), weights, loses), 0);
	for (size_t i = 0; i < n; i++)
		m->f.links.p[i].counted = c.counted[i];
	chords_deinit(&c);
	free(loses);
	free(edges);
	free(weights);
}

static void make(struct program *p)
{
	struct exact_map_writer w = {0};
	struct image_id id = {.size = 20};

	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		struct made *m = &p->made[i];
		uint32_t n = 1 + draw(14);

		m->f.start = start_of(i);
		link_blocks(m, n, 0, EXACT_LINK_ENTRY);
		for (uint32_t k = 0; k < n; k++)
			make_block(p, i, k, n);
		choose(m);
		m->truth = xcalloc(m->f.links.n, sizeof *m->truth);
		m->entered = xcalloc(n, sizeof *m->entered);
	}
	for (uint64_t i = 1; i <= FUNCTIONS; i++)
		exact_map_add(&w, &p->made[function_at(i * SPACING)].f);
	p->n = w.counters;
	exact_map_finish(&w, &id, "/bin/made", &p->map);
}

static void destroy(struct program *p)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		exact_function_deinit(&p->made[i].f);
		graph_deinit(&p->made[i].graph);
		free(p->made[i].truth);
		free(p->made[i].entered);
	}
	buf_deinit(&p->map);
	free(p->counters);
}

/* ---- running ---- */

static void run(struct program *p, uint32_t function);

/* Goes along a link; false at the end of the activation. */
static bool step(struct program *p, struct made *m, uint32_t *at)
{
	uint32_t edge =
		m->graph.out[m->graph.out_first[*at] + draw(graph_out_degree(&m->graph, *at))];
	const struct exact_block *b = &m->f.blocks.p[*at];

	m->entered[*at]++;
	if (b->call == EXACT_CALLS_COUNTED)
		run(p, function_at(b->callee));
	if (p->ended)
		return false;
	m->truth[edge]++;
	p->ended = m->f.links.p[edge].kind == EXACT_LINK_STOP || ++p->steps > STEPS;
	*at = m->graph.edge[edge].to;
	return !p->ended && *at != exact_outside(&m->f);
}

static void run(struct program *p, uint32_t function)
{
	struct made *m = &p->made[function];
	uint32_t at = 0;

	m->truth[0]++;
	while (step(p, m, &at))
		;
}

static void observe(struct program *p)
{
	size_t next = 0;

	p->counters = xcalloc(p->n + 1, sizeof *p->counters);
	for (uint64_t i = 1; i <= FUNCTIONS; i++) {
		const struct made *m = &p->made[function_at(i * SPACING)];

		for (size_t k = 0; k < m->f.links.n; k++)
			if (m->f.links.p[k].counted)
				p->counters[next++] = m->truth[k];
	}
	assert_int_equal(next, p->n);
}

static int close_books(const struct program *p, size_t size, size_t counters, exact_rows *rows,
	struct books_summary *sum)
{
	return books_close(&(struct books_source){.map = p->map.p,
				   .size = size,
				   .counters = p->counters,
				   .n = counters,
				   .killed = p->steps > STEPS},
		rows, sum);
}

/* ---- comparing ---- */

static void compare_edge(struct made *m, const struct exact_row *row)
{
	uint64_t truth = 0;

	for (size_t i = 0; i < m->f.links.n; i++) {
		const struct exact_link *l = &m->f.links.p[i];

		if (l->kind == EXACT_LINK_INSIDE &&
			m->f.blocks.p[l->from].start + BLOCK - 5 == row->a &&
			m->f.blocks.p[l->to].start == row->b)
			truth += m->truth[i];
	}
	assert_int_equal(row->count, truth);
}

/* How many were compared. */
static uint32_t compare(struct program *p, const exact_rows *rows)
{
	bool exact = false;
	uint32_t n = 0;

	vec_each (row, rows) {
		struct made *m = &p->made[function_at(row->procedure)];

		if (row->kind == EXACT_PROCEDURE) {
			exact = !row->count;
			n += exact;
		} else if (exact && row->kind == EXACT_BLOCK) {
			assert_int_equal(row->count, m->entered[(row->a - row->procedure) / BLOCK]);
		} else if (exact) {
			compare_edge(m, row);
		}
	}
	return n;
}

static void run_many(bool stops, uint32_t *procedures, uint32_t *exact)
{
	for (int round = 0; round < 300; round++) {
		struct program p = {.stops = stops};
		struct books_summary sum;
		exact_rows rows = {0};
		struct buf packed = {0};

		make(&p);
		for (int i = 0; i < 4 && !p.ended; i++)
			run(&p, 0);
		observe(&p);
		assert_int_equal(close_books(&p, p.map.n, p.n, &rows, &sum), 0);
		assert_int_equal(compare(&p, &rows), sum.exact);
		exact_pack(rows.p, rows.n, &packed);
		assert_int_equal(blob_exact.check(packed.p, packed.n), 0);
		*procedures += sum.procedures;
		*exact += sum.exact;
		buf_deinit(&packed);
		vec_deinit(&rows);
		destroy(&p);
	}
}

/* When the steps are over it is as if it were killed: in the middle of a block, in no call. */
static void what_is_called_exact_is(void **state)
{
	uint32_t procedures = 0, exact = 0;

	(void)state;
	run_many(false, &procedures, &exact);
	assert_true(exact > procedures * 3 / 4);
}

static void the_end_of_the_process_is_placed(void **state)
{
	uint32_t procedures = 0, exact = 0;

	(void)state;
	run_many(true, &procedures, &exact);
	assert_true(exact > procedures * 9 / 10);
}

static void damaged_maps_are_refused(void **state)
{
	struct program p = {0};
	struct books_summary sum;
	exact_rows rows = {0};

	(void)state;
	make(&p);
	run(&p, 0);
	observe(&p);
	assert_int_equal(close_books(&p, p.map.n, p.n - 1, &rows, &sum), -EBADMSG);
	for (size_t cut = 0; cut < p.map.n; cut++) {
		rows.n = 0;
		assert_int_equal(close_books(&p, cut, p.n, &rows, &sum), -EBADMSG);
	}
	vec_deinit(&rows);
	destroy(&p);
}

/* Nobody that it calls can have kept anything, and its entry is counted because that calls. */
static bool calls_only_counted(const struct made *m)
{
	vec_each (b, &m->f.blocks)
		if (b->call == EXACT_CALLS_OUTSIDE)
			return false;
	return m->f.blocks.p[0].call == EXACT_CALLS_COUNTED;
}

static void counts_that_contradict_are_not_exact(void **state)
{
	int checked = 0;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct program p = {0};
		struct books_summary sum;
		exact_rows rows = {0};

		make(&p);
		run(&p, 0);
		observe(&p);
		p.counters[p.made[0].f.first] += 5; /* the entry, lost elsewhere */
		assert_int_equal(close_books(&p, p.map.n, p.n, &rows, &sum), 0);
		if (!p.ended && calls_only_counted(&p.made[0])) {
			assert_int_equal(rows.p[0].count, 5);
			checked++;
		}
		vec_deinit(&rows);
		destroy(&p);
	}
	assert_true(checked > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_called_exact_is),
		cmocka_unit_test(the_end_of_the_process_is_placed),
		cmocka_unit_test(damaged_maps_are_refused),
		cmocka_unit_test(counts_that_contradict_are_not_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
