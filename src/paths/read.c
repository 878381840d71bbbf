#include "paths/read.h"

#include "base/mem.h"
#include "paths/join.h"
#include "paths/map.h"
#include "rt/rt.h"

#include <errno.h>
#include <stdlib.h>

/* A path of the table that was counted. */
struct hashed {
	uint64_t key, count;
	const uint64_t *sums;
};

struct reading {
	const struct paths_source *source;
	struct path_rows *rows;
	struct paths_read_summary *sum;
	struct paths_map_reader map;
	VEC(struct hashed) hashed; /* by key */
	/* Of one procedure: */
	struct path_function function;
	struct numbering numbering;
	number_path path;
	uint64_t *begun, *ended; /* by node: paths that began there behind a cut; that went there */
	size_t first;            /* its row */
	uint64_t off;            /* by how much counts do not add up that others tell of */
};

/* ---- one path ---- */

static uint8_t start_of(const struct path_function *f, const struct numbering *n, uint32_t edge)
{
	if (edge >= n->given)
		return PATH_AGAIN;
	return f->graph.links.p[edge].kind == EXACT_LINK_ENTRY ? PATH_ENTRY : PATH_ENTERED;
}

static uint8_t end_of(const struct path_function *f, const struct numbering *n, uint32_t edge)
{
	if (n->cut[edge])
		return PATH_NEXT;
	switch (f->graph.links.p[edge].kind) {
	case EXACT_LINK_RETURN:
		return PATH_RETURN;
	case EXACT_LINK_TAIL:
		return PATH_TAIL;
	default:
		return PATH_STOP;
	}
}

/* 0: a table that several jumps share. */
static uint64_t next_of(const struct path_function *f, const struct numbering *n, uint32_t edge)
{
	uint32_t to = f->graph.links.p[edge].to;

	return n->cut[edge] && to < f->graph.blocks.n ? f->graph.blocks.p[to].start : 0;
}

/* How often each metric is read on the path, and stretches between readings that are its own. */
struct effort {
	uint64_t readings, stretches;
};

static struct effort effort_of(const struct reading *r)
{
	const struct path_function *f = &r->function;
	uint32_t first = r->path.p[0];
	struct effort sum = {1, 1};

	if (!f->readings.n)
		return (struct effort){0};
	if (first < r->numbering.given)
		sum.readings += f->graph.links.p[first].kind != EXACT_LINK_ENTRY || !f->takes;
	for (size_t i = 0; i + 1 < r->path.n; i++) {
		uint32_t block = r->numbering.dag.edge[r->path.p[i]].to;

		if (block >= f->readings.n)
			continue;
		sum.readings += f->readings.p[block];
		sum.stretches += f->readings.p[block] > 0;
	}
	return sum;
}

static void add_metrics(
	const struct reading *r, uint64_t count, const uint64_t *sums, struct path_row *row)
{
	unsigned n = (unsigned)(r->map.layout.stride - 1);
	struct effort effort = effort_of(r);

	for (unsigned i = 0; i < n; i++) {
		row->metrics[i] = sums[i];
		r->sum->sums[i] += sums[i];
	}
	if (n)
		row->metrics[n] = count * effort.readings;
	if (n && n + 1 < METRICS_MOST)
		row->metrics[n + 1] = count * effort.stretches;
	r->sum->readings += count * effort.readings;
	r->sum->stretches += count * effort.stretches;
}

/* Blocks are numbers in the list until all are there. */
static bool shape_of(const struct path_function *f, const struct numbering *n,
	const number_path *path, block_list *blocks, struct path_shape *out)
{
	uint32_t last = path->p[path->n - 1];
	size_t first = blocks->n;

	for (size_t i = 0; i + 1 < path->n; i++) {
		uint32_t to = n->dag.edge[path->p[i]].to;

		if (to < f->graph.blocks.n)
			*vec_add(blocks) = f->graph.blocks.p[to].start;
	}
	*out = (struct path_shape){.start = start_of(f, n, path->p[0]),
		.end = end_of(f, n, last),
		.n = (uint32_t)(blocks->n - first),
		.blocks = (const uint64_t *)(uintptr_t)first,
		.next = next_of(f, n, last)};
	return out->n;
}

static void add_row(struct reading *r, uint64_t count, const uint64_t *sums)
{
	struct path_row row = {
		.procedure = r->function.graph.start, .is_path = true, .count = count};

	if (!shape_of(&r->function, &r->numbering, &r->path, &r->rows->blocks, &row.shape))
		return; /* an entry that is counted apart, or a table */
	add_metrics(r, count, sums, &row);
	*vec_add(&r->rows->list) = row;
}

