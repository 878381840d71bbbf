/*
 * Whether paths are right, in one run, so that it does not matter whether a program does the same
 * in two: a copy that counts paths, and beside them every block and edge by a counter of its own.
 *
 *   edges_beside edit [--atomic] [--full] [--tsc] [--refine DATABASE] FILE COPY
 *   edges_beside compare COPY      after it ran
 *
 * The sum of all paths over a block or an edge must be what its own counter says. Edges that paths
 * do not tell are not compared: out of tables that several jumps share, and behind calls that may
 * come back twice. VERBOSE lists what differs: paths that began and never ended, or mistakes.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "edit/edit.h"
#include "edit/guide.h"
#include "edit/runtime.h"
#include "edit/snippet.h"
#include "paths/paths.h"
#include "paths/read.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A block (to is 0) or an edge, by the starts of blocks. */
struct place {
	uint64_t procedure, from, to;
};

struct beside {
	struct edit *e;
	struct snippet *count;
	uint64_t at; /* of the first counter */
	VEC(struct place) places;
};

/* ---- editing ---- */

static void add_counter(struct beside *b, uint64_t *argument, struct place place)
{
	*argument = edit_data(b->e, RT_COUNTER, RT_COUNTER);
	*vec_add(&b->places) = place;
}

/* By group of edges: how many share its code. */
static uint32_t *group_sizes(const struct edit_function *f)
{
	uint32_t *n = xcalloc(f->flow->graph.edges + 1, sizeof *n);

	for (uint32_t i = 0; i < f->flow->graph.edges; i++)
		n[edit_edge_group(f, i)]++;
	return n;
}

static bool is_inside(const struct flow *flow, uint32_t edge)
{
	return flow->graph.edge[edge].from < flow->nblocks &&
	       flow->graph.edge[edge].to < flow->nblocks;
}

static void count_function(struct beside *b, struct edit_function *f)
{
	const struct flow *flow = f->flow;
	_cleanup_free_ uint32_t *sharing = group_sizes(f);
	uint64_t start = f->procedure->start, at;

	for (uint32_t i = 0; i < flow->nblocks; i++) {
		if (flow->blocks[i].marks & FLOW_PADDING)
			continue;
		add_counter(b, &at, (struct place){start, flow->blocks[i].start, 0});
		edit_before(b->e, f, flow->blocks[i].first, b->count, &at);
	}
	for (uint32_t i = 0; i < flow->graph.edges; i++) {
		if (!is_inside(flow, i) || !edit_edge_carries(f, i) ||
			sharing[edit_edge_group(f, i)] > 1)
			continue;
		add_counter(b, &at,
			(struct place){start, flow->blocks[flow->graph.edge[i].from].start,
				flow->blocks[flow->graph.edge[i].to].start});
		edit_on_edge(b->e, f, i, b->count, &at);
	}
}

/* Behind those of paths, in the same file. */
static void count_all(struct beside *b)
{
	struct edit_function **list;
	size_t n = edit_functions(b->e, &list);
	struct rt_header *h = runtime_header(b->e);

	b->at = edit_data(b->e, 0, RT_COUNTER);
	for (size_t i = 0; i < n; i++)
		if (list[i]->chosen && !list[i]->refused)
			count_function(b, list[i]);
	h->size = edit_data(b->e, 0, 4096) - h->counters;
}

static void save(const char *copy, const char *behind, const void *p, size_t size)
{
	_cleanup_free_ char *path = xasprintf("%s%s", copy, behind);
	FILE *f = fopen(path, "w");

	if (!f || fwrite(p, 1, size, f) != size || fclose(f))
		err(1, "%s", path);
}

static int edit_copy(
	struct paths_options *o, const char *database, const char *file, const char *copy)
{
	_cleanup_free_ char *counts = xasprintf("%s.counts", copy);
	struct beside b = {0};
	struct guide *guide = NULL;
	struct paths *paths = NULL;
	struct buf map = {0};
	struct err e = {0};
	int rc = edit_open(file, &(struct edit_options){0}, &b.e, &e);

	o->counts = counts;
	if (!rc && database)
		rc = guide_create(database, image_id(edit_image(b.e)), &guide, &e);
	o->guide = guide;
	if (!rc)
		rc = snippet_create(o->atomic ? "atomic [a0] += 1" : "[a0] += 1", &b.count, &e);
	if (!rc)
		rc = paths_create(b.e, o, &paths, &map, &e);
	if (!rc) {
		count_all(&b);
		rc = edit_write(b.e, copy, &e);
	}
	if (rc)
		errx(1, "%s", e.text);
	save(copy, ".map", map.p, map.n);
	save(copy, ".places", b.places.p, b.places.n * sizeof *b.places.p);
	paths_destroy(paths);
	guide_destroy(guide);
	snippet_destroy(b.count);
	edit_destroy(b.e);
	buf_deinit(&map);
	vec_deinit(&b.places);
	return 0;
}

/* ---- comparing ---- */

struct sum {
	struct place place;
	uint64_t beside, paths;
	bool counted; /* beside */
};

struct comparing {
	struct hmap sums;
	struct hmap untold; /* blocks (to is 0) whose ways out paths do not tell */
};

static void slurp(const char *copy, const char *behind, struct buf *out)
{
	_cleanup_free_ char *path = xasprintf("%s%s", copy, behind);
	FILE *f = fopen(path, "r");
	char bytes[65536];
	size_t n;

	if (!f)
		err(1, "%s", path);
	while ((n = fread(bytes, 1, sizeof bytes, f)))
		buf_put(out, bytes, n);
	fclose(f);
}

