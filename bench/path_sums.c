/*
 * path_sums EXACT PATHS: two copies of a program, made by `culprit edit --exact` and `--paths`, did
 * the same. Compares how often blocks and edges ran: as counted, and as the sum of all paths.
 */
#include "base/err.h"
#include "base/hmap.h"
#include "base/io.h"
#include "base/mem.h"
#include "edit/books.h"
#include "paths/read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct bytes {
	uint8_t *p;
	size_t n;
};

static struct bytes slurp(const char *copy, const char *behind)
{
	char path[4096];
	struct bytes b = {0};
	struct stat st;
	FILE *f;

	snprintf(path, sizeof path, "%s%s", copy, behind);
	f = fopen(path, "r");
	if (!f || fstat(fileno(f), &st)) {
		perror(path);
		exit(1);
	}
	b.p = xmalloc((size_t)st.st_size + 8);
	b.n = fread(b.p, 1, (size_t)st.st_size, f);
	fclose(f);
	return b;
}

/* How often a block ran (to is 0), or an edge from one block to another. */
struct sum {
	uint64_t procedure, from, to, exact, paths;
	bool doubted;
};
typedef VEC(struct sum) sum_list;

static int by_place(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;

	if (x->procedure != y->procedure)
		return x->procedure < y->procedure ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

static void fold(sum_list *list)
{
	size_t n = 0;

	vec_sort(list, by_place);
	vec_each (s, list) {
		if (n && !by_place(s, &list->p[n - 1])) {
			list->p[n - 1].exact += s->exact;
			list->p[n - 1].paths += s->paths;
		} else {
			list->p[n++] = *s;
		}
	}
	list->n = n;
}

static void read_exact(const char *copy, sum_list *list)
{
	struct bytes map = slurp(copy, ".map"), counts = slurp(copy, ".counts");
	struct books_source s = {map.p, map.n, (const uint64_t *)counts.p, counts.n / 8, 0, 0};
	struct books_summary sum;
	exact_rows rows = {0};
	bool doubted = false;

	if (books_close(&s, &rows, &sum)) {
		fprintf(stderr, "%s: damaged map\n", copy);
		exit(1);
	}
	vec_each (r, &rows) {
		if (r->kind == EXACT_PROCEDURE)
			doubted = r->count;
		else if (r->kind == EXACT_BLOCK)
			*vec_add(list) = (struct sum){.procedure = r->procedure,
				.from = r->a,
				.exact = r->count,
				.doubted = doubted};
	}
	vec_deinit(&rows);
	free(map.p);
	free(counts.p);
}

static void read_paths(const char *copy, sum_list *list)
{
	struct bytes map = slurp(copy, ".map"), counts = slurp(copy, ".counts");
	struct paths_source s = {.map = map.p,
		.size = map.n,
		.words = (const uint64_t *)counts.p,
		.n = counts.n / 8};
	struct paths_read_summary sum;
	struct path_rows rows = {0};

	if (paths_read(&s, &rows, &sum)) {
		fprintf(stderr, "%s: damaged map\n", copy);
		exit(1);
	}
	printf("%" PRIu32 " procedures, %" PRIu64 " paths ran %" PRIu64 " times, %" PRIu64
	       " unfinished, %" PRIu64 " found no room\n",
		sum.procedures, sum.paths, sum.executions, sum.unfinished, sum.no_room);
	vec_each (r, &rows.list)
		for (uint32_t i = 0; r->is_path && i < r->shape.n; i++)
			*vec_add(list) = (struct sum){.procedure = r->procedure,
				.from = r->shape.blocks[i],
				.paths = r->count};
	path_rows_deinit(&rows);
	free(map.p);
	free(counts.p);
}

int main(int argc, char **argv)
{
	sum_list list = {0};
	size_t different = 0, procedures = 0, doubted = 0;
	uint64_t last = 0, by = 0;

	if (argc != 3) {
		fprintf(stderr, "usage: path_sums EXACT PATHS\n");
		return 2;
	}
	read_exact(argv[1], &list);
	read_paths(argv[2], &list);
	fold(&list);
	vec_each (s, &list) {
		if (s->exact == s->paths)
			continue;
		different++;
		by += s->exact > s->paths ? s->exact - s->paths : s->paths - s->exact;
		if (s->procedure != last) {
			procedures++;
			doubted += s->doubted;
		}
		last = s->procedure;
		if (getenv("VERBOSE"))
			printf("  %#" PRIx64 " block %#" PRIx64 ": exact %" PRIu64
			       ", paths %" PRIu64 "%s\n",
				s->procedure, s->from, s->exact, s->paths,
				s->doubted ? " (doubted)" : "");
	}
	printf("%zu blocks, %zu different in %zu procedures (%zu not exact), by %" PRIu64
	       " in all\n",
		list.n, different, procedures, doubted, by);
	vec_deinit(&list);
	return different != 0;
}