/* Where the path in r->path began and went to, if others came before and follow. */
static void note_ends(struct reading *r, uint64_t count)
{
	uint32_t first = r->path.p[0], last = r->path.p[r->path.n - 1];

	if (first >= r->numbering.given)
		r->begun[r->numbering.dag.edge[first].to] += count;
	if (r->numbering.cut[last])
		r->ended[r->function.graph.links.p[last].to] += count;
}

static void take_path(struct reading *r, uint64_t count, const uint64_t *sums)
{
	r->sum->paths++;
	r->sum->executions += count;
	add_row(r, count, sums);
}

/* What was measured follows the counter. */
static void add_path(struct reading *r, uint64_t number, uint64_t count, const uint64_t *sums)
{
	numbering_decode(&r->numbering, number, &r->path);
	note_ends(r, count);
	take_path(r, count, sums);
}

/* ---- one procedure ---- */

static int by_key(const void *a, const void *b)
{
	const struct hashed *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

static void add_hashed(struct reading *r)
{
	size_t low = 0, high = r->hashed.n;
	const struct path_function *f = &r->function;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (r->hashed.p[middle].key < f->first)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < r->hashed.n && r->hashed.p[low].key - f->first < r->numbering.total; low++)
		add_path(r, r->hashed.p[low].key - f->first, r->hashed.p[low].count,
			r->hashed.p[low].sums);
	vec_each (x, &f->fixed) {
		const uint64_t *counter = r->source->words + x->word;

		if (*counter)
			add_path(r, x->number, *counter, counter + 1);
	}
}

/* Pieces are put together as far as that is certain. */
static void add_joined(struct reading *r, const uint64_t *counts)
{
	struct joining j = {0};
	struct numbering whole;
	struct graph g;

	for (uint64_t i = 0; i < r->numbering.total; i++) {
		if (!counts[i])
			continue;
		numbering_decode(&r->numbering, i, &r->path);
		note_ends(r, counts[i]);
		join_add(&j, &r->numbering, &r->path, counts[i]);
	}
	path_graph(&r->function.graph, &g);
	numbering_init(&whole, &g, r->numbering.outside, &(struct number_wish){0});
	join_all(&j, &r->numbering, &g, whole.cut);
	numbering_deinit(&whole);
	graph_deinit(&g);
	vec_each (p, &j.pieces) {
		r->path.n = 0;
		for (size_t i = 0; i < p->n; i++)
			*vec_add(&r->path) = j.edges.p[p->first + i];
		take_path(r, p->count, NULL);
	}
	joining_deinit(&j);
}

static int add_counted(struct reading *r)
{
	const struct path_function *f = &r->function;
	const uint64_t *counter = r->source->words + f->first;
	uint64_t total = r->numbering.total, stride = r->map.layout.stride;
	uint64_t *counts = xmalloc(total * sizeof *counts);
	int rc = 0;

	for (uint64_t i = 0; i < total; i++)
		counts[i] = counter[i * stride];
	if (f->derived.n)
		rc = derive_counts(&r->numbering, f->derived.p, f->derived.n, counts, &r->off);
	if (!rc && f->pieces && stride == 1)
		add_joined(r, counts);
	else
		for (uint64_t i = 0; i < total && !rc; i++)
			if (counts[i])
				add_path(r, i, counts[i], counter + i * stride + 1);
	free(counts);
	return rc;
}

static uint64_t unfinished(const struct reading *r)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->numbering.dag.nodes; i++)
		if (r->ended[i] > r->begun[i])
			sum += r->ended[i] - r->begun[i];
	return sum;
}

/* Cuts that no loop needs. */
static uint64_t more_cuts(const struct path_function *f, const struct numbering *n)
{
	struct numbering full;
	struct graph g;
	uint64_t more;

	path_graph(&f->graph, &g);
	numbering_init(&full, &g, n->outside, &(struct number_wish){0});
	more = n->ncut > full.ncut - full.shortened ? n->ncut - (full.ncut - full.shortened) : 0;
	numbering_deinit(&full);
	graph_deinit(&g);
	return more;
}

