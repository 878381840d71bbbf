#include "analyze/counted_internal.h"

#include "analyze/frequency.h"
#include "base/err.h"
#include "base/mem.h"
#include "flow/assembled.h"

#include <math.h>
#include <stdlib.h>

#include <cmocka.h>

/* A loop that is left after 10 turns, and takes its branch 3 times of 10. */
static const char code[] = ".globl f\n.type f, @function\nf:\n"
			   " nop\n"
			   "1: nop\n je 2f\n nop\n"
			   "2: nop\n jne 1b\n"
			   " nop\n ret\n.size f, .-f\n";

enum { FIRST, HEAD, SKIPPED, TAIL, LAST, BLOCKS };
static const double truth[BLOCKS] = {100, 1000, 700, 1000, 100};

struct scene {
	struct selected_image image;
	struct evidence ev;
	struct counted c;
};

static struct scene scene;

static void add(enum exact_kind kind, uint64_t a, uint64_t b, double count)
{
	const struct exact_row key = {.procedure = find_procedure("f")->start, kind, a, b, 0};

	*vec_add(&scene.c.rows) = (struct counted_row){.key = key, .count = count};
}

static uint64_t end_of(uint32_t block)
{
	const struct flow *f = scene.ev.flow;

	return f->insns[f->blocks[block].first + f->blocks[block].count - 1].address;
}

static void add_edge(uint32_t from, uint32_t to, double count)
{
	add(EXACT_EDGE, end_of(from), scene.ev.flow->blocks[to].start, count);
}

/* As an edited copy tells it: edges that stay inside, in the order of their addresses. */
static void count_truly(void)
{
	const struct flow *f = scene.ev.flow;

	add(EXACT_PROCEDURE, 0, 0, 0);
	for (uint32_t b = 0; b < BLOCKS; b++)
		add(EXACT_BLOCK, f->blocks[b].start, f->blocks[b].size, truth[b]);
	add_edge(FIRST, HEAD, 100);
	add_edge(HEAD, SKIPPED, 700);
	add_edge(HEAD, TAIL, 300);
	add_edge(SKIPPED, TAIL, 700);
	add_edge(TAIL, HEAD, 900);
	add_edge(TAIL, LAST, 100);
}

static int set_up(void **state)
{
	struct evidence *ev = &scene.ev;

	open_workshop(state);
	assemble(code);
	scene = (struct scene){0};
	scene.image.procedures.n =
		image_procedures(built, (const struct procedure **)&scene.image.procedures.p);
	ev->image = &scene.image;
	ev->procedure = (uint32_t)(find_procedure("f") - scene.image.procedures.p);
	ev->flow = flow_of("f");
	assert_int_equal(ev->flow->nblocks, BLOCKS);
	ev->samples = xcalloc(ev->flow->ninsns, sizeof *ev->samples);
	for (uint32_t i = 0; i < ev->flow->ninsns; i++)
		ev->total += ev->samples[i] = 10;
	ev->edges = xcalloc(ev->flow->graph.edges, sizeof *ev->edges);
	ev->period = 1e6;
	ev->timed = ev->clock = true;
	count_truly();
	return 0;
}

static int tear_down(void **state)
{
	evidence_counts_destroy(scene.ev.counts);
	flow_destroy(scene.ev.flow);
	free(scene.ev.samples);
	free(scene.ev.edges);
	vec_deinit(&scene.c.rows);
	forget_built();
	return close_workshop(state);
}

static struct frequency *estimate(void)
{
	struct frequency *f;
	struct err e = {0};

	if (frequency_create(&scene.ev, &f, &e))
		fail_msg("%s", e.text);
	return f;
}

static void tied_counts_are_the_frequencies(void **state)
{
	const struct graph *g = &scene.ev.flow->graph;
	struct frequency *f;

	(void)state;
	scene.c.tied = true;
	counted_place(&scene.c, &scene.ev);
	assert_non_null(scene.ev.counts);
	f = estimate();
	assert_int_equal(f->scale, FREQUENCY_EXACT);
	for (uint32_t b = 0; b < BLOCKS; b++) {
		double in = 0, out = 0;

		assert_true(f->block[b].count == truth[b]);
		assert_true(f->block[b].low == truth[b] && f->block[b].high == truth[b]);
		assert_int_equal(f->block[b].confidence, CONFIDENCE_EXACT);
		graph_each_in (e, g, b)
			in += f->edge[*e].count;
		graph_each_out (e, g, b)
			out += f->edge[*e].count;
		assert_true(in == truth[b] && out == truth[b]); /* also by entry and exit */
	}
	frequency_destroy(f);
}

static void books_that_do_not_balance_are_doubted(void **state)
{
	struct frequency *f;

	(void)state;
	scene.c.tied = true;
	scene.c.rows.p[0].count = 100; /* of the procedure: how far it is off */
	counted_place(&scene.c, &scene.ev);
	f = estimate();
	assert_int_equal(f->scale, FREQUENCY_RELATIVE); /* half of the samples: 100 of 100 */
	assert_int_equal(f->block[FIRST].confidence, CONFIDENCE_LOW);
	assert_int_equal(f->block[HEAD].confidence, CONFIDENCE_MEDIUM);
	frequency_destroy(f);
	evidence_counts_destroy(scene.ev.counts);
	scene.c.rows.p[0].count = 2;
	counted_place(&scene.c, &scene.ev);
	f = estimate();
	assert_int_equal(f->scale, FREQUENCY_KNOWN);
	assert_true(f->scale_low < 1 && f->scale_high > 1 && f->scale_high < 1.02);
	frequency_destroy(f);
}

/* Other runs tell how often blocks ran relative to each other, whatever the samples say. */
static void other_runs_tell_shares(void **state)
{
	struct frequency *f;

	(void)state;
	counted_place(&scene.c, &scene.ev);
	f = estimate();
	assert_int_equal(f->scale, FREQUENCY_RELATIVE);
	for (uint32_t b = 0; b < BLOCKS; b++)
		assert_true(fabs(f->block[b].count / f->block[HEAD].count * 1000 / truth[b] - 1) <
			    0.02);
	assert_int_equal(f->block[SKIPPED].confidence, CONFIDENCE_HIGH);
	frequency_destroy(f);
}

/* Bursts that saw the loop go on once only are of another job. */
static void other_jobs_are_not_believed(void **state)
{
	const struct graph *g = &scene.ev.flow->graph;

	(void)state;
	graph_each_out (e, g, TAIL)
		scene.ev.edges[*e] = g->edge[*e].to == LAST ? 4500 : 5500;
	counted_place(&scene.c, &scene.ev);
	assert_null(scene.ev.counts);
	graph_each_out (e, g, TAIL)
		scene.ev.edges[*e] = g->edge[*e].to == LAST ? 600 : 4400;
	counted_place(&scene.c, &scene.ev);
	assert_non_null(scene.ev.counts);
}

static void counts_that_do_not_fit_are_left(void **state)
{
	(void)state;
	scene.c.tied = true;
	scene.c.rows.p[1].key.b = 0; /* the first block covers nothing */
	counted_place(&scene.c, &scene.ev);
	assert_null(scene.ev.counts);
	scene.c.rows.n = 0;
	counted_place(&scene.c, &scene.ev);
	assert_null(scene.ev.counts);
}

#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(tied_counts_are_the_frequencies),
		test(books_that_do_not_balance_are_doubted),
		test(other_runs_tell_shares),
		test(other_jobs_are_not_believed),
		test(counts_that_do_not_fit_are_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
