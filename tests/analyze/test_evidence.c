#include "analyze/evidence_internal.h"
#include "analyze/scene.h"

#include <errno.h>
#include <math.h>

static void select_demo(struct scene *sc, const struct selection_options *o)
{
	struct selected_image *images;
	size_t n;

	assert_int_equal(store_open(sc->path, STORE_READ, &sc->s, &sc->e), 0);
	assert_int_equal(selection_create(sc->s, o, &sc->sel, &sc->e), 0);
	n = selection_images(sc->sel, &images);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(images[i].path, "/opt/demo/bin/demo"))
			sc->demo = &images[i];
	assert_non_null(sc->demo);
}

static uint64_t samples_at(const struct evidence *ev, const uint64_t *samples, uint64_t address)
{
	return samples[evidence_insn_at(ev->flow, address, NULL)];
}

static uint64_t edge_between(const struct evidence *ev, uint64_t from, uint64_t to)
{
	const struct flow *f = ev->flow;
	uint32_t block = flow_block_at(f, from);

	graph_each_out (it, &f->graph, block) {
		uint32_t n = f->graph.edge[*it].to;

		if (to ? n < f->nblocks && f->blocks[n].start == to : n == f->exit_node)
			return ev->edges[*it];
	}
	return UINT64_MAX;
}

static void puts_samples_onto_the_flow(void **state)
{
	struct scene *sc = *state;
	struct evidence *ev;

	select_demo(sc, &(struct selection_options){0});
	assert_int_equal(evidence_create(sc->sel, sc->demo, 0, &sc->ev, &sc->e), 0);
	ev = sc->ev;
	assert_int_equal(ev->code_size, 0x50);
	assert_int_equal(ev->total, 700);
	assert_true(ev->timed && ev->clock);
	assert_int_equal(samples_at(ev, ev->samples, 0x401000), 50);
	assert_int_equal(samples_at(ev, ev->samples, 0x401004), 600);
	assert_int_equal(samples_at(ev, ev->samples, 0x402000), 50);
	assert_int_equal(ev->nevents, 2);
	assert_ptr_equal(ev->events[0], ev->samples);
	assert_int_equal(samples_at(ev, ev->events[1], 0x401004), 10);
	/* Lost and throttled samples are time as well: 8 of 1,100. */
	assert_true(fabs(ev->period - 1e6 * (1 + 8. / 1100)) < 1);
}

/* Returns count as the edge to the exit, and are kept by where they went. */
static void puts_edges_onto_the_flow(void **state)
{
	struct scene *sc = *state;
	const struct evidence *ev;
	uint32_t ret;

	select_demo(sc, &(struct selection_options){0});
	assert_int_equal(evidence_create(sc->sel, sc->demo, 0, &sc->ev, &sc->e), 0);
	ev = sc->ev;
	assert_int_equal(edge_between(ev, 0x40100b, 0x401004), 505);
	assert_int_equal(edge_between(ev, 0x40100b, 0x40100d), 50);
	assert_int_equal(edge_between(ev, 0x40100e, 0), 50);
	ret = evidence_insn_at(ev->flow, 0x40100e, NULL);
	assert_int_equal(ev->nways, 3);
	assert_int_equal(ev->ways[0].insn, ret);
	assert_int_equal(ev->ways[0].to, 0x401110);
	assert_int_equal(ev->ways[0].count, 10);
	assert_int_equal(ev->ways[1].target, 99);
	assert_int_equal(ev->ways[1].to, 0x700);
	assert_int_equal(ev->ways[1].count, 40);
	/* From the fragment, where the code has no branch. */
	assert_int_equal(ev->ways[2].count, 3);
	assert_int_equal(ev->nanchors, 0);
}

static void needs_code(void **state)
{
	struct scene *sc = *state;

	select_demo(sc, &(struct selection_options){0});
	assert_int_equal(evidence_create(sc->sel, sc->demo, 2, &sc->ev, &sc->e), -ENOENT);
	assert_non_null(strstr(sc->e.text, "twin"));
	assert_null(strchr(sc->e.text, '\n'));
}

