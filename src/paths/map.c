#include "paths/map.h"

#include "rt/rt.h"

#include <errno.h>

/*
 * A map: u64 MAP_MAGIC, then ulebs: words; words of a path; procedures that are not measured; first
 * word and entries of the table; names of metrics (store/metrics.h); bytes of the map of the
 * graphs, which follows.
 *
 * Then functions, as the graphs are: u8 enum path_how, with bit 7 when shortened, bit 6 when in
 * pieces; uleb first; number of values, each a uleb; number of fixed counters, each two: number,
 * word; number of derived paths, each one: twice the number, and 1 more if by its end; number of
 * blocks, 0 where nothing is measured; u8 whether the entry takes a reading that was left for it;
 * for each block u8 readings.
 */
#define MAP_MAGIC     0x3270614d68746150
#define MAP_SHORTENED 0x80
#define MAP_PIECES    0x40
#define KEYS_MOST     ((uint64_t)1 << 63)

void path_function_deinit(struct path_function *f)
{
	exact_function_deinit(&f->graph);
	vec_deinit(&f->values);
	vec_deinit(&f->fixed);
	vec_deinit(&f->derived);
	vec_deinit(&f->readings);
}

/* ---- writing ---- */

void paths_map_add(struct paths_map_writer *w, struct path_function *f)
{
	struct buf *out = &w->body;

	exact_map_add(&w->graphs, &f->graph);
	buf_u8(out, (uint8_t)(f->how | (f->shortened ? MAP_SHORTENED : 0) |
			      (f->pieces ? MAP_PIECES : 0)));
	buf_uleb(out, f->first);
	buf_uleb(out, f->values.n);
	vec_each (v, &f->values)
		buf_uleb(out, *v);
	buf_uleb(out, f->fixed.n);
	vec_each (x, &f->fixed) {
		buf_uleb(out, x->number);
		buf_uleb(out, x->word);
	}
	buf_uleb(out, f->derived.n);
	vec_each (d, &f->derived)
		buf_uleb(out, d->number * 2 + d->by_end);
	buf_uleb(out, f->readings.n);
	buf_u8(out, f->takes);
	buf_put(out, f->readings.p, f->readings.n);
}

void paths_map_finish(struct paths_map_writer *w, const struct path_layout *layout,
	const struct image_id *id, const char *path, struct buf *out)
{
	struct buf graphs = {0};

	exact_map_finish(&w->graphs, id, path, &graphs);
	buf_u64(out, MAP_MAGIC);
	buf_uleb(out, layout->words);
	buf_uleb(out, layout->stride);
	buf_uleb(out, layout->unmeasured);
	buf_uleb(out, layout->hash);
	buf_uleb(out, layout->entries);
	metric_names_put(&layout->metrics, out);
	buf_uleb(out, graphs.n);
	buf_put(out, graphs.p, graphs.n);
	buf_put(out, w->body.p, w->body.n);
	buf_deinit(&graphs);
	buf_deinit(&w->body);
}

/* ---- reading ---- */

static bool layout_makes_sense(const struct path_layout *l)
{
	if (l->hash > l->words || l->stride != 1 + l->metrics.n || l->metrics.n > RT_METRICS ||
		(l->entries & (l->entries - 1)))
		return false;
	return !l->entries ||
	       (l->words - l->hash >= RT_TABLE_FIRST &&
		       (l->words - l->hash - RT_TABLE_FIRST) / path_entry_words(l) >= l->entries);
}

int paths_map_open(struct paths_map_reader *r, const void *p, size_t n)
{
	uint64_t size;
	struct cursor graphs;

	*r = (struct paths_map_reader){.at = cursor_over(p, n)};
	if (cursor_u64(&r->at) != MAP_MAGIC)
		return -EBADMSG;
	r->layout.words = cursor_uleb(&r->at);
	r->layout.stride = cursor_uleb(&r->at);
	r->layout.unmeasured = cursor_uleb(&r->at);
	r->layout.hash = cursor_uleb(&r->at);
	r->layout.entries = cursor_uleb(&r->at);
	if (metric_names_read(&r->layout.metrics, &r->at))
		return -EBADMSG;
	size = cursor_uleb(&r->at);
	graphs = cursor_slice(&r->at, size);
	if (r->at.failed || !layout_makes_sense(&r->layout))
		return -EBADMSG;
	return exact_map_open(&r->graphs, graphs.at, cursor_left(&graphs));
}

