/*
 * combined_sums PATHS CONTEXT BOTH: three databases of runs that did the same, by `record --paths`,
 * `--context` and `--paths --context`. Compares how often each path ran, as counted and summed over
 * all contexts; procedures that are cut in other places, block by block; and the entries of every
 * context. In the last run alone: whether each context was entered as often as paths began at its
 * entry, so that it does not matter whether the runs did the same.
 */
#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "calls/tree.h"
#include "store/contexts.h"
#include "store/edges.h"
#include "store/paths.h"
#include "store/store.h"
#include "sums.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A path by a hash of its shape, or a block. */
struct sum {
	uint64_t image, procedure, key, is_block;
	uint64_t alone, both;
};

struct compared {
	uint64_t image, start;
	uint64_t paths, blocks; /* that differ */
};

struct sums {
	struct store *store;
	struct hmap sums, procedures;
	struct call_tree *contexts, *both;
	uint64_t key; /* of the image whose images are asked for */
};

static uint64_t hash_shape(const struct path_shape *s)
{
	uint64_t h = s->start * 31 + s->end + s->next * 0x9e3779b97f4a7c15u;

	for (uint32_t i = 0; i < s->n; i++)
		h = (h ^ s->blocks[i]) * 0x9e3779b97f4a7c15u ^ h >> 29;
	return h;
}

static struct sum *sum_of(
	struct sums *s, uint64_t image, uint64_t procedure, uint64_t key, uint64_t is_block)
{
	return hmap_put(&s->sums, (uint64_t[]){image, procedure, key, is_block}, NULL);
}

static void add_path(struct sums *s, uint64_t image, uint64_t procedure,
	const struct path_shape *shape, uint64_t alone, uint64_t both)
{
	struct sum *to = sum_of(s, image, procedure, hash_shape(shape), 0);

	to->alone += alone;
	to->both += both;
	for (uint32_t i = 0; i < shape->n; i++) {
		to = sum_of(s, image, procedure, shape->blocks[i], 1);
		to->alone += alone;
		to->both += both;
	}
}

static int one_image(void *arg, const struct store_image *im)
{
	struct sums *s = arg;

	s->key = edge_image_key(im->kind, &im->identity, im->path);
	return 0;
}

static int add_paths(void *arg, const struct store_profile *p)
{
	struct sums *s = arg;
	struct path_reader r;
	struct path_row row;
	int got = path_reader_init(&r, p->data, p->size);

	if (got)
		return got;
	store_image_get(s->store, p->image, one_image, s, NULL);
	while ((got = path_reader_next(&r, &row)) > 0)
		if (row.is_path)
			add_path(s, s->key, row.procedure, &row.shape, row.count, 0);
	path_reader_deinit(&r);
	return got;
}

static int add_contexts(void *arg, const struct store_profile *p)
{
	struct sums *s = arg;

	return call_tree_add(s->contexts, p->data, p->size);
}

static uint64_t add_tree_paths(struct sums *s)
{
	uint64_t paths = 0;

	call_tree_settle(s->both);
	for (uint32_t i = 0; i < call_tree_size(s->both); i++) {
		const struct call_node *n = call_tree_node(s->both, i);

		for (uint32_t k = 0; k < n->npaths; k++) {
			const struct call_path *p = call_tree_path(s->both, n->path + k);

			add_path(s, n->at.image, n->at.procedure, &p->shape, 0, p->count);
		}
		paths += n->npaths;
	}
	return paths;
}

static void compare_paths(struct sums *s, uint64_t paths)
{
	uint64_t other = 0, blocks = 0, different = 0, executions = 0;
	const struct sum *r = NULL;
	const struct compared *p = NULL;

	while ((r = hmap_next(&s->sums, r))) {
		struct compared *to =
			hmap_put(&s->procedures, (uint64_t[]){r->image, r->procedure}, NULL);

		blocks += r->is_block;
		executions += r->is_block ? 0 : r->both;
		if (r->alone == r->both)
			continue;
		to->paths += !r->is_block;
		to->blocks += r->is_block;
		if (r->is_block && getenv("VERBOSE"))
			printf("  block %#" PRIx64 " of %#" PRIx64 ": paths %" PRIu64
			       ", by context %" PRIu64 "\n",
				r->key, r->procedure, r->alone, r->both);
	}
	while ((p = hmap_next(&s->procedures, p))) {
		other += p->paths != 0;
		different += p->blocks;
	}
	printf("%zu procedures, %" PRIu64 " paths in contexts ran %" PRIu64 " times; %" PRIu64
	       " procedures have other paths; %" PRIu64 " blocks, %" PRIu64 " differ\n",
		s->procedures.n, paths, executions, other, blocks, different);
}

