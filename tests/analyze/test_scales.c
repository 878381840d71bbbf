#include "analyze/scales.h"
#include "base/err.h"
#include "base/mem.h"
#include "flow/assembled.h"
#include "isa/decode.h"
#include "store/excursions.h"

#include <math.h>
#include <stdlib.h>

#include <cmocka.h>

/*
 * A loop that calls `low` 9 times of 10, and `high` the other time; `low` goes round 4 times a
 * call. Each is a procedure of its own. `also` may call `low` as well.
 */
static const char code[] = ".globl top\n.type top, @function\ntop:\n"
			   "1: nop\n je 2f\n call low\n nop\n jmp 3f\n"
			   "2: call high\n nop\n"
			   "3: nop\n jne 1b\n ret\n.size top, .-top\n"
			   ".globl low\n.hidden low\n.type low, @function\nlow:\n"
			   "1: nop\n jne 1b\n ret\n.size low, .-low\n"
			   ".globl high\n.hidden high\n.type high, @function\nhigh:\n"
			   " nop\n ret\n.size high, .-high\n"
			   ".globl also\n.hidden also\n.type also, @function\nalso:\n"
			   "1: call low\n nop\n jne 1b\n ret\n.size also, .-also\n";

enum { TOP, LOW, HIGH, ALSO, PROCEDURES };

struct scene {
	struct selected_image image;
	struct frequencies_row rows[PROCEDURES];
};

static struct scene scene;
static double tempo[PROCEDURES]; /* by row */

static uint32_t number_of(const char *name)
{
	return (uint32_t)(find_procedure(name) - scene.image.procedures.p);
}

static int by_number(const void *a, const void *b)
{
	const struct frequencies_row *x = a, *y = b;

	return x->procedure < y->procedure ? -1 : x->procedure > y->procedure;
}

static struct frequencies_row *row_of(const char *name)
{
	for (size_t i = 0; i < PROCEDURES; i++)
		if (scene.rows[i].procedure == number_of(name))
			return &scene.rows[i];
	return NULL;
}

/* Every block as often as it should run, times a factor that a scale is off by. */
static void add_row(size_t i, const char *name, const double *counts, double entries, double factor)
{
	struct evidence *ev = xcalloc(1, sizeof *ev);
	struct frequency *f = xcalloc(1, sizeof *f);

	ev->image = &scene.image;
	ev->procedure = number_of(name);
	ev->flow = flow_of(name);
	ev->samples = xcalloc(ev->flow->ninsns, sizeof *ev->samples);
	ev->edges = xcalloc(ev->flow->graph.edges, sizeof *ev->edges);
	for (uint32_t n = 0; n < ev->flow->ninsns; n++)
		ev->samples[n] = 10;
	*f = (struct frequency){.flow = ev->flow, .scale_high = INFINITY, .converged = true};
	f->block = xcalloc(ev->flow->nblocks, sizeof *f->block);
	f->edge = xcalloc(ev->flow->graph.edges, sizeof *f->edge);
	for (uint32_t b = 0; b < ev->flow->nblocks; b++) {
		double count = counts[b] * factor;

		f->block[b] = (struct estimate){count, count * 0.95, count * 1.05, CONFIDENCE_HIGH};
	}
	for (uint32_t e = 0; e < ev->flow->graph.edges; e++)
		if (ev->flow->edge_kind[e] == FLOW_EDGE_ENTRY)
			f->edge[e] = (struct estimate){entries * factor, entries * factor * 0.95,
				entries * factor * 1.05, CONFIDENCE_HIGH};
	scene.rows[i] = (struct frequencies_row){ev->procedure, ev, f};
}

static void add_returns(const char *name, const char *to, uint32_t after, uint64_t count)
{
	const struct frequencies_row *row = row_of(name), *caller = row_of(to);
	struct evidence *ev = row->evidence;
	uint32_t insn = 0, calls = 0, at = GRAPH_NONE;

	while (ev->flow->insns[insn].kind != INSN_RETURN)
		insn++;
	for (uint32_t i = 0; i < caller->evidence->flow->ninsns; i++)
		if (caller->evidence->flow->insns[i].kind == INSN_CALL && calls++ == after)
			at = i + 1;
	ev->ways = xcalloc(1, sizeof *ev->ways);
	ev->nways = 1;
	ev->ways[0] = (struct evidence_way){
		.insn = insn, .to = caller->evidence->flow->insns[at].address, .count = count};
}

static int set_up(void **state)
{
	static const double top[] = {1000, 900, 900, 100, 100, 1000, 1}, low[] = {3600, 900},
			    high[] = {100}, also[] = {300, 300, 1};

	for (size_t i = 0; i < PROCEDURES; i++)
		tempo[i] = NAN;
	open_workshop(state);
	assemble(code);
	scene.image.procedures.n =
		image_procedures(built, (const struct procedure **)&scene.image.procedures.p);
	add_row(TOP, "top", top, 1, 1);
	add_row(LOW, "low", low, 900, 0.2);
	add_row(HIGH, "high", high, 100, 7);
	add_row(ALSO, "also", also, 1, 1);
	qsort(scene.rows, PROCEDURES, sizeof *scene.rows, by_number);
	add_returns("low", "top", 0, 900);
	add_returns("high", "top", 1, 100);
	return 0;
}

