#include "paths/paths.h"

#include "base/err.h"
#include "edit/endings.h"
#include "edit/guide.h"
#include "edit/runtime.h"
#include "edit/threads.h"
#include "paths/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE        4096
#define ARRAY_MOST  4096 /* potential paths that have a counter each */
#define ARRAY_LEAST 512  /* the same once there are many arrays: */
#define WORDS_MOST  (8 << 20)
#define WORDS_EACH  (1 << 20)           /* the same, of which every thread has some */
#define EDGE_WORDS  2                   /* of an edge, at least: with all cut so many suffice */
#define ARRAY_TIGHT 64                  /* by earlier counts, if that costs hardly more */
#define WORDS_NEAR  256                 /* of a procedure that ran before, on average */
#define PATHS_MOST  ((uint64_t)1 << 56) /* of one procedure */
#define KEYS_MOST   NUMBER_MOST         /* of all that share the table */

/* Entries of the table, by procedures that share it. */
#define ENTRIES       512
#define ENTRIES_LEAST (1 << 19)
#define ENTRIES_MOST  (1 << 20)

struct paths {
	struct paths_options options;
	struct paths_code code;
	struct threads threads;
	uint64_t bytes; /* of what is counted into */
	uint64_t table, entries;
	uint32_t hashed;     /* procedures that share the table */
	uint64_t unmeasured; /* that have no place for readings */
};

struct instrumenting {
	struct paths *paths;
	struct choosing choosing; /* of one function after the other */
	struct paths_map_writer writer;
	uint64_t keys, words; /* that are given out */
	uint64_t near, end;   /* room for the counters of what ran before */
	bool *measured;       /* by function */
	struct handover handover;
};

/* ---- one function ---- */

/* What ran before has its counters together, not each on a page with those of others. */
static void reserve(struct instrumenting *in)
{
	const struct exact_scene *s = &in->choosing.scene;
	uint64_t ran = 0, each = WORDS_NEAR * paths_code_stride(&in->paths->code) * RT_COUNTER;

	for (size_t i = 0; i < s->n && in->choosing.guide; i++)
		ran += guide_block(in->choosing.guide, s->functions[i]->procedure->start) > 0;
	in->near = edit_data(s->edit, ran * each, RT_COUNTER);
	in->end = in->near + ran * each;
}

static uint64_t room_for(struct instrumenting *in, uint64_t size)
{
	uint64_t at = in->near;

	if (!in->choosing.refined || size > in->end - at)
		return edit_data(in->choosing.scene.edit, size, RT_COUNTER);
	in->near += size;
	return at;
}

/* Words of an array, or keys. */
static void give_out(struct instrumenting *in)
{
	struct choosing *c = &in->choosing;
	uint64_t words = c->numbering.total * paths_code_stride(&in->paths->code);

	if (c->model.how == PATH_HOW_HASH) {
		c->model.first = in->keys;
		in->keys += c->numbering.total;
		in->paths->hashed++;
		return;
	}
	in->words += words;
	c->model.first = (room_for(in, words * RT_COUNTER) - in->paths->code.words) / RT_COUNTER;
}

static bool is_taken(const struct edit_function *f)
{
	return f->chosen && !f->refused;
}

/* Who measures, and who passes readings on to whom. */
static void find_readings(struct instrumenting *in)
{
	const struct exact_scene *s = &in->choosing.scene;
	struct paths *p = in->paths;

	in->measured = xcalloc(s->n + 1, sizeof *in->measured);
	if (!p->options.measures.n)
		return;
	for (size_t i = 0; i < s->n; i++) {
		if (!is_taken(s->functions[i]))
			continue;
		in->measured[i] = paths_code_can_measure(&p->code, s->functions[i]);
		p->unmeasured += !in->measured[i];
	}
	handover_find(&in->handover, &in->choosing, in->measured);
	p->code.handover = &in->handover;
}

static uint64_t array_of(const struct instrumenting *in, const struct edit_function *f)
{
	uint64_t most = in->paths->options.per_thread ? WORDS_EACH : WORDS_MOST;
	uint64_t array = in->words < most ? ARRAY_MOST : ARRAY_LEAST;
	uint64_t by_edge = EDGE_WORDS * (uint64_t)f->flow->graph.edges;

	return by_edge > array ? by_edge : array;
}

