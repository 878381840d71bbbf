/*
 * context_sums EXACT CONTEXT: two databases of runs that did the same, by `record --exact` and
 * `record --context`. Compares how often procedures were entered: as counted, and summed over all
 * contexts.
 */
#include "sums.h"
#include "base/err.h"
#include "base/hmap.h"
#include "calls/tree.h"
#include "store/contexts.h"
#include "store/edges.h"
#include "store/exact.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct sum {
	uint64_t image, procedure;
	uint64_t exact, context, doubt;
};

struct sums {
	struct store *store;
	struct hmap by_procedure;
	struct call_tree *tree;
	uint64_t key; /* of the image whose images are asked for */
};

static struct sum *sum_of(struct sums *s, uint64_t image, uint64_t procedure)
{
	return hmap_put(&s->by_procedure, (uint64_t[]){image, procedure}, NULL);
}

static int one_image(void *arg, const struct store_image *im)
{
	struct sums *s = arg;

	s->key = edge_image_key(im->kind, &im->identity, im->path);
	return 0;
}

/* Entries are what came to the first block and from nowhere inside. */
static int add_exact(void *arg, const struct store_profile *p)
{
	struct sums *s = arg;
	struct exact_reader r;
	struct exact_row row;
	int got = exact_reader_init(&r, p->data, p->size);

	store_image_get(s->store, p->image, one_image, s, NULL);
	while (!got && (got = exact_reader_next(&r, &row)) > 0) {
		struct sum *to = sum_of(s, s->key, row.procedure);

		if (row.kind == EXACT_PROCEDURE)
			to->doubt += row.count;
		else if (row.kind == EXACT_BLOCK && row.a == row.procedure)
			to->exact += row.count;
		else if (row.kind == EXACT_EDGE && row.b == row.procedure)
			to->exact -= row.count;
		got = 0;
	}
	return got;
}

static int add_contexts(void *arg, const struct store_profile *p)
{
	struct sums *s = arg;

	return call_tree_add(s->tree, p->data, p->size);
}

static void add_tree(struct sums *s)
{
	for (uint32_t i = 0; i < call_tree_size(s->tree); i++) {
		const struct call_node *n = call_tree_node(s->tree, i);

		sum_of(s, n->at.image, n->at.procedure)->context += n->count;
	}
}

static void compare(const struct sums *s)
{
	uint64_t different = 0, doubted = 0, exact = 0, context = 0;
	const struct sum *r = NULL;

	while ((r = hmap_next(&s->by_procedure, r))) {
		exact += r->exact;
		context += r->context;
		if (r->exact == r->context)
			continue;
		different++;
		doubted += r->doubt != 0;
		if (getenv("VERBOSE"))
			printf("  %#" PRIx64 ": exact %" PRIu64 " (or %" PRIu64
			       " more or less), contexts %" PRIu64 "\n",
				r->procedure, r->exact, r->doubt, r->context);
	}
	printf("%zu procedures, entered %" PRIu64 " times as counted and %" PRIu64
	       " times in %" PRIu32 " contexts; %" PRIu64 " differ, %" PRIu64
	       " of these are not called exact\n",
		s->by_procedure.n, exact, context, call_tree_size(s->tree), different, doubted);
}

int main(int argc, char **argv)
{
	struct sums s = {.tree = call_tree_create(NULL)};

	if (argc != 3) {
		fprintf(stderr, "usage: context_sums EXACT CONTEXT\n");
		return 2;
	}
	hmap_init(&s.by_procedure, sizeof(struct sum), offsetof(struct sum, exact));
	sums_read(argv[1], &s.store, &blob_exact, add_exact, &s);
	sums_read(argv[2], &s.store, &blob_context, add_contexts, &s);
	add_tree(&s);
	compare(&s);
	hmap_deinit(&s.by_procedure);
	call_tree_destroy(s.tree);
	return 0;
}
