#include "paths/paths.h"

#include "base/err.h"
#include "edit/endings.h"
#include "edit/exact_model.h"
#include "edit/runtime.h"
#include "edit/snippet.h"
#include "paths/map.h"
#include "paths/plan.h"
#include "paths/refine.h"
#include "rt/routines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE        4096
#define ARRAY_MOST  4096 /* potential paths that have a counter each */
#define ARRAY_LEAST 512  /* the same once there are many arrays: */
#define WORDS_MOST  (8 << 20)
#define PATHS_MOST  ((uint64_t)1 << 56) /* of one procedure */
#define KEYS_MOST   NUMBER_MOST         /* of all that share the table */

/* Entries of the table, by procedures that share it. */
#define ENTRIES       512
#define ENTRIES_LEAST (1 << 16)
#define ENTRIES_MOST  (1 << 20)

/* The variable is where the counter of an array is, or a key of the table. */
enum text {
	TEXT_POINT,
	TEXT_SET,
	TEXT_ADD,
	TEXT_COUNT,
	TEXT_COUNT_POINT,
	TEXT_COUNTED,
	TEXT_COUNTED_POINT,
	TEXT_COUNTED_SET,
	TEXT_HASH,
	TEXT_HASH_SET,
	TEXTS,
};

#define HASH "t0 = v0; t0 += a0; call a1(t0)"
#define COUNTING(lock)                                                                             \
	"v0 = &[a0]", "v0 = a0", "v0 += a0", lock "[v0 + a0] += 1",                                \
		lock "[v0 + a0] += 1; v0 = &[a1]", lock "[a0] += 1", lock "[a0] += 1; v0 = &[a1]", \
		lock "[a0] += 1; v0 = a1", HASH, HASH "; v0 = a2"

static const char *const texts[2][TEXTS] = {{COUNTING("")}, {COUNTING("atomic ")}};

struct paths {
	struct paths_options options;
	struct snippet *snippets[TEXTS];
	uint64_t words, bytes; /* where counters begin, how much there is */
	uint64_t table, entries;
	struct paths_summary summary;
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
		      refine_weights(in->paths->options.guide, &in->model.graph, in->weights.p);
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

	while (had && memchr(blocks, true, flow->nblocks)) {
		take_part(flow, blocks, part, stack);
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

static uint64_t new_word(struct instrumenting *in)
{
	return (edit_data(in->scene.edit, RT_COUNTER, RT_COUNTER) - in->paths->words) / RT_COUNTER;
}

static uint64_t counter_at(const struct instrumenting *in, uint64_t word)
{
	return in->paths->words + word * RT_COUNTER;
}

/* What the variable becomes when the sum is so much. */
static uint64_t as_variable(const struct instrumenting *in, uint64_t sum)
{
	return in->model.how == PATH_HOW_HASH ? sum : counter_at(in, in->model.first + sum);
}

/* A path ends whose number is the variable's and so much more. */
static void insert_count(struct instrumenting *in, const struct exact_place *at, uint64_t by,
	const struct plan_step *begin)
{
	bool sets = begin->op == PLAN_SET;

	if (in->model.how == PATH_HOW_HASH)
		insert(in, at, sets ? TEXT_HASH_SET : TEXT_HASH,
			(uint64_t[]){in->model.first + by, RT_CALL_PATH, begin->by});
	else
		insert(in, at, sets ? TEXT_COUNT_POINT : TEXT_COUNT,
			(uint64_t[]){by * RT_COUNTER, as_variable(in, begin->by)});
}

/* A path ends that is known: it needs no table. */
static void insert_counted(struct instrumenting *in, const struct exact_place *at, uint64_t number,
	const struct plan_step *begin)
{
	uint64_t word = in->model.first + number;
	enum text text = TEXT_COUNTED;

	if (in->model.how == PATH_HOW_HASH) {
		word = new_word(in);
		*vec_add(&in->model.fixed) = (struct path_fixed){number, word};
	}
	if (begin->op == PLAN_SET)
		text = in->model.how == PATH_HOW_HASH ? TEXT_COUNTED_SET : TEXT_COUNTED_POINT;
	insert(in, at, text, (uint64_t[]){counter_at(in, word), as_variable(in, begin->by)});
}

/* Between a path's ends. */
static void insert_step(
	struct instrumenting *in, const struct exact_place *at, const struct plan_step *step)
{
	bool hashed = in->model.how == PATH_HOW_HASH;
	uint64_t by = step->by * (hashed ? 1 : RT_COUNTER), becomes = as_variable(in, step->by);

	if (step->op == PLAN_SET)
		insert(in, at, hashed ? TEXT_SET : TEXT_POINT, &becomes);
	else
		insert(in, at, TEXT_ADD, &by);
}

static void insert_on_link(struct instrumenting *in, uint32_t link)
{
	const struct numbering *n = &in->numbering;
	const struct exact_place *at = &in->places.p[link];
	struct plan_step step = in->plan.step[link], begin = {PLAN_NOTHING, 0};

	if (n->cut[link])
		begin = in->plan.step[n->begins[link]];
	switch (step.op) {
	case PLAN_NOTHING:
		break;
	case PLAN_SET:
	case PLAN_ADD:
		insert_step(in, at, &step);
		break;
	case PLAN_COUNT:
		insert_count(in, at, step.by, &begin);
		break;
	case PLAN_COUNTED:
		insert_counted(in, at, step.by, &begin);
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
	s->bare += in->model.how == PATH_HOW_SHORT;
}

static void keep(struct instrumenting *in)
{
	struct path_function *m = &in->model;

	for (size_t i = 0; i < m->graph.links.n; i++)
		m->graph.links.p[i].counted = in->numbering.cut[i];
	m->values.n = 0;
	for (uint32_t i = 0; i < in->numbering.dag.edges; i++)
		*vec_add(&m->values) = in->numbering.value[i];
	paths_map_add(&in->writer, m);
	sum_up(in);
}

/* Words of an array, or keys. */
static void give_out(struct instrumenting *in)
{
	uint64_t at;

	if (in->model.how == PATH_HOW_HASH) {
		in->model.first = in->keys;
		in->keys += in->numbering.total;
		return;
	}
	in->words += in->numbering.total;
	at = edit_data(in->scene.edit, in->numbering.total * RT_COUNTER, RT_COUNTER);
	in->model.first = (at - in->paths->words) / RT_COUNTER;
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
	for (uint32_t i = 0; i < in->model.graph.links.n; i++)
		insert_on_link(in, i);
	keep(in);
	forget(in);
	graph_deinit(&in->graph);
}

/* ---- all of them ---- */

static void fill_header(const struct paths *p, struct rt_header *h)
{
	h->counters = p->words;
	h->size = p->bytes;
	h->table = p->table;
	h->table_entries = p->entries;
	h->table_atomic = p->options.atomic;
	strcpy(h->path, p->options.counts);
}

static void make_table(struct paths *p, struct edit *edit)
{
	if (!p->summary.hashed)
		return;
	p->entries = ENTRIES_LEAST;
	while (p->entries < ENTRIES_MOST && p->entries < ENTRIES * (uint64_t)p->summary.hashed)
		p->entries *= 2;
	p->table = edit_data(edit, (RT_TABLE_FIRST + 2 * p->entries) * RT_COUNTER, 64);
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
	make_table(p, edit);
	p->bytes = edit_data(edit, 0, PAGE) - p->words;
	layout = (struct path_layout){.words = p->bytes / RT_COUNTER, .entries = p->entries};
	layout.hash = p->table ? (p->table - p->words) / RT_COUNTER : layout.words;
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
	fill_header(p, runtime_header(edit));
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
