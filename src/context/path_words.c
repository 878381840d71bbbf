#include "context/path_words.h"

#include "base/cursor.h"
#include "base/mem.h"
#include "edit/endings.h"
#include "rt/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_MOST 256 /* potential paths of a procedure: every record has a counter for each */
#define TIGHT      16  /* rather so many, which lie in few lines of the cache */
#define PATHS_MOST ((uint64_t)1 << 56) /* of one procedure */

/*
 * A map:
 *
 *   u64     MAP_MAGIC
 *   uleb    bytes of the map of contexts; it follows
 *   uleb    twice the words, of each procedure of the map; one more if they are a tree's
 *   ...     the map of paths
 */
#define MAP_MAGIC 0x3268746150784374

void path_words_init(struct path_words *w, struct edit *edit, const struct path_words_options *o)
{
	struct exact_scene *scene = &w->choosing.scene;

	*w = (struct path_words){.choosing = {.guide = o->guide,
					 .variable = 2,
					 .tight = TIGHT,
					 .everywhere = true,
					 .full = o->full,
					 .to_the_end = o->measures->n},
		.code = {.edit = edit,
			.atomic = o->atomic,
			.measures = *o->measures,
			.records = true,
			.finds = o->finds}};
	scene->edit = edit;
	scene->n = edit_functions(edit, &scene->functions);
	scene->never = endings_find(scene->functions, scene->n);
}

void path_words_deinit(struct path_words *w)
{
	free(w->choosing.scene.never);
	free(w->measured);
	handover_deinit(&w->handover);
	choosing_deinit(&w->choosing);
	paths_code_deinit(&w->code);
}

/* ---- code ---- */

/* Whether it begins in one place and has no choice. */
static bool has_one_path(const struct exact_function *f)
{
	uint32_t outside = exact_outside(f);
	_cleanup_free_ bool *seen = xcalloc(outside + 1, sizeof *seen);

	vec_each (l, &f->links) {
		if (seen[l->from])
			return false;
		seen[l->from] = true;
	}
	return true;
}

bool *path_words_recorded(struct path_words *w)
{
	const struct exact_scene *scene = &w->choosing.scene;
	bool *recorded = xcalloc(scene->n + 1, sizeof *recorded);

	for (size_t i = 0; i < scene->n; i++) {
		if (!scene->functions[i]->chosen || scene->functions[i]->refused)
			continue;
		choose_model(&w->choosing, scene->functions[i]);
		recorded[i] = w->code.measures.n || !has_one_path(&w->choosing.model.graph);
	}
	return recorded;
}

/* Whether how often it was entered tells all: it has one path, which calls nobody or ends with a
 * call that never comes back. */
static bool is_told(const struct survey_function *f, const struct choosing *c)
{
	if (c->numbering.total != 1 || f->calls > 1)
		return false;
	vec_each (l, &c->model.graph.links)
		if (l->kind == EXACT_LINK_AWAY || l->kind == EXACT_LINK_STOP)
			return true;
	return !f->calls;
}

void path_words_measure(struct path_words *w, const struct survey *s)
{
	w->measured = xcalloc(s->n + 1, sizeof *w->measured);
	if (!w->code.measures.n)
		return;
	for (size_t i = 0; i < s->n; i++) {
		const struct survey_function *f = &s->functions[i];

		w->measured[i] =
			f->moved && f->keeps && paths_code_can_measure(&w->code, f->function);
		w->unmeasured += f->moved && !w->measured[i];
	}
	handover_find(&w->handover, &w->choosing, w->measured);
	w->code.handover = &w->handover;
}

/* How paths are counted, and where: words of the record, or one for all. */
static void give_out(struct path_words *w, struct context_procedure *p, uint64_t room)
{
	struct choosing *c = &w->choosing;
	uint64_t words = c->numbering.total * paths_code_stride(&w->code);

	p->tree = words > room || (c->full && c->model.how == PATH_HOW_HASH);
	if (p->tree) {
		c->model.how = PATH_HOW_HASH;
		c->model.first = w->keys;
		w->keys += c->numbering.total;
		p->paths = 1;
		return;
	}
	if (c->model.how == PATH_HOW_HASH) /* one block has more ways out than an array should */
		c->model.how = PATH_HOW_ARRAY;
	c->model.first = w->words;
	w->words += words;
	p->paths = (uint16_t)words;
}