static void lists_procedures_by_time(void **state)
{
	struct scene *sc = *state;
	const struct evidence_procedure *list;
	struct evidence_source *source;

	select_demo(sc, &(struct selection_options){0});
	assert_int_equal(evidence_source_create(sc->sel, sc->demo, &source, &sc->e), 0);
	assert_int_equal(evidence_source_procedures(source, &list), 4);
	assert_int_equal(list[0].procedure, 0);
	assert_int_equal(list[0].samples, 700);
	assert_int_equal(list[1].procedure, 1);
	assert_int_equal(list[1].samples, 200);
	assert_int_equal(list[3].samples, 40);
	assert_int_equal(evidence_take(source, 0, &sc->ev, &sc->e), 0);
	evidence_source_destroy(source);
	assert_int_equal(sc->ev->total, 700);
}

/*
 * Of 100 samples in a callee, three quarters are of its call in `first`, which returned there three
 * times of four; what that callee calls counts too.
 */
static void shares_out_the_time_of_callees(void **state)
{
	static const struct range ranges[] = {
		{0x100, 0x40}, {0x200, 0x40}, {0x300, 0x40}, {0x400, 0x40}};
	static const struct edge edges[] = {{0x310, 0, 0x110, 30}, {0x310, 0, 0x210, 10},
		{0x310, 0, 0x318, 99}, {0x320, 0, 0x400, 7}, {0x420, 0, 0x330, 5},
		{0x310, 8, 0x110, 9}};
	struct procedure list[4];
	struct selected_image im = {.procedures = {list, 4, NULL}};
	struct evidence_source s = {.image = &im};

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		list[i] = (struct procedure){ranges[i].start, &ranges[i], 1, PROCEDURE_SYMBOL, "p"};
	code_map_init(&im.map, list, 4);
	for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
		*vec_add(&s.edges) = (struct placed_edge){edges[i].from < 0x400 ? 2 : 3, edges[i]};
	*vec_add(&s.procedures) = (struct evidence_procedure){2, 100};
	*vec_add(&s.procedures) = (struct evidence_procedure){3, 20};
	evidence_find_calls(&s);
	assert_int_equal(s.calls.n, 3);
	assert_int_equal(s.calls.p[0].procedure, 0);
	assert_int_equal(s.calls.p[0].address, 0x110);
	assert_true(fabs(s.calls.p[0].samples - 90) < 1e-6);
	assert_true(fabs(s.calls.p[1].samples - 30) < 1e-6);
	assert_int_equal(s.calls.p[2].procedure, 2);
	assert_true(fabs(s.calls.p[2].samples - 20) < 1e-6);
	code_map_deinit(&im.map);
	vec_deinit(&s.edges);
	vec_deinit(&s.procedures);
	vec_deinit(&s.calls);
}

static void without_a_clock(void **state)
{
	static const char *const faults[] = {"page-faults"};
	struct scene *sc = *state;

	select_demo(sc, &(struct selection_options){.events = faults, .nevents = 1});
	assert_int_equal(evidence_create(sc->sel, sc->demo, 0, &sc->ev, &sc->e), 0);
	assert_false(sc->ev->timed);
	assert_int_equal(sc->ev->total, 0);
	assert_int_equal(samples_at(sc->ev, sc->ev->samples, 0x401004), 0);
	assert_int_equal(samples_at(sc->ev, sc->ev->events[0], 0x401004), 10);
	assert_int_equal(edge_between(sc->ev, 0x40100b, 0x401004), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			puts_samples_onto_the_flow, scene_set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(
			puts_edges_onto_the_flow, scene_set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(needs_code, scene_set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(
			lists_procedures_by_time, scene_set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(without_a_clock, scene_set_up, scene_tear_down),
		cmocka_unit_test(shares_out_the_time_of_callees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
