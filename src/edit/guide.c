#include "edit/guide.h"

#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "flow/graph.h"
#include "store/exact.h"
#include "store/paths.h"

#include <errno.h>
#include <stdlib.h>

/* Exact counts know an edge by its last instruction, paths by its block. */
enum kind { BLOCK, EDGE_OF_INSN, EDGE_OF_BLOCK };

struct place {
	uint64_t from, to;
	uint64_t kind; /* enum kind */
	uint64_t count;
};

struct guide {
	struct hmap places;
	uint64_t hash;
	/* While it is read: */
	const struct image_id *image;
	int64_t id; /* 0: not found */
};

/* ---- reading ---- */

static void add(struct guide *g, enum kind kind, uint64_t from, uint64_t to, uint64_t count)
{
	struct place key = {.from = from, .to = to, .kind = kind}, *p;

	p = hmap_put(&g->places, &key, NULL);
	p->count += count;
}

static int take_exact(struct guide *g, const struct store_profile *p)
{
	struct exact_reader r;
	struct exact_row row;
	int rc = exact_reader_init(&r, p->data, p->size);

	while (!rc && (rc = exact_reader_next(&r, &row)) > 0) {
		rc = 0;
		if (row.kind == EXACT_BLOCK)
			add(g, BLOCK, row.a, 0, row.count);
		else if (row.kind == EXACT_EDGE)
			add(g, EDGE_OF_INSN, row.a, row.b, row.count);
	}
	return rc;
}

static void take_path(struct guide *g, const struct path_row *row)
{
	const struct path_shape *s = &row->shape;

	for (uint32_t i = 0; i < s->n; i++) {
		uint64_t next = i + 1 < s->n ? s->blocks[i + 1] : s->next;

		add(g, BLOCK, s->blocks[i], 0, row->count);
		if (next)
			add(g, EDGE_OF_BLOCK, s->blocks[i], next, row->count);
	}
}

static int take_paths(struct guide *g, const struct store_profile *p)
{
	struct path_reader r;
	struct path_row row;
	int rc = path_reader_init(&r, p->data, p->size);

	while (!rc && (rc = path_reader_next(&r, &row)) > 0) {
		rc = 0;
		if (row.is_path)
			take_path(g, &row);
	}
	path_reader_deinit(&r);
	return rc;
}

static int take(void *arg, const struct store_profile *p)
{
	struct guide *g = arg;

	if (p->image != g->id)
		return 0;
	g->hash = g->hash * 31 + hash_bytes(p->data, p->size);
	return p->type == &blob_exact ? take_exact(g, p) : take_paths(g, p);
}

static int find_image(void *arg, const struct store_image *im)
{
	struct guide *g = arg;

	if (im->kind == IMAGE_ELF && image_id_equal(&im->identity, g->image))
		g->id = im->id;
	return 0;
}

static int read_all(struct guide *g, struct store *s, const char *database, struct err *e)
{
	struct store_filter exact = {.type = &blob_exact}, paths = {.type = &blob_path};
	int rc = store_images(s, find_image, g, e);

	if (rc || !g->id)
		return rc;
	rc = store_profiles(s, &paths, take, g, e);
	if (!rc && !g->places.n)
		rc = store_profiles(s, &exact, take, g, e);
	return rc == -EBADMSG
		       ? err_set(e, rc, "%s: a profile is damaged; 'culprit db check' says which",
				 database)
		       : rc;
}

int guide_create(
	const char *database, const struct image_id *image, struct guide **out, struct err *e)
{
	struct guide *g = xcalloc(1, sizeof *g);
	struct store *s;
	int rc = store_open(database, STORE_READ, &s, e);

	hmap_init(&g->places, sizeof(struct place), offsetof(struct place, count));
	g->image = image;
	if (!rc) {
		rc = read_all(g, s, database, e);
		store_close(s);
	}
	if (rc)
		guide_destroy(g);
	else
		*out = g;
	return rc;
}