static void add_path(struct comparing *c, const struct path_row *r)
{
	const struct path_shape *s = &r->shape;

	for (uint32_t i = 0; i < s->n; i++) {
		uint64_t next = i + 1 < s->n ? s->blocks[i + 1] : s->next;
		struct sum *to =
			hmap_put(&c->sums, &(struct place){r->procedure, s->blocks[i], 0}, NULL);

		to->paths += r->count;
		if (next) {
			to = hmap_put(
				&c->sums, &(struct place){r->procedure, s->blocks[i], next}, NULL);
			to->paths += r->count;
		} else if (s->end == PATH_NEXT || s->end == PATH_STOP) {
			hmap_put(&c->untold, &(struct place){r->procedure, s->blocks[i], 0}, NULL);
		}
	}
}

static void read_paths(struct comparing *c, const struct buf *map, const uint64_t *words, size_t n)
{
	struct paths_source s = {.map = map->p, .size = map->n, .words = words, .n = n};
	struct paths_read_summary sum;
	struct path_rows rows = {0};

	if (paths_read(&s, &rows, &sum))
		errx(1, "damaged map");
	printf("%" PRIu32 " procedures, %" PRIu64 " paths ran %" PRIu64 " times, %" PRIu64
	       " unfinished, %" PRIu64 " found no room\n",
		sum.procedures, sum.paths, sum.executions, sum.unfinished, sum.no_room);
	vec_each (r, &rows.list)
		if (r->is_path)
			add_path(c, r);
	path_rows_deinit(&rows);
}

static void read_beside(struct comparing *c, const struct buf *places, const uint64_t *counters)
{
	const struct place *list = (const struct place *)places->p;

	for (size_t i = 0; i < places->n / sizeof *list; i++) {
		struct sum *to = hmap_put(&c->sums, &list[i], NULL);

		to->beside += counters[i];
		to->counted = true;
	}
}

static int report(const struct comparing *c)
{
	uint64_t n[2] = {0}, different[2] = {0}, by = 0, untold = 0;

	for (const struct sum *s = NULL; (s = hmap_next(&c->sums, s));) {
		const struct place from = {s->place.procedure, s->place.from, 0};
		bool edge = s->place.to;

		if (edge && (!s->counted || hmap_get(&c->untold, &from))) {
			untold++;
			continue;
		}
		n[edge] += s->beside || s->paths;
		if (s->beside == s->paths)
			continue;
		different[edge]++;
		by += s->beside > s->paths ? s->beside - s->paths : s->paths - s->beside;
		if (getenv("VERBOSE"))
			printf("  %#" PRIx64 " %#" PRIx64 " %#" PRIx64 ": beside %" PRIu64
			       ", paths %" PRIu64 "\n",
				s->place.procedure, s->place.from, s->place.to, s->beside,
				s->paths);
	}
	printf("%" PRIu64 " blocks that ran, %" PRIu64 " different; %" PRIu64
	       " edges that ran, %" PRIu64 " different, %" PRIu64 " not told by paths; by %" PRIu64
	       " in all\n",
		n[0], different[0], n[1], different[1], untold, by);
	return different[0] || different[1];
}

static int compare_copy(const char *copy)
{
	struct comparing c;
	struct buf map = {0}, counts = {0}, places = {0};
	size_t beside;
	int rc;

	hmap_init(&c.sums, sizeof(struct sum), sizeof(struct place));
	hmap_init(&c.untold, sizeof(struct place), sizeof(struct place));
	slurp(copy, ".map", &map);
	slurp(copy, ".counts", &counts);
	slurp(copy, ".places", &places);
	struct paths_map_reader r;
	if (paths_map_open(&r, map.p, map.n))
		errx(1, "%s.map: is damaged", copy);
	beside = r.layout.words;
	if (counts.n / 8 < beside + places.n / sizeof(struct place))
		errx(1, "%s.counts: is too short", copy);
	read_paths(&c, &map, (const uint64_t *)counts.p, beside);
	read_beside(&c, &places, (const uint64_t *)counts.p + beside);
	rc = report(&c);
	hmap_deinit(&c.sums);
	hmap_deinit(&c.untold);
	buf_deinit(&map);
	buf_deinit(&counts);
	buf_deinit(&places);
	return rc;
}

int main(int argc, char **argv)
{
	struct paths_options o = {0};
	const char *database = NULL;
	int i = 2;

	if (argc == 3 && !strcmp(argv[1], "compare"))
		return compare_copy(argv[2]);
	for (; i < argc && !strncmp(argv[i], "--", 2); i++) {
		o.atomic |= !strcmp(argv[i], "--atomic");
		o.full |= !strcmp(argv[i], "--full");
		if (!strcmp(argv[i], "--tsc"))
			measures_parse(&(const char *){MEASURE_CLOCK}, 1, &o.measures, NULL);
		if (!strcmp(argv[i], "--refine"))
			database = argv[++i];
	}
	if (argc != i + 2 || strcmp(argv[1], "edit"))
		errx(2, "usage: edges_beside edit [--atomic] [--full] [--tsc] [--refine DATABASE] "
			"FILE COPY | edges_beside compare COPY");
	return edit_copy(&o, database, argv[i], argv[i + 1]);
}
