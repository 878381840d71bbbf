#include "analyze/even.h"
#include "analyze/walk_scene.h"
#include "base/mem.h"
#include "flow/assembled.h"

#include <math.h>

/*
 * A loop that goes one way for a long time, then the other, equally often. When it goes the second
 * way one of its instructions takes ten times as long as else.
 */
static const char code[] = ".globl f\n.type f, @function\nf:\n"
			   "1: nop\n nop\n nop\n nop\n nop\n nop\n nop\n nop\n je 2f\n"
			   " nop\n jmp 3f\n"
			   "2: nop\n nop\n"
			   "3: nop\n jne 1b\n"
			   " ret\n.size f, .-f\n";

enum { HEAD, FAST, SLOW, TAIL, LAST, BLOCKS };
enum { HEAD_INSNS = 9, STALLED = 3, USUAL = 40, STALL = 10, STEPS = 8, WALKS_AT_MOST = 20000 };

struct scene {
	struct walk_scene walks;
	struct selected_image image;
	struct frequencies_row row;
	struct walk_step steps[2][STEPS];
	struct walk list[WALKS_AT_MOST];
	size_t n;
};

static struct scene scene;

static uint64_t end_of(const struct flow *f, uint32_t block)
{
	return f->insns[f->blocks[block].first + f->blocks[block].count - 1].address;
}

/* What a burst sees that begins in the head of the loop. */
static void prepare_steps(const struct flow *f)
{
	for (int slow = 0; slow < 2; slow++)
		for (int i = 0; i < STEPS; i += 2) {
			scene.steps[slow][i] = (struct walk_step){
				end_of(f, HEAD), 0, f->blocks[slow ? SLOW : FAST].start};
			scene.steps[slow][i + 1] =
				(struct walk_step){end_of(f, TAIL), 0, f->blocks[HEAD].start};
		}
}

/* As many samples as it takes time, each with a burst. */
static void sample(uint32_t insn, bool slow, unsigned samples)
{
	struct evidence *ev = scene.row.evidence;
	const struct flow *f = ev->flow;

	ev->samples[insn] += samples;
	ev->total += samples;
	for (unsigned i = 0; i < samples; i++) {
		scene.list[scene.n++] = (struct walk){.start = f->insns[insn].address,
			.weight = 1,
			.instructions = 40 + scene.n % 8, /* so that they stay apart */
			.nsteps = STEPS,
			.steps = scene.steps[slow]};
		graph_each_out (e, &f->graph, HEAD)
			ev->edges[*e] +=
				f->graph.edge[*e].to == (slow ? SLOW : FAST) ? STEPS / 2 : 0;
	}
}

static void add_row(void)
{
	static const double counts[BLOCKS] = {1000, 500, 500, 1000, 1};
	struct evidence *ev = xcalloc(1, sizeof *ev);
	struct frequency *f = xcalloc(1, sizeof *f);

	ev->flow = flow_of("f");
	assert_int_equal(ev->flow->nblocks, BLOCKS);
	ev->samples = xcalloc(ev->flow->ninsns, sizeof *ev->samples);
	ev->edges = xcalloc(ev->flow->graph.edges, sizeof *ev->edges);
	*f = (struct frequency){.flow = ev->flow};
	f->block = xcalloc(BLOCKS, sizeof *f->block);
	for (uint32_t b = 0; b < BLOCKS; b++)
		f->block[b].count = counts[b];
	scene.row = (struct frequencies_row){.evidence = ev, .frequency = f};
}

static int set_up(void **state)
{
	open_workshop(state);
	assemble(code);
	scene = (struct scene){0};
	add_row();
	prepare_steps(scene.row.evidence->flow);
	return 0;
}

static int tear_down(void **state)
{
	struct evidence *ev = scene.row.evidence;

	walk_scene_close(&scene.walks);
	flow_destroy(ev->flow);
	free(ev->samples);
	free(ev->edges);
	free(ev->outcomes);
	free(ev);
	frequency_destroy(scene.row.frequency);
	forget_built();
	return close_workshop(state);
}

static void weigh(void)
{
	struct err e = {0};
	bool changed;

	walk_scene_open(&scene.walks, scene.list, scene.n);
	scene.image = *scene.walks.image;
	scene.image.procedures.n =
		image_procedures(built, (const struct procedure **)&scene.image.procedures.p);
	scene.row.procedure = (uint32_t)(find_procedure("f") - scene.image.procedures.p);
	if (even_outcomes(scene.walks.sel, &scene.image, &scene.row, 1, &changed, &e))
		fail_msg("%s", e.text);
	assert_int_equal(changed, scene.row.evidence->outcomes != NULL);
}

/* The share of the head's outcomes that go the slow way. */
static double slow_share(bool weighted)
{
	const struct evidence *ev = scene.row.evidence;
	double slow = 0, all = 0;

	graph_each_out (e, &ev->flow->graph, HEAD) {
		double n = weighted ? ev->outcomes[*e] : (double)ev->edges[*e];

		all += n;
		slow += ev->flow->graph.edge[*e].to == SLOW ? n : 0;
	}
	return slow / all;
}

static void slow_turns_count_no_more_than_fast_ones(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < HEAD_INSNS; i++) {
		sample(i, false, USUAL);
		sample(i, true, i == STALLED ? STALL * USUAL : USUAL);
	}
	weigh();
	assert_true(slow_share(false) > 0.65);
	assert_true(fabs(slow_share(true) - 0.5) < 0.07);
}

/* Of the end of the loop only one instruction shows, and rarely: its bursts stand for the others.
 */
static void blocks_that_hardly_show_have_their_share(void **state)
{
	const struct flow *f = scene.row.evidence->flow;

	(void)state;
	for (uint32_t i = 0; i < HEAD_INSNS; i++)
		sample(i, false, USUAL);
	sample(f->blocks[TAIL].first, true, USUAL / 4);
	weigh();
	assert_true(slow_share(false) < 0.03);
	assert_true(slow_share(true) > 0.08 && slow_share(true) < 0.2);
}

/* Where everything takes the same time nothing changes. */
static void even_time_changes_nothing(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < HEAD_INSNS; i++) {
		sample(i, false, 3 * USUAL);
		sample(i, true, USUAL);
	}
	weigh();
	assert_null(scene.row.evidence->outcomes);
}

/* Few samples say little about the time that instructions take. */
static void few_samples_weigh_little(void **state)
{
	double before;

	(void)state;
	for (uint32_t i = 0; i < HEAD_INSNS; i++)
		sample(i, i == STALLED, i == STALLED ? 12 : 3);
	before = (double)4 / (HEAD_INSNS + 3);
	weigh();
	assert_true(slow_share(true) > 0.85 * before && slow_share(true) < before + 0.001);
}

static void without_walks_there_are_no_outcomes(void **state)
{
	(void)state;
	weigh();
	assert_null(scene.row.evidence->outcomes);
}

#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(slow_turns_count_no_more_than_fast_ones),
		test(blocks_that_hardly_show_have_their_share),
		test(even_time_changes_nothing),
		test(few_samples_weigh_little),
		test(without_walks_there_are_no_outcomes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