static int tear_down(void **state)
{
	for (size_t i = 0; i < PROCEDURES; i++) {
		struct evidence *ev = scene.rows[i].evidence;

		frequency_destroy(scene.rows[i].frequency);
		flow_destroy(ev->flow);
		free(ev->samples);
		free(ev->edges);
		free(ev->ways);
		free(ev->passages);
		free(ev);
	}
	forget_built();
	return close_workshop(state);
}

static void know(const char *name)
{
	struct frequency *f = row_of(name)->frequency;

	f->scale = FREQUENCY_KNOWN;
	f->scale_low = 0.9;
	f->scale_high = 1 / 0.9;
}

static void assert_counts(const char *name, double first)
{
	const struct frequency *f = row_of(name)->frequency;

	assert_int_equal(f->scale, FREQUENCY_KNOWN);
	if (fabs(f->block[0].count / first - 1) > 0.02)
		fail_msg("%s: %g is not %g", name, f->block[0].count, first);
	assert_true(f->scale_low < 0.9 && f->scale_high > 1.1 && f->scale_high < 2);
}

static void apply(void)
{
	scales_apply(scene.rows, PROCEDURES, &(struct scales_tempos){tempo, 0.25});
}

static void nobody_knows_anything(void **state)
{
	(void)state;
	apply();
	for (size_t i = 0; i < PROCEDURES; i++)
		assert_int_equal(scene.rows[i].frequency->scale, FREQUENCY_RELATIVE);
	scales_apply(NULL, 0, &(struct scales_tempos){NULL, 0.25});
}

static void callees_learn_from_callers(void **state)
{
	(void)state;
	know("top");
	apply();
	assert_counts("low", 3600);
	assert_counts("high", 100);
	assert_true(row_of("top")->frequency->block[0].count == 1000);
}

/* And through a caller, who is no surer than what told him, its other callees. */
static void callers_learn_from_callees(void **state)
{
	const struct frequency *low, *high;

	(void)state;
	frequency_rescale(row_of("high")->frequency, row_of("high")->evidence, 1.0 / 7, 0.05);
	apply();
	assert_counts("top", 1000);
	low = row_of("low")->frequency;
	high = row_of("high")->frequency;
	assert_true(fabs(low->block[0].count / 3600 - 1) < 0.02);
	assert_true(low->scale == FREQUENCY_RELATIVE || low->scale_high > high->scale_high);
}

/* Too rough to claim, but told. */
static void roughly_told(void **state)
{
	struct frequency *f = row_of("high")->frequency;
	double count = f->block[0].count;

	(void)state;
	assert_true(f->told == 0);
	frequency_rescale(f, row_of("high")->evidence, 2, 0.5);
	assert_int_equal(f->scale, FREQUENCY_RELATIVE);
	assert_true(f->told >= 0.5 && f->told < 1.2);
	assert_true(fabs(f->block[0].count / count - 2) < 1e-9);
}

static void few_calls_say_nothing(void **state)
{
	(void)state;
	know("top");
	row_of("high")->evidence->ways[0].count = 3;
	apply();
	assert_int_equal(row_of("high")->frequency->scale, FREQUENCY_RELATIVE);
	assert_true(row_of("high")->frequency->block[0].count == 700);
	assert_int_equal(row_of("low")->frequency->scale, FREQUENCY_KNOWN);
}

/* One that is called from elsewhere as well, nobody knows how often exactly. */
static void others_may_call(void **state)
{
	struct evidence *ev = row_of("low")->evidence;
	struct evidence_way *ways = xcalloc(2, sizeof *ways);

	(void)state;
	know("top");
	ways[0] = ways[1] = ev->ways[0];
	ways[1].target = 99;
	ways[1].count = 90000;
	free(ev->ways);
	ev->ways = ways;
	ev->nways = 2;
	apply();
	assert_int_equal(row_of("low")->frequency->scale, FREQUENCY_RELATIVE);
}

/* Of two callers the slow one is seen too often: that they add up is what counts. */
static void callers_add_up(void **state)
{
	struct evidence *ev = row_of("low")->evidence;
	struct evidence_way *ways = xcalloc(2, sizeof *ways);

	(void)state;
	know("top");
	know("also");
	ways[0] = ways[1] = ev->ways[0];
	ways[1].to = row_of("also")->evidence->flow->insns[1].address;
	ways[1].count = 2000;
	free(ev->ways);
	ev->ways = ways;
	ev->nways = 2;
	apply();
	assert_counts("low", 3600 * 1200.0 / 900);
}

static void set_tempo(const char *name, double factor)
{
	tempo[row_of(name) - scene.rows] = factor;
	row_of(name)->evidence->total = 1000;
}