static void read_values(struct cursor *at, struct path_function *out)
{
	uint64_t values = cursor_uleb(at), fixed;

	out->values.n = out->fixed.n = 0;
	if (values > cursor_left(at))
		at->failed = true;
	for (uint64_t i = 0; i < values && !at->failed; i++)
		*vec_add(&out->values) = cursor_uleb(at);
	fixed = cursor_uleb(at);
	if (fixed > cursor_left(at))
		at->failed = true;
	for (uint64_t i = 0; i < fixed && !at->failed; i++) {
		uint64_t number = cursor_uleb(at);

		*vec_add(&out->fixed) = (struct path_fixed){number, cursor_uleb(at)};
	}
}

static void read_derived(struct cursor *at, struct path_function *out)
{
	uint64_t n = cursor_uleb(at);

	out->derived.n = 0;
	if (n > cursor_left(at))
		at->failed = true;
	for (uint64_t i = 0; i < n && !at->failed; i++) {
		uint64_t d = cursor_uleb(at);

		*vec_add(&out->derived) = (struct path_derived){d / 2, d & 1};
	}
}

static void read_readings(struct cursor *at, struct path_function *out)
{
	uint64_t n = cursor_uleb(at);

	out->readings.n = 0;
	out->takes = cursor_u8(at);
	if (n && n != out->graph.blocks.n)
		at->failed = true;
	for (uint64_t i = 0; i < n && !at->failed; i++)
		*vec_add(&out->readings) = cursor_u8(at);
}

void path_graph(const struct exact_function *f, struct graph *out)
{
	VEC(struct graph_edge) list = {0};

	vec_each (l, &f->links)
		*vec_add(&list) = (struct graph_edge){l->from, l->to};
	graph_init(out, exact_outside(f) + 1, list.p, (uint32_t)list.n);
	vec_deinit(&list);
}

static int recall(const struct path_function *f, struct numbering *n)
{
	bool *cut = xcalloc(f->graph.links.n + 1, sizeof *cut);
	struct graph g;
	int rc;

	for (size_t i = 0; i < f->graph.links.n; i++)
		cut[i] = f->graph.links.p[i].counted;
	path_graph(&f->graph, &g);
	rc = numbering_recall(n, &g, exact_outside(&f->graph), cut, f->values.p, f->values.n);
	graph_deinit(&g);
	free(cut);
	return rc;
}

static bool counters_make_sense(
	const struct path_function *f, const struct numbering *n, const struct path_layout *l)
{
	uint64_t most = f->how == PATH_HOW_HASH ? KEYS_MOST : l->hash;
	uint64_t each = f->how == PATH_HOW_HASH ? 1 : l->stride;

	if (f->first > most || n->total > (most - f->first) / each)
		return false;
	vec_each (x, &f->fixed)
		if (x->number >= n->total || x->word > l->hash || l->hash - x->word < l->stride)
			return false;
	return f->how == PATH_HOW_HASH ? !f->derived.n : !f->fixed.n;
}

int paths_map_next(struct paths_map_reader *r, struct path_function *out, struct numbering *n)
{
	int rc = exact_map_next(&r->graphs);
	uint8_t how;

	if (rc <= 0)
		return rc;
	rc = exact_map_read(&r->graphs, &out->graph);
	if (rc)
		return rc;
	how = cursor_u8(&r->at);
	out->how = how & ~(MAP_SHORTENED | MAP_PIECES);
	out->shortened = how & MAP_SHORTENED;
	out->pieces = how & MAP_PIECES;
	out->first = cursor_uleb(&r->at);
	read_values(&r->at, out);
	read_derived(&r->at, out);
	read_readings(&r->at, out);
	if (r->at.failed || out->how >= PATH_HOWS)
		return -EBADMSG;
	rc = recall(out, n);
	if (rc)
		return rc;
	if (counters_make_sense(out, n, &r->layout))
		return 1;
	numbering_deinit(n);
	return -EBADMSG;
}
