#include "paths/paths.h"

#include "base/err.h"
#include "edit/endings.h"
#include "edit/exact_model.h"
#include "edit/snippet.h"
#include "paths/path_map.h"
#include "paths/plan.h"
#include "rt/rt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE       4096
#define ARRAY_MOST 4096 /* potential paths that have a counter each */

static const uint8_t blob[] = {
#include "rt/blob.h"
};

enum text {
	TEXT_SET,
	TEXT_ADD,
	TEXT_COUNT,
	TEXT_COUNT_SET,
	TEXT_COUNTED,
	TEXT_COUNTED_SET,
	TEXTS,
};

static const char *const texts[2][TEXTS] = {
	{"v0 = a0", "v0 += a0", "[a0 + v0*8] += 1", "[a0 + v0*8] += 1; v0 = a1", "[a0] += 1",
		"[a0] += 1; v0 = a1"},
	{"v0 = a0", "v0 += a0", "atomic [a0 + v0*8] += 1", "atomic [a0 + v0*8] += 1; v0 = a1",
		"atomic [a0] += 1", "atomic [a0] += 1; v0 = a1"},
};

struct paths {
	struct paths_options options;
	struct snippet *snippets[TEXTS];
	uint64_t words, bytes; /* where counters begin, how much there is */
	struct paths_summary summary;
};

struct instrumenting {
	struct paths *paths;
	struct exact_scene scene;
	struct path_map_writer writer;
	/* Of one function: */
	struct edit_function *function;
	struct path_function model;
	exact_places places;
	struct graph graph;
	VEC(double) weights;  /* by link: how often, and what code there costs */
	VEC(double) cuttable; /* the same, negative where no path may end */
	struct numbering numbering;
	struct plan plan;
};

/* ---- one function: its paths ---- */

/* Walks begin with the first link: loops are then entered as the procedure is. */
static void put_entry_first(struct instrumenting *in)
{
	struct exact_function *f = &in->model.graph;

	for (size_t i = 1; i < f->links.n; i++) {
		if (f->links.p[i].kind != EXACT_LINK_ENTRY)
			continue;
		struct exact_link link = f->links.p[i];
		struct exact_place place = in->places.p[i];

		f->links.p[i] = f->links.p[0];
		in->places.p[i] = in->places.p[0];
		f->links.p[0] = link;
		in->places.p[0] = place;
	}
}

/* Code for a block's ways out may stand at its start: a path that ends there would lack the block.
 */
static bool may_end_on(const struct instrumenting *in, size_t link)
{
	const struct exact_place *p = &in->places.p[link];
	const struct flow *flow = in->function->flow;
	uint32_t from = in->model.graph.links.p[link].from;

	if (p->how != EXACT_BEFORE || from >= flow->nblocks)
		return p->how != EXACT_NOWHERE;
	return p->where == flow->blocks[from].first + flow->blocks[from].count - 1;
}

static void weigh(struct instrumenting *in)
{
	in->weights.n = in->cuttable.n = 0;
	for (size_t i = 0; i < in->places.n; i++) {
		double weight = in->places.p[i].weight;

		*vec_add(&in->weights) = weight;
		*vec_add(&in->cuttable) = may_end_on(in, i) ? weight : -1;
	}
}

static void number(struct instrumenting *in, const bool *cut, uint64_t limit)
{
	struct number_wish wish = {.cut = cut, .weight = in->cuttable.p, .limit = limit};

	numbering_init(&in->numbering, &in->graph, exact_outside(&in->model.graph), &wish);
	plan_init(&in->plan, &in->numbering, in->weights.p);
}

static void forget(struct instrumenting *in)
{
	plan_deinit(&in->plan);
	numbering_deinit(&in->numbering);
}

/* The variable must have its value where the sum is not known: also in blocks that jump through a
 * node of that kind. */
static bool have_variable(struct instrumenting *in)
{
	const struct exact_function *f = &in->model.graph;
	bool *blocks = xmemdup(in->plan.held, f->blocks.n + 1), had;
	const char *why;

	if (!in->plan.variable) {
		free(blocks);
		return true;
	}
	vec_each (l, &f->links)
		if (l->from < f->blocks.n && l->to >= f->blocks.n && l->to < exact_outside(f))
			blocks[l->from] |= in->plan.held[l->to];
	had = edit_variable(in->scene.edit, in->function, 0, blocks, &why);
	free(blocks);
	return had;
}

static void choose(struct instrumenting *in)
{
	struct path_function *m = &in->model;
	bool *cut;

	m->bare = false;
	number(in, NULL, ARRAY_MOST);
	if (!have_variable(in)) {
		forget(in);
		cut = plan_short(&in->graph, exact_outside(&m->graph));
		number(in, cut, 0);
		free(cut);
		m->bare = true;
	}
	m->shortened = in->numbering.shortened;
	m->how = in->numbering.total > 1 ? PATH_HOW_ARRAY : PATH_HOW_ONE;
}

/* ---- one function: its code ---- */

static void insert(
	struct instrumenting *in, const struct exact_place *at, enum text text, const uint64_t *a)
{
	const struct snippet *s = in->paths->snippets[text];
	struct edit *e = in->scene.edit;

	if (at->how == EXACT_AT_ENTRY)
		edit_at_entry(e, in->function, s, a);
	else if (at->how == EXACT_ON_EDGE)
		edit_on_edge(e, in->function, at->where, s, a);
	else if (at->how == EXACT_BEFORE)
		edit_before(e, in->function, at->where, s, a);
}