void path_words_choose(
	struct path_words *w, const struct survey_function *f, struct context_procedure *p)
{
	struct choosing *c = &w->choosing;
	uint64_t room = CONTEXT_COUNTS_MAX - p->counts, left = NUMBER_MOST - w->keys;

	c->array = room / paths_code_stride(&w->code);
	c->array = c->array < ARRAY_MOST ? c->array : ARRAY_MOST;
	c->most = left < 2 * PATHS_MOST ? left / 2 : PATHS_MOST;
	c->bare = !f->keeps;
	choose_paths(c, f->function);
	give_out(w, p, room);
	if (!f->keeps && is_told(f, c))
		p->paths = 0;
}

void path_words_insert(struct path_words *w, const struct survey_function *f,
	const struct context_procedure *p, const uint64_t *finding)
{
	struct choosing *c = &w->choosing;
	struct paths_body body = {.chosen = c,
		.model = &c->model,
		.below = p->paths,
		.finding = f->keeps ? NULL : finding};

	if (p->paths) {
		body.number = endings_number(c->scene.functions, c->scene.n, c->model.graph.start);
		body.measured = w->measured[body.number];
		paths_code_insert(&w->code, &body);
	}
	paths_map_add(&w->writer, &c->model);
	choose_end(c);
}

/* ---- maps ---- */

void path_words_put(struct path_words *w, const struct context_map *m, struct buf *out)
{
	struct path_layout layout = {.words = w->words,
		.stride = paths_code_stride(&w->code),
		.unmeasured = w->unmeasured,
		.hash = w->words};
	struct buf context = {0};

	context_map_put(m, &context);
	buf_u64(out, MAP_MAGIC);
	buf_uleb(out, context.n);
	buf_put(out, context.p, context.n);
	vec_each (p, &m->procedures)
		buf_uleb(out, 2 * (uint64_t)p->paths + p->tree);
	measures_names(&w->code.measures, &layout.metrics);
	paths_map_finish(&w->writer, &layout, &m->id, m->path, out);
	buf_deinit(&context);
}

static int read_words(struct path_words_map *m, struct cursor *at)
{
	struct paths_map_reader r;
	uint64_t all = 0;

	vec_each (p, &m->context.procedures) {
		uint64_t words = cursor_uleb(at);

		p->tree = words & 1;
		words /= 2;
		if (words > (uint64_t)CONTEXT_COUNTS_MAX - p->counts || (p->tree && words != 1))
			return -EBADMSG;
		p->paths = (uint16_t)words;
		all += words + RT_METRICS + 1;
	}
	m->size = cursor_left(at);
	m->paths = cursor_bytes(at, m->size);
	if (at->failed || paths_map_open(&r, m->paths, m->size) || r.layout.words > all ||
		r.layout.stride != 1 + m->context.metrics.n)
		return -EBADMSG;
	m->context.stride = (uint32_t)r.layout.stride;
	return 0;
}

int path_words_read(struct path_words_map *m, const void *p, size_t n)
{
	struct cursor at = cursor_over(p, n), context;
	uint64_t size;
	int rc;

	*m = (struct path_words_map){0};
	if (cursor_u64(&at) != MAP_MAGIC)
		return context_map_read(&m->context, p, n);
	size = cursor_uleb(&at);
	context = cursor_slice(&at, size);
	if (at.failed)
		return -EBADMSG;
	rc = context_map_read(&m->context, context.at, cursor_left(&context));
	if (rc)
		return rc;
	rc = read_words(m, &at);
	if (rc)
		context_map_deinit(&m->context);
	return rc;
}

const char *path_words_original(const void *p, size_t n)
{
	struct cursor at = cursor_over(p, n);

	if (cursor_u64(&at) != MAP_MAGIC)
		return context_map_path(p, n);
	n = cursor_uleb(&at);
	return context_map_path(at.at, n);
}