/* Whose paths a node counts: those of a call that closes a recursion are the ancestor's. */
static uint32_t active(const struct call_tree *t, uint32_t node)
{
	const struct call_node *called = call_tree_node(t, node), *n = called;

	while (called->at.recursive && n->parent != CALL_NONE) {
		node = n->parent;
		n = call_tree_node(t, node);
		if (!n->at.recursive && n->at.image == called->at.image &&
			n->at.procedure == called->at.procedure)
			break;
	}
	return node;
}

static void compare_entries(const struct sums *s)
{
	uint32_t n = call_tree_size(s->both);
	_cleanup_free_ uint64_t *entered = xcalloc(n + 1, sizeof *entered);
	_cleanup_free_ uint64_t *begun = xcalloc(n + 1, sizeof *begun);
	uint64_t different = 0, by = 0, all = 0, without = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct call_node *node = call_tree_node(s->both, i);

		entered[active(s->both, i)] += node->count;
		for (uint32_t k = 0; k < node->npaths; k++) {
			const struct call_path *p = call_tree_path(s->both, node->path + k);

			begun[i] += p->shape.start == PATH_ENTRY ? p->count : 0;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct call_node *node = call_tree_node(s->both, i);
		bool none = !node->npaths && !node->at.recursive;

		without += none && entered[i];
		all += begun[i];
		if (none || entered[i] == begun[i])
			continue;
		different++;
		by += entered[i] > begun[i] ? entered[i] - begun[i] : begun[i] - entered[i];
		if (getenv("VERBOSE"))
			printf("  context %" PRIu32 " of %#" PRIx64 ": entered %" PRIu64
			       ", paths begun %" PRIu64 "\n",
				i, node->at.procedure, entered[i], begun[i]);
	}
	printf("%" PRIu64 " paths began at entries; %" PRIu64
	       " contexts were entered otherwise, by %" PRIu64 " in all, %" PRIu64
	       " have no paths\n",
		all, different, by, without);
}

/* Places of both trees, each once. */
static void compare_contexts(struct sums *s)
{
	uint32_t n = call_tree_size(s->contexts);
	uint64_t different = 0, entries = 0;

	/* What is missing in one was entered 0 times. */
	for (uint32_t i = 0; i < call_tree_size(s->both); i++)
		call_tree_copy_path(s->contexts, s->both, i);
	for (uint32_t i = 0; i < call_tree_size(s->contexts); i++) {
		uint32_t other = call_tree_copy_path(s->both, s->contexts, i);

		entries += call_tree_node(s->contexts, i)->count;
		different += call_tree_node(s->both, other)->count !=
			     call_tree_node(s->contexts, i)->count;
	}
	printf("%" PRIu32 " contexts, entered %" PRIu64 " times; %" PRIu64 " differ\n", n, entries,
		different);
}

int main(int argc, char **argv)
{
	struct sums s = {.both = call_tree_create(NULL)};

	if (argc != 4) {
		fprintf(stderr, "usage: combined_sums PATHS CONTEXT BOTH\n");
		return 2;
	}
	hmap_init(&s.sums, sizeof(struct sum), offsetof(struct sum, alone));
	hmap_init(&s.procedures, sizeof(struct compared), offsetof(struct compared, paths));
	sums_read(argv[1], &s.store, &blob_path, add_paths, &s);
	s.contexts = s.both;
	sums_read(argv[3], &s.store, &blob_context, add_contexts, &s);
	s.contexts = call_tree_create(NULL);
	sums_read(argv[2], &s.store, &blob_context, add_contexts, &s);
	compare_paths(&s, add_tree_paths(&s));
	compare_entries(&s);
	compare_contexts(&s);
	hmap_deinit(&s.sums);
	hmap_deinit(&s.procedures);
	call_tree_destroy(s.contexts);
	call_tree_destroy(s.both);
	return 0;
}