void guide_destroy(struct guide *g)
{
	if (!g)
		return;
	hmap_deinit(&g->places);
	free(g);
}

/* ---- asking ---- */

uint64_t guide_hash(const struct guide *g)
{
	return g->hash;
}

static double count_of(const struct guide *g, enum kind kind, uint64_t from, uint64_t to)
{
	struct place key = {.from = from, .to = to, .kind = kind};
	const struct place *p = hmap_get(&g->places, &key);

	return p ? (double)p->count : 0;
}

double guide_block(const struct guide *g, uint64_t start)
{
	return count_of(g, BLOCK, start, 0);
}

double guide_edge(const struct guide *g, uint64_t start, uint64_t last, uint64_t to)
{
	return count_of(g, EDGE_OF_BLOCK, start, to) + count_of(g, EDGE_OF_INSN, last, to);
}

/* ---- links ---- */

static uint64_t last_of(const struct exact_block *b)
{
	return b->start + b->size - b->last;
}

/* Of a link inside. A node that ways out share has one block before it, or several jumps. */
static double inside(const struct guide *g, const struct exact_function *f,
	const struct exact_link *l, const uint32_t *before)
{
	const struct exact_block *blocks = f->blocks.p;
	uint32_t from = l->from;

	if (l->to >= f->blocks.n)
		return guide_block(g, blocks[from].start);
	if (from >= f->blocks.n)
		from = before[from - f->blocks.n];
	if (from == GRAPH_NONE)
		return guide_block(g, blocks[l->to].start);
	return guide_edge(g, blocks[from].start, last_of(&blocks[from]), blocks[l->to].start);
}

/* By table: the only block before it, GRAPH_NONE. */
static uint32_t *blocks_before(const struct exact_function *f)
{
	uint32_t *before = graph_numbers(f->tables + 1, GRAPH_NONE);
	uint32_t *n = graph_numbers(f->tables + 1, 0);

	vec_each (l, &f->links)
		if (l->from < f->blocks.n && l->to >= f->blocks.n && l->to < exact_outside(f)) {
			uint32_t table = l->to - (uint32_t)f->blocks.n;

			before[table] = n[table]++ ? GRAPH_NONE : l->from;
		}
	free(n);
	return before;
}

/* What links from and to the outside carry: what the blocks have more than the other links. */
static void weigh_outside(const struct guide *g, const struct exact_function *f, double *weights)
{
	uint32_t outside = exact_outside(f);
	double *in = xcalloc(outside + 1, sizeof *in), *out = xcalloc(outside + 1, sizeof *out);

	for (size_t i = 0; i < f->links.n; i++) {
		const struct exact_link *l = &f->links.p[i];

		if (l->from != outside && l->to != outside) {
			out[l->from] += weights[i];
			in[l->to] += weights[i];
		}
	}
	for (size_t i = 0; i < f->links.n; i++) {
		const struct exact_link *l = &f->links.p[i];
		uint32_t block = l->from == outside ? l->to : l->from;
		double has, other = l->from == outside ? in[block] : out[block];

		if ((l->from != outside && l->to != outside) || block >= f->blocks.n)
			continue;
		has = guide_block(g, f->blocks.p[block].start);
		weights[i] = has > other ? has - other : 0;
	}
	free(in);
	free(out);
}

bool guide_weights(const struct guide *g, const struct exact_function *f, double *weights)
{
	uint32_t *before = blocks_before(f);
	bool ran = false;

	for (size_t i = 0; i < f->links.n; i++) {
		const struct exact_link *l = &f->links.p[i];
		bool touches = l->from == exact_outside(f) || l->to == exact_outside(f);

		weights[i] = touches ? 0 : inside(g, f, l, before);
	}
	weigh_outside(g, f, weights);
	for (size_t i = 0; i < f->links.n; i++)
		ran |= weights[i] > 0;
	free(before);
	return ran;
}