static int read_procedure(struct reading *r)
{
	const struct path_function *f = &r->function;
	size_t nodes = r->numbering.dag.nodes;
	int rc = 0;

	r->begun = xcalloc(nodes + 1, sizeof *r->begun);
	r->ended = xcalloc(nodes + 1, sizeof *r->ended);
	r->first = r->rows->list.n;
	*vec_add(&r->rows->list) = (struct path_row){
		.procedure = f->graph.start, .how = f->how, .potential = r->numbering.total};
	r->off = 0;
	if (f->how == PATH_HOW_HASH)
		add_hashed(r);
	else
		rc = add_counted(r);
	if (r->rows->list.n == r->first + 1) {
		r->rows->list.n--;
	} else {
		uint64_t lost = unfinished(r);

		if (f->shortened)
			r->rows->list.p[r->first].cuts = more_cuts(f, &r->numbering);
		lost += r->off;
		r->rows->list.p[r->first].off = lost + (r->source->shared && !lost);
		r->sum->unfinished += lost;
		r->sum->procedures++;
	}
	free(r->begun);
	free(r->ended);
	return rc;
}

/* ---- all ---- */

static void read_table(struct reading *r)
{
	const struct path_layout *l = &r->map.layout;
	const uint64_t *table = r->source->words + l->hash, *entry = table + RT_TABLE_FIRST;

	for (uint64_t i = 0; i < l->entries; i++, entry += path_entry_words(l))
		if (entry[0] && entry[1])
			*vec_add(&r->hashed) = (struct hashed){entry[0] - 1, entry[1], entry + 2};
	r->sum->no_room = l->entries ? table[RT_TABLE_NO_ROOM] : 0;
	for (size_t i = 0; i < r->source->nhashed; i++) {
		const struct paths_hashed *p = &r->source->hashed[i];

		*vec_add(&r->hashed) = (struct hashed){p->key, p->count, p->sums};
	}
	vec_sort(&r->hashed, by_key);
}

static void add_to(struct path_row *sum, const struct path_row *row)
{
	sum->count += row->count;
	for (int i = 0; i < METRICS_MOST; i++)
		sum->metrics[i] += row->metrics[i];
}

/* Two branches between the same blocks are one path to whoever looks at blocks. */
static void finish(struct path_rows *rows)
{
	size_t n = 0;

	vec_each (row, &rows->list)
		if (row->is_path)
			row->shape.blocks = rows->blocks.p + (uintptr_t)row->shape.blocks;
	vec_sort(&rows->list, path_row_compare);
	vec_each (row, &rows->list) {
		if (n && row->is_path && !path_row_compare(row, &rows->list.p[n - 1]))
			add_to(&rows->list.p[n - 1], row);
		else
			rows->list.p[n++] = *row;
	}
	rows->list.n = n;
}

int paths_read(const struct paths_source *s, struct path_rows *rows, struct paths_read_summary *sum)
{
	struct reading r = {.source = s, .rows = rows, .sum = sum};
	int rc = paths_map_open(&r.map, s->map, s->size);

	*sum = (struct paths_read_summary){0};
	if (!rc && r.map.layout.words > s->n)
		rc = -EBADMSG;
	if (!rc) {
		sum->metrics = r.map.layout.metrics;
		sum->unmeasured = r.map.layout.unmeasured;
		read_table(&r);
	}
	while (!rc && (rc = paths_map_next(&r.map, &r.function, &r.numbering)) > 0) {
		rc = read_procedure(&r);
		numbering_deinit(&r.numbering);
	}
	finish(rows);
	path_function_deinit(&r.function);
	vec_deinit(&r.hashed);
	vec_deinit(&r.path);
	return rc;
}

void path_rows_deinit(struct path_rows *r)
{
	vec_deinit(&r->list);
	vec_deinit(&r->blocks);
}

bool paths_read_shape(const struct path_function *f, const struct numbering *n, uint64_t number,
	number_path *memory, block_list *blocks, struct path_shape *out)
{
	blocks->n = 0;
	numbering_decode(n, number, memory);
	if (!shape_of(f, n, memory, blocks, out))
		return false;
	out->blocks = blocks->p;
	return true;
}

void paths_summary_add(struct paths_read_summary *to, const struct paths_read_summary *sum)
{
	to->procedures += sum->procedures;
	to->paths += sum->paths;
	to->executions += sum->executions;
	to->unfinished += sum->unfinished;
	to->no_room += sum->no_room;
	for (int i = 0; i < RT_METRICS; i++)
		to->sums[i] += sum->sums[i];
	to->readings += sum->readings;
	to->stretches += sum->stretches;
	to->unmeasured += sum->unmeasured;
	if (sum->metrics.n)
		to->metrics = sum->metrics;
}
