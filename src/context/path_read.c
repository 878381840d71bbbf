#include "context/path_read.h"

#include "base/mem.h"
#include "calls/tree.h"
#include "paths/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void path_read_deinit(struct path_read *r)
{
	for (size_t i = 0; i < r->nmaps && r->sums; i++)
		vec_deinit(&r->sums[i]);
	free(r->sums);
	vec_deinit(&r->found);
}

/* ---- gathering ---- */

static void take(
	void *arg, size_t map, size_t procedure, uint32_t node, const uint64_t *words, size_t n)
{
	struct path_read *r = arg;

	for (size_t i = 0; i < n && r->maps[map].size; i++)
		if (words[i])
			*vec_add(&r->found) = (struct path_found){
				(uint32_t)map, (uint32_t)procedure, node, (uint32_t)i, words[i]};
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
static bool fits(const struct adding *a, const struct context_procedure *p)
{
	return p->paths ? p->paths == a->numbering.total : a->numbering.total == 1;
}

static int add_procedure(struct adding *a, uint32_t map, size_t procedure)
{
	const struct context_map *m = &a->read->maps[map].context;
	struct path_shape shape = {0};
	uint64_t number = UINT64_MAX;
	bool has_shape = false;

	if (procedure == m->procedures.n || !fits(a, &m->procedures.p[procedure]))
		return -EBADMSG;
	for (; is_next(a, map, procedure); a->next++) {
		const struct path_found *f = &a->read->found.p[a->next];

		if (f->number != number)
			has_shape = paths_read_shape(&a->function, &a->numbering, f->number,
				&a->memory, &a->blocks, &shape);
		number = f->number;
		a->read->sums[map].p[a->function.first + number] += f->count;
		if (has_shape)
			call_tree_add_path(a->tree, f->node, &shape, f->count, NULL);
	}
	return 0;
}

/* Passes by what has no place in the map: those that are left out were entered all the same. */
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
	vec_sort(&r->found, by_path);
	for (uint32_t i = 0; i < r->nmaps && !rc; i++)
		rc = add_map(&a, i);
	path_function_deinit(&a.function);
	vec_deinit(&a.memory);
	vec_deinit(&a.blocks);
	return rc;
}
