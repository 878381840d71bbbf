#include "context/path_read.h"

#include "base/mem.h"
#include "calls/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void path_read_deinit(struct path_read *r)
{
	for (size_t i = 0; i < r->nmaps && r->sums; i++) {
		vec_deinit(&r->sums[i]);
		vec_deinit(&r->keys[i]);
	}
	free(r->sums);
	free(r->keys);
	vec_deinit(&r->found);
	vec_deinit(&r->metrics);
}

/* ---- gathering ---- */

static uint32_t keep_metrics(struct path_read *r, const uint64_t *sums, size_t n)
{
	struct path_metrics *m;

	if (!sums || !n)
		return 0;
	if (!r->metrics.n)
		*vec_add(&r->metrics) = (struct path_metrics){0};
	m = vec_add(&r->metrics);
	*m = (struct path_metrics){0};
	memcpy(m->sums, sums, n * sizeof *sums);
	return (uint32_t)(r->metrics.n - 1);
}

static void take(void *arg, const struct context_ran *ran)
{
	struct path_read *r = arg;
	uint32_t sums = keep_metrics(r, ran->sums, r->maps[ran->map].context.metrics.n);

	*vec_add(&r->found) = (struct path_found){(uint32_t)ran->map, (uint32_t)ran->procedure,
		ran->node, sums, ran->number, ran->count};
}

struct context_sink path_read_sink(struct path_read *r)
{
	return (struct context_sink){take, r};
}

/* ---- by procedure ---- */

/* A procedure of a map, and where its paths are among those that were found. */
struct adding {
	struct path_read *read;
	struct call_tree *tree;
	struct path_function function;
	struct numbering numbering;
	number_path memory;
	block_list blocks;
	size_t next; /* of those that were found */
};

static int by_path(const void *a, const void *b)
{
	const struct path_found *x = a, *y = b;

	if (x->map != y->map)
		return x->map < y->map ? -1 : 1;
	if (x->procedure != y->procedure)
		return x->procedure < y->procedure ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static bool is_next(const struct adding *a, uint32_t map, size_t procedure)
{
	const struct path_found *f = &a->read->found.p[a->next];

	return a->next < a->read->found.n && f->map == map && f->procedure == procedure;
}

/* Words that a procedure has for paths must be as many as it has paths; with none it has one. */
static bool fits(const struct adding *a, uint32_t map, const struct context_procedure *p)
{
	if (p->tree != (a->function.how == PATH_HOW_HASH))
		return false;
	if (p->tree || !p->paths)
		return p->tree || a->numbering.total == 1;
	return p->paths == a->numbering.total * a->read->maps[map].context.stride;
}

/* To what all contexts together have counted. */
static void add_up(struct adding *a, uint32_t map, const struct path_found *f, const uint64_t *sums)
{
	uint32_t stride = a->read->maps[map].context.stride;
	uint64_t key = a->function.first + f->number;
	path_keys *keys = &a->read->keys[map];

	if (a->function.how != PATH_HOW_HASH) {
		uint64_t *to = a->read->sums[map].p + a->function.first + f->number * stride;

		to[0] += f->count;
		for (uint32_t i = 1; i < stride; i++)
			to[i] += sums[i - 1];
		return;
	}
	if (!keys->n || keys->p[keys->n - 1].key != key)
		*vec_add(keys) = (struct paths_hashed){.key = key};
	keys->p[keys->n - 1].count += f->count;
	for (uint32_t i = 1; i < stride; i++)
		keys->p[keys->n - 1].sums[i - 1] += sums[i - 1];
}

/* To its context. */
static void add_to_node(struct adding *a, const struct path_found *f, const uint64_t *sums,
	const struct path_shape *shape)
{
	uint64_t metrics[METRICS_MOST] = {0};

	memcpy(metrics, sums, RT_METRICS * sizeof *sums);
	for (int i = 0; i < RT_METRICS; i++)
		call_tree_node(a->tree, f->node)->metrics[i] += sums[i];
	if (shape)
		call_tree_add_path(a->tree, f->node, shape, f->count, metrics);
}

static int add_procedure(struct adding *a, uint32_t map, size_t procedure)
{
	static const uint64_t none[RT_METRICS];
	const struct context_map *m = &a->read->maps[map].context;
	struct path_shape shape = {0};
	uint64_t number = UINT64_MAX;
	bool has_shape = false;

	if (procedure == m->procedures.n || !fits(a, map, &m->procedures.p[procedure]))
		return -EBADMSG;
	for (; is_next(a, map, procedure); a->next++) {
		const struct path_found *f = &a->read->found.p[a->next];
		const uint64_t *sums = f->sums ? a->read->metrics.p[f->sums].sums : none;

		if (f->number >= a->numbering.total)
			return -EBADMSG;
		if (f->number != number)
			has_shape = paths_read_shape(&a->function, &a->numbering, f->number,
				&a->memory, &a->blocks, &shape);
		number = f->number;
		add_up(a, map, f, sums);
		add_to_node(a, f, sums, has_shape ? &shape : NULL);
	}
	return 0;
}

/* Passes by what has no place in the map. */
static void skip_to(struct adding *a, uint32_t map, size_t procedure)
{
	while (a->next < a->read->found.n) {
		const struct path_found *f = &a->read->found.p[a->next];

		if (f->map > map || (f->map == map && f->procedure >= procedure))
			break;
		a->next++;
	}
}

static int add_map(struct adding *a, uint32_t map)
{
	const struct path_words_map *m = &a->read->maps[map];
	struct paths_map_reader r;
	int rc;

	if (!m->size)
		return 0;
	rc = paths_map_open(&r, m->paths, m->size);
	vec_reserve(&a->read->sums[map], r.layout.words + 1);
	memset(a->read->sums[map].p, 0, r.layout.words * sizeof(uint64_t));
	a->read->sums[map].n = r.layout.words;
	while (!rc && (rc = paths_map_next(&r, &a->function, &a->numbering)) > 0) {
		size_t procedure = context_map_find(&m->context, a->function.graph.start);

		skip_to(a, map, procedure);
		rc = add_procedure(a, map, procedure);
		numbering_deinit(&a->numbering);
	}
	return rc;
}

int path_read_add(struct path_read *r, struct call_tree *tree)
{
	struct adding a = {.read = r, .tree = tree};
	int rc = 0;

	r->sums = xcalloc(r->nmaps + 1, sizeof *r->sums);
	r->keys = xcalloc(r->nmaps + 1, sizeof *r->keys);
	vec_sort(&r->found, by_path);
	for (uint32_t i = 0; i < r->nmaps && !rc; i++)
		rc = add_map(&a, i);
	path_function_deinit(&a.function);
	vec_deinit(&a.memory);
	vec_deinit(&a.blocks);
	return rc;
}