static void take_function(struct instrumenting *in, size_t number)
{
	struct choosing *c = &in->choosing;
	uint64_t left = KEYS_MOST - in->keys;

	c->array = array_of(in, c->scene.functions[number]);
	c->most = left < 2 * PATHS_MOST ? left / 2 : PATHS_MOST;
	choose_paths(c, c->scene.functions[number]);
	give_out(in);
	paths_code_insert(&in->paths->code, &(struct paths_body){.chosen = c,
						    .model = &c->model,
						    .number = number,
						    .measured = in->measured[number]});
	paths_map_add(&in->writer, &c->model);
	choose_end(c);
}

/* ---- all of them ---- */

static uint64_t entry_words(const struct paths *p)
{
	return 1 + paths_code_stride(&p->code);
}

static void fill_header(const struct paths *p, struct rt_header *h)
{
	h->counters = p->code.words;
	h->size = p->bytes;
	h->table = p->table;
	h->table_entries = p->entries;
	h->table_atomic = p->options.atomic || p->options.per_thread;
	h->table_words = entry_words(p);
	strcpy(h->path, p->options.counts);
}

/* All threads share it: few paths are so many that each could have a table. */
static void make_table(struct paths *p, struct edit *edit)
{
	uint64_t arrays = edit_data(edit, 0, PAGE) - p->code.words;

	if (p->options.per_thread)
		threads_finish(&p->threads, edit, arrays);
	if (!p->hashed)
		return;
	p->entries = ENTRIES_LEAST;
	while (p->entries < ENTRIES_MOST && p->entries < ENTRIES * (uint64_t)p->hashed)
		p->entries *= 2;
	p->table = edit_data(edit, (RT_TABLE_FIRST + entry_words(p) * p->entries) * RT_COUNTER, 64);
}

static void instrument(struct paths *p, struct edit *edit, struct buf *map)
{
	struct instrumenting in = {.paths = p,
		.choosing = {.scene.edit = edit,
			.guide = p->options.guide,
			.tight = ARRAY_TIGHT,
			.full = p->options.full,
			.to_the_end = p->options.measures.n,
			.derives = !p->options.measures.n && !p->options.full}};
	struct exact_scene *scene = &in.choosing.scene;
	struct image *im = edit_image(edit);
	_cleanup_free_ char *path = realpath(image_path(im), NULL);
	struct path_layout layout;

	p->code.edit = edit;
	p->code.threads = p->threads.at;
	p->code.words = edit_data(edit, 0, PAGE);
	scene->n = edit_functions(edit, &scene->functions);
	scene->never = endings_find(scene->functions, scene->n);
	find_readings(&in);
	if (p->options.per_thread)
		threads_check(&p->threads, edit);
	reserve(&in);
	for (size_t i = 0; i < scene->n; i++)
		if (is_taken(scene->functions[i]))
			take_function(&in, i);
	make_table(p, edit);
	p->bytes = edit_data(edit, 0, PAGE) - p->code.words;
	layout = (struct path_layout){.words = p->bytes / RT_COUNTER,
		.stride = paths_code_stride(&p->code),
		.unmeasured = p->unmeasured,
		.entries = p->entries};
	measures_names(&p->options.measures, &layout.metrics);
	layout.hash = p->table ? (p->table - p->code.words) / RT_COUNTER : layout.words;
	paths_map_finish(&in.writer, &layout, image_id(im), path ? path : image_path(im), map);
	free(scene->never);
	free(in.measured);
	handover_deinit(&in.handover);
	choosing_deinit(&in.choosing);
}

int paths_create(struct edit *edit, const struct paths_options *o, struct paths **out,
	struct buf *map, struct err *e)
{
	struct paths *p;
	int rc;

	if (o->counts[0] != '/' || strlen(o->counts) >= RT_PATH)
		return err_set(e, -EINVAL, "%s: counts need a file with an absolute, shorter path",
			o->counts);
	rc = measures_prepare(&o->measures, edit, e);
	if (rc)
		return rc;
	p = xcalloc(1, sizeof *p);
	p->options = *o;
	p->options.counts = xstrdup(o->counts);
	p->code.atomic = o->atomic;
	p->code.measures = o->measures;
	if (o->per_thread)
		rc = threads_begin(&p->threads, edit, e);
	if (rc) {
		paths_destroy(p);
		return rc;
	}
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
	threads_deinit(&p->threads);
	free((char *)p->options.counts);
	free(p);
}

uint64_t paths_bytes(const struct paths *p)
{
	return p->bytes;
}