static void hear(const char *name, double says, double error)
{
	struct frequency *f = row_of(name)->frequency;

	f->words = xrealloc(f->words, (f->nwords + 1) * sizeof *f->words);
	f->words[f->nwords++] = (struct frequency_word){says, error};
}

/* What counts in a procedure tells the scales of others, be its own blocks known or not. */
static void anchors_tell_who_calls(void **state)
{
	(void)state;
	hear("low", log(5), 0.1);
	apply();
	assert_counts("top", 1000);
	assert_counts("high", 100);
}

/* The more anchors agree, the less one of them can say. */
static void anchors_outvote_one(void **state)
{
	(void)state;
	hear("top", 0.02, 0.2);
	hear("top", -0.02, 0.2);
	hear("top", 0, 0.2);
	hear("top", 0.7, 0.2);
	apply();
	assert_counts("high", 100);
}

/* Tempos are off by themselves and together: three that agree are near, but not sure. */
static void tempos_alone_are_not_sure(void **state)
{
	(void)state;
	set_tempo("top", 1.1);
	set_tempo("low", 4.5);
	set_tempo("high", 1.05 / 7);
	apply();
	assert_true(fabs(log(row_of("low")->frequency->block[0].count / 3600)) < 0.1);
	for (size_t i = 0; i < PROCEDURES; i++)
		assert_true(scene.rows[i].frequency->scale == FREQUENCY_RELATIVE ||
			    scene.rows[i].frequency->scale_high > 1.35);
}

/* An anchor says by how much all tempos of the image are off, also where no call leads. */
static void anchors_correct_tempos(void **state)
{
	(void)state;
	know("top");
	row_of("high")->evidence->ways[0].count = 3;
	set_tempo("top", 0.75);
	set_tempo("high", 0.75 / 7);
	apply();
	assert_true(row_of("top")->frequency->block[0].count == 1000);
	assert_true(row_of("high")->frequency->block[0].count > 80);
	assert_true(row_of("high")->frequency->block[0].count < 100);
}

static void a_scale_that_contradicts_is_taken_back(void **state)
{
	(void)state;
	know("high");
	set_tempo("top", 1);
	set_tempo("low", 5);
	set_tempo("high", 1.0 / 7);
	apply();
	assert_true(fabs(log(row_of("high")->frequency->block[0].count / 100)) < 0.1);
	assert_true(fabs(log(row_of("low")->frequency->block[0].count / 3600)) < 0.1);
}

/* Each of so many excursions came by as often as `by` tells for its half of them. */
enum { EXCURSIONS = 40 };
static void come_by(const char *name, const double *by)
{
	struct evidence *ev = row_of(name)->evidence;
	uint32_t edge = 0;

	while (ev->flow->graph.edge[edge].from != 0)
		edge++;
	ev->passages = xcalloc(EXCURSIONS * EXCURSION_STRETCHES, sizeof *ev->passages);
	for (uint32_t i = 0; i < EXCURSIONS; i++)
		for (uint32_t k = 0; k < EXCURSION_STRETCHES; k++)
			ev->passages[ev->npassages++] = (struct evidence_passage){.excursion = i,
				.stretch = k,
				.block = 0,
				.edge = edge,
				.count = by[(i + (i % 8 < 3 && k > 1)) % 2] * (10 + i % 3),
				.stands = 1,
				.weight = 1};
}

/*
 * Half of the excursions are in code that seems slow. Who is how slow depends on the scales that
 * are looked for, but only on their ratios: what all tempos say together is not contradicted by it.
 */
static void set_halves(double factor)
{
	static const double low[] = {40, 4}, also[] = {1, 30};

	row_of("low")->evidence->nways = 0;
	come_by("low", low);
	come_by("also", also);
	for (uint32_t i = 0; i < row_of("also")->evidence->flow->ninsns; i++)
		row_of("also")->evidence->samples[i] = 400;
	set_tempo("low", factor);
	set_tempo("also", factor);
}

static void excursions_only_compare(void **state)
{
	double low, also;

	set_halves(1);
	apply();
	low = row_of("low")->frequency->block[0].count;
	also = row_of("also")->frequency->block[0].count;
	tear_down(state);
	set_up(state);
	set_halves(6);
	apply();
	assert_true(fabs(row_of("low")->frequency->block[0].count / low - 6) < 0.06);
	assert_true(fabs(row_of("also")->frequency->block[0].count / also - 6) < 0.06);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(nobody_knows_anything),
		TEST(callees_learn_from_callers),
		TEST(callers_learn_from_callees),
		TEST(roughly_told),
		TEST(few_calls_say_nothing),
		TEST(others_may_call),
		TEST(callers_add_up),
		TEST(anchors_tell_who_calls),
		TEST(anchors_outvote_one),
		TEST(tempos_alone_are_not_sure),
		TEST(anchors_correct_tempos),
		TEST(a_scale_that_contradicts_is_taken_back),
		TEST(excursions_only_compare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