static void insert_on_link(struct instrumenting *in, uint32_t link)
{
	const struct numbering *n = &in->numbering;
	const struct exact_place *at = &in->places.p[link];
	struct plan_step end = in->plan.step[link], begin = {PLAN_NOTHING, 0};
	uint64_t counter = in->paths->words + (in->model.first + end.by) * RT_COUNTER;
	bool sets;

	if (n->cut[link])
		begin = in->plan.step[n->begins[link]];
	sets = begin.op == PLAN_SET;
	switch (end.op) {
	case PLAN_NOTHING:
		break;
	case PLAN_SET:
		insert(in, at, TEXT_SET, &end.by);
		break;
	case PLAN_ADD:
		insert(in, at, TEXT_ADD, &end.by);
		break;
	case PLAN_COUNT:
		insert(in, at, sets ? TEXT_COUNT_SET : TEXT_COUNT, (uint64_t[]){counter, begin.by});
		break;
	case PLAN_COUNTED:
		insert(in, at, sets ? TEXT_COUNTED_SET : TEXT_COUNTED,
			(uint64_t[]){counter, begin.by});
		break;
	}
}

static void sum_up(struct instrumenting *in)
{
	struct paths_summary *s = &in->paths->summary;

	s->one += in->model.how == PATH_HOW_ONE;
	s->array += in->model.how == PATH_HOW_ARRAY;
	s->hashed += in->model.how == PATH_HOW_HASH;
	s->variables += in->plan.variable;
	s->shortened += in->model.shortened;
	s->bare += in->model.bare;
}

static void keep(struct instrumenting *in)
{
	struct path_function *m = &in->model;

	for (size_t i = 0; i < m->graph.links.n; i++)
		m->graph.links.p[i].counted = in->numbering.cut[i];
	m->values.n = 0;
	for (uint32_t i = 0; i < in->numbering.dag.edges; i++)
		*vec_add(&m->values) = in->numbering.value[i];
	path_map_add(&in->writer, m);
	sum_up(in);
}

static void take_function(struct instrumenting *in, struct edit_function *f)
{
	uint64_t at;

	in->function = f;
	exact_model(&in->scene, f, &in->model.graph, &in->places);
	put_entry_first(in);
	path_graph(&in->model.graph, &in->graph);
	weigh(in);
	choose(in);
	at = edit_data(in->scene.edit, in->numbering.total * RT_COUNTER, RT_COUNTER);
	in->model.first = (at - in->paths->words) / RT_COUNTER;
	for (uint32_t i = 0; i < in->model.graph.links.n; i++)
		insert_on_link(in, i);
	keep(in);
	forget(in);
	graph_deinit(&in->graph);
}

/* ---- all of them ---- */

static void fill_header(void *arg, uint8_t *copy, uint64_t address, uint64_t then)
{
	const struct paths *p = arg;
	struct rt_header *h = (struct rt_header *)copy;

	h->address = address;
	h->next = then;
	h->counters = p->words;
	h->size = p->bytes;
	strcpy(h->path, p->options.counts);
}

static void instrument(struct paths *p, struct edit *edit, struct buf *map)
{
	struct instrumenting in = {.paths = p, .scene.edit = edit};
	struct image *im = edit_image(edit);
	_cleanup_free_ char *path = realpath(image_path(im), NULL);
	struct path_layout layout;

	p->words = edit_data(edit, 0, PAGE);
	in.scene.n = edit_functions(edit, &in.scene.functions);
	in.scene.never = endings_find(in.scene.functions, in.scene.n);
	for (size_t i = 0; i < in.scene.n; i++)
		if (in.scene.functions[i]->chosen && !in.scene.functions[i]->refused)
			take_function(&in, in.scene.functions[i]);
	p->bytes = edit_data(edit, 0, PAGE) - p->words;
	layout = (struct path_layout){.words = p->bytes / RT_COUNTER};
	layout.hash = layout.words;
	path_map_finish(&in.writer, &layout, image_id(im), path ? path : image_path(im), map);
	free(in.scene.never);
	path_function_deinit(&in.model);
	vec_deinit(&in.places);
	vec_deinit(&in.weights);
	vec_deinit(&in.cuttable);
}

int paths_create(struct edit *edit, const struct paths_options *o, struct paths **out,
	struct buf *map, struct err *e)
{
	struct paths *p;
	int rc = 0;

	if (o->counts[0] != '/' || strlen(o->counts) >= RT_PATH)
		return err_set(e, -EINVAL, "%s: counts need a file with an absolute, shorter path",
			o->counts);
	p = xcalloc(1, sizeof *p);
	p->options = *o;
	p->options.counts = xstrdup(o->counts);
	for (int i = 0; i < TEXTS && !rc; i++)
		rc = snippet_create(texts[o->atomic][i], &p->snippets[i], e);
	if (rc) {
		paths_destroy(p);
		return rc;
	}
	instrument(p, edit, map);
	edit_runtime(edit, blob, sizeof blob, RT_START, fill_header, p);
	edit_describe(edit, "paths", (uint64_t[]){p->words, p->bytes}, 2 * sizeof(uint64_t));
	*out = p;
	return 0;
}

void paths_destroy(struct paths *p)
{
	if (!p)
		return;
	for (int i = 0; i < TEXTS; i++)
		snippet_destroy(p->snippets[i]);
	free((char *)p->options.counts);
	free(p);
}

uint64_t paths_bytes(const struct paths *p)
{
	return p->bytes;
}

const struct paths_summary *paths_summary(const struct paths *p)
{
	return &p->summary;
}
