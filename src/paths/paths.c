#include "paths/paths.h"

#include "base/err.h"
#include "edit/endings.h"
#include "edit/runtime.h"
#include "paths/code.h"

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
	struct choosing choosing; /* of one function after the other */
	struct paths_map_writer writer;
	uint64_t keys, words; /* that are given out */
};

/* ---- one function ---- */

/* Words of an array, or keys. */
static void give_out(struct instrumenting *in)
{
	struct choosing *c = &in->choosing;
	uint64_t words = c->numbering.total * paths_code_stride(&in->paths->code), at;

	if (c->model.how == PATH_HOW_HASH) {
		c->model.first = in->keys;
		in->keys += c->numbering.total;
		in->paths->hashed++;
		return;
	}
	in->words += words;
	at = edit_data(c->scene.edit, words * RT_COUNTER, RT_COUNTER);
	c->model.first = (at - in->paths->code.words) / RT_COUNTER;
}

/* Whether there is a place for the clock, everywhere: wherever it is entered, a path begins. */
static bool have_clock(struct instrumenting *in)
{
	struct edit_function *f = in->choosing.function;
	bool *all, had;
	const char *why;

	if (!in->paths->options.metric)
		return false;
	all = xmalloc(f->flow->nblocks + 1);
	memset(all, true, f->flow->nblocks + 1);
	had = edit_variable(in->paths->code.edit, f, 1, all, &why);
	in->paths->untimed += !had;
	free(all);
	return had;
}

static void take_function(struct instrumenting *in, struct edit_function *f)
{
	struct choosing *c = &in->choosing;
	uint64_t left = KEYS_MOST - in->keys;

	c->array = in->words < WORDS_MOST ? ARRAY_MOST : ARRAY_LEAST;
	c->most = left < 2 * PATHS_MOST ? left / 2 : PATHS_MOST;
	choose_paths(c, f);
	give_out(in);
	paths_code_insert(&in->paths->code,
		&(struct paths_body){.chosen = c, .model = &c->model, .timed = have_clock(in)});
	paths_map_add(&in->writer, &c->model);
	choose_end(c);
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
	struct instrumenting in = {.paths = p,
		.choosing = {
			.scene.edit = edit, .guide = p->options.guide, .full = p->options.full}};
	struct exact_scene *scene = &in.choosing.scene;
	struct image *im = edit_image(edit);
	_cleanup_free_ char *path = realpath(image_path(im), NULL);
	struct path_layout layout;

	p->code.edit = edit;
	p->code.words = edit_data(edit, 0, PAGE);
	scene->n = edit_functions(edit, &scene->functions);
	scene->never = endings_find(scene->functions, scene->n);
	for (size_t i = 0; i < scene->n; i++)
		if (scene->functions[i]->chosen && !scene->functions[i]->refused)
			take_function(&in, scene->functions[i]);
	make_table(p, edit);
	p->bytes = edit_data(edit, 0, PAGE) - p->code.words;
	layout = (struct path_layout){.words = p->bytes / RT_COUNTER,
		.stride = paths_code_stride(&p->code),
		.untimed = p->untimed,
		.entries = p->entries};
	layout.hash = p->table ? (p->table - p->code.words) / RT_COUNTER : layout.words;
	paths_map_finish(&in.writer, &layout, image_id(im), path ? path : image_path(im), map);
	free(scene->never);
	choosing_deinit(&in.choosing);
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
