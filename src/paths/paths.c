#include "paths/paths.h"

#include "base/err.h"
#include "edit/endings.h"
#include "edit/exact_model.h"
#include "edit/guide.h"
#include "edit/runtime.h"
#include "paths/code.h"
#include "paths/refine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE        4096
#define ARRAY_MOST  4096 /* potential paths that have a counter each */
#define ARRAY_LEAST 512  /* the same once there are many arrays: */
#define WORDS_MOST  (8 << 20)
#define PARTS       8 /* places of the variable; each takes memory by instruction */
#define PATHS_MOST  ((uint64_t)1 << 56) /* of one procedure */
#define KEYS_MOST   NUMBER_MOST         /* of all that share the table */

/* Entries of the table, by procedures that share it. */
#define ENTRIES       512
#define ENTRIES_LEAST (1 << 19)
#define ENTRIES_MOST  (1 << 20)

struct paths {
	struct paths_options options;
	struct paths_code code;
	uint64_t bytes; /* of what is counted into */
	uint64_t table, entries;
	uint32_t hashed;  /* procedures that share the table */
	uint64_t untimed; /* that have no place for the clock */
};

struct instrumenting {
	struct paths *paths;
	struct exact_scene scene;
	struct paths_map_writer writer;
	uint64_t keys, words; /* that are given out */
	/* Of one function: */
	struct edit_function *function;
	struct path_function model;
	exact_places places;
	struct graph graph;
	bool refined;         /* weights were counted */
	VEC(double) weights;  /* by link: how often, and what code there costs */
	VEC(double) cuttable; /* the same, negative where no path may end */
	struct numbering numbering;
	uint32_t loops; /* edges that must be cut */
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

/* By what earlier runs counted, if the procedure ran then; else by guesses. */
static void weigh(struct instrumenting *in)
{
	size_t n = in->places.n;

	vec_reserve(&in->weights, n + 1);
	vec_reserve(&in->cuttable, n + 1);
	in->weights.n = in->cuttable.n = n;
	in->refined = in->paths->options.guide &&
		      guide_weights(in->paths->options.guide, &in->model.graph, in->weights.p);
	for (size_t i = 0; i < n; i++) {
		const struct exact_place *place = &in->places.p[i];

		in->weights.p[i] = in->refined ? in->weights.p[i] * place->price : place->weight;
		in->cuttable.p[i] = may_end_on(in, i) ? in->weights.p[i] : -1;
	}
}

static uint64_t array_most(const struct instrumenting *in)
{
	return in->words < WORDS_MOST ? ARRAY_MOST : ARRAY_LEAST;
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

/* Blocks where the variable must have its value: those where the sum is not known, also behind
 * them in a node that their ways out share. */
static bool *held_blocks(const struct instrumenting *in)
{
	const struct exact_function *f = &in->model.graph;
	bool *blocks = xmemdup(in->plan.held, f->blocks.n + 1);

	vec_each (l, &f->links)
		if (l->from < f->blocks.n && l->to >= f->blocks.n && l->to < exact_outside(f))
			blocks[l->from] |= in->plan.held[l->to];
	return blocks;
}

/* Takes the blocks that hang together with one of them out of the set. */
static void take_part(const struct flow *flow, bool *blocks, bool *part, uint32_t *stack)
{
	uint32_t depth = 0, first = 0;

	while (!blocks[first])
		first++;
	memset(part, 0, flow->nblocks);
	stack[depth++] = first;
	blocks[first] = false;
	while (depth) {
		uint32_t node = stack[--depth];

		part[node] = true;
		graph_each_out (e, &flow->graph, node) {
			uint32_t to = flow->graph.edge[*e].to;

			if (to < flow->nblocks && blocks[to]) {
				blocks[to] = false;
				stack[depth++] = to;
			}
		}
		graph_each_in (e, &flow->graph, node) {
			uint32_t from = flow->graph.edge[*e].from;

			if (from < flow->nblocks && blocks[from]) {
				blocks[from] = false;
				stack[depth++] = from;
			}
		}
	}
}

/* Each part has a place for the variable to itself: a loop may have a register where the rest calls
 * others. */
static bool have_variable(struct instrumenting *in)
{
	const struct flow *flow = in->function->flow;
	bool *blocks = held_blocks(in), *part = xcalloc(flow->nblocks + 1, sizeof *part);
	uint32_t *stack = graph_numbers(flow->nblocks, 0);
	const char *why;
	bool had = true;

	for (int i = 1; had && memchr(blocks, true, flow->nblocks); i++) {
		if (i < PARTS) {
			take_part(flow, blocks, part, stack);
		} else {
			memcpy(part, blocks, flow->nblocks);
			memset(blocks, false, flow->nblocks);
		}
		had = edit_variable(in->scene.edit, in->function, 0, part, &why);
	}
	free(blocks);
	free(part);
	free(stack);
	return had;
}

static void choose_how(struct instrumenting *in, bool bare)
{
	struct path_function *m = &in->model;
	uint64_t total = in->numbering.total;

	m->shortened = in->numbering.ncut > in->loops;
	m->how = bare                     ? PATH_HOW_SHORT
		 : total > array_most(in) ? PATH_HOW_HASH
		 : total > 1              ? PATH_HOW_ARRAY
					  : PATH_HOW_ONE;
	m->fixed.n = 0;
}

/* Of three ways to cut, the one that costs least. */
static void refine(struct instrumenting *in)
{
	bool *around = xmemdup(in->numbering.cut, in->graph.edges + 1), *cuts[REFINE_CUTS];
	enum refine_cuts best = REFINE_NONE;
	double least = 0;

	for (enum refine_cuts i = 0; i < REFINE_CUTS; i++) {
		cuts[i] = refine_cut(&in->graph, in->numbering.outside, in->weights.p, around, i);
		for (uint32_t k = 0; k < in->graph.edges; k++)
			cuts[i][k] &= in->cuttable.p[k] >= 0;
		forget(in);
		number(in, cuts[i], array_most(in));
		if (i == REFINE_NONE || in->plan.cost < least) {
			best = i;
			least = in->plan.cost;
		}
	}
	forget(in);
	number(in, cuts[best], array_most(in));
	for (enum refine_cuts i = 0; i < REFINE_CUTS; i++)
		free(cuts[i]);
	free(around);
}

/* All of them, if they fit or must; else with edges cut that seem to be cold. */
static void number_paths(struct instrumenting *in)
{
	uint64_t left = KEYS_MOST - in->keys;

	number(in, NULL, left < 2 * PATHS_MOST ? left / 2 : PATHS_MOST);
	in->loops = in->numbering.ncut - in->numbering.shortened;
	if (in->refined)
		refine(in);
	else if (!in->paths->options.full && in->numbering.total > array_most(in)) {
		forget(in);
		number(in, NULL, array_most(in));
	}
}

static void choose(struct instrumenting *in)
{
	bool bare = false, *cut;

	number_paths(in);
	if (!have_variable(in)) {
		forget(in);
		cut = plan_short(&in->graph, exact_outside(&in->model.graph));
		number(in, cut, 0);
		free(cut);
		bare = true;
	}
	choose_how(in, bare);
}

/* ---- one function: its code ---- */

static void keep(struct instrumenting *in)
{
	struct path_function *m = &in->model;

	for (size_t i = 0; i < m->graph.links.n; i++)
		m->graph.links.p[i].counted = in->numbering.cut[i];
	m->values.n = 0;
	for (uint32_t i = 0; i < in->numbering.dag.edges; i++)
		*vec_add(&m->values) = in->numbering.value[i];
	paths_map_add(&in->writer, m);
	in->paths->hashed += m->how == PATH_HOW_HASH;
}

/* Words of an array, or keys. */
static void give_out(struct instrumenting *in)
{
	uint64_t words = in->numbering.total * paths_code_stride(&in->paths->code), at;

	if (in->model.how == PATH_HOW_HASH) {
		in->model.first = in->keys;
		in->keys += in->numbering.total;
		return;
	}
	in->words += words;
	at = edit_data(in->scene.edit, words * RT_COUNTER, RT_COUNTER);
	in->model.first = (at - in->paths->code.words) / RT_COUNTER;
}

/* Whether there is a place for the clock, everywhere: wherever it is entered, a path begins. */
static bool have_clock(struct instrumenting *in)
{
	const struct flow *flow = in->function->flow;
	bool *all, had;
	const char *why;

	if (!in->paths->options.metric)
		return false;
	all = xmalloc(flow->nblocks + 1);
	memset(all, true, flow->nblocks + 1);
	had = edit_variable(in->scene.edit, in->function, 1, all, &why);
	in->paths->untimed += !had;
	free(all);
	return had;
}

static void take_function(struct instrumenting *in, struct edit_function *f)
{
	in->function = f;
	exact_model(&in->scene, f, &in->model.graph, &in->places);
	put_entry_first(in);
	path_graph(&in->model.graph, &in->graph);
	weigh(in);
	choose(in);
	give_out(in);
	paths_code_insert(&in->paths->code, &(struct paths_body){.function = f,
						    .model = &in->model,
						    .places = &in->places,
						    .numbering = &in->numbering,
						    .plan = &in->plan,
						    .timed = have_clock(in)});
	keep(in);
	forget(in);
	graph_deinit(&in->graph);
}

/* ---- all of them ---- */

static void fill_header(const struct paths *p, struct rt_header *h)
{
	h->counters = p->code.words;
	h->size = p->bytes;
	h->table = p->table;
	h->table_entries = p->entries;
	h->table_atomic = p->options.atomic;
	strcpy(h->path, p->options.counts);
}

static void make_table(struct paths *p, struct edit *edit)
{
	if (!p->hashed)
		return;
	p->entries = ENTRIES_LEAST;
	while (p->entries < ENTRIES_MOST && p->entries < ENTRIES * (uint64_t)p->hashed)
		p->entries *= 2;
	p->table = edit_data(edit, (RT_TABLE_FIRST + 2 * p->entries) * RT_COUNTER, 64);
}

static void instrument(struct paths *p, struct edit *edit, struct buf *map)
{
	struct instrumenting in = {.paths = p, .scene.edit = edit};
	struct image *im = edit_image(edit);
	_cleanup_free_ char *path = realpath(image_path(im), NULL);
	struct path_layout layout;

	p->code.edit = edit;
	p->code.words = edit_data(edit, 0, PAGE);
	in.scene.n = edit_functions(edit, &in.scene.functions);
	in.scene.never = endings_find(in.scene.functions, in.scene.n);
	for (size_t i = 0; i < in.scene.n; i++)
		if (in.scene.functions[i]->chosen && !in.scene.functions[i]->refused)
			take_function(&in, in.scene.functions[i]);
	make_table(p, edit);
	p->bytes = edit_data(edit, 0, PAGE) - p->code.words;
	layout = (struct path_layout){.words = p->bytes / RT_COUNTER,
		.stride = paths_code_stride(&p->code),
		.untimed = p->untimed,
		.entries = p->entries};
	layout.hash = p->table ? (p->table - p->code.words) / RT_COUNTER : layout.words;
	paths_map_finish(&in.writer, &layout, image_id(im), path ? path : image_path(im), map);
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

	if (o->counts[0] != '/' || strlen(o->counts) >= RT_PATH)
		return err_set(e, -EINVAL, "%s: counts need a file with an absolute, shorter path",
			o->counts);
	if (o->metric && (o->full || strcmp(o->metric, "tsc")))
		return err_set(e, -EINVAL,
			"%s: only tsc can be measured on paths, and not with "
			"tables of whole ones",
			o->metric);
	p = xcalloc(1, sizeof *p);
	p->options = *o;
	p->options.counts = xstrdup(o->counts);
	p->code.atomic = o->atomic;
	p->code.metric = o->metric;
	instrument(p, edit, map);
	fill_header(p, runtime_header(edit));
	edit_describe(edit, "paths", (uint64_t[]){p->code.words, p->bytes}, 2 * sizeof(uint64_t));
	*out = p;
	return 0;
}

void paths_destroy(struct paths *p)
{
	if (!p)
		return;
	paths_code_deinit(&p->code);
	free((char *)p->options.counts);
	free(p);
}

uint64_t paths_bytes(const struct paths *p)
{
	return p->bytes;
}
