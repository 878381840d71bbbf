#include "analyze/path_predict.h"

#include "analyze/path_code.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>

#define STEPS_MOST 1000000 /* of looking for paths that never ran, in one procedure */

/* A way out of a block: to another, out of the procedure, or to where the next path begins. */
struct way {
	uint64_t from, to;
	uint64_t end; /* 0: the path goes on; else 1 + enum path_end, then `to` is next */
	double count;
	double length; /* instructions of the block, if it is left this way */
};

/* How often paths begin at a block, in each manner. */
struct beginning {
	uint64_t block, start;
	double count;
};

struct block_sum {
	uint64_t block;
	double count;
	size_t first; /* of its ways, once they are sorted */
};

/* The edges of one procedure, with their frequencies. */
struct edge_graph {
	struct path_code *code; /* NULL: not known; then a block counts as one instruction */
	struct hmap ways, beginnings, blocks;
	VEC(struct way) sorted; /* by from */
	double longest;         /* instructions of all blocks */
};

static void graph_init(struct edge_graph *g)
{
	*g = (struct edge_graph){0};
	hmap_init(&g->ways, sizeof(struct way), offsetof(struct way, count));
	hmap_init(&g->beginnings, sizeof(struct beginning), offsetof(struct beginning, count));
	hmap_init(&g->blocks, sizeof(struct block_sum), offsetof(struct block_sum, count));
}

static void graph_deinit(struct edge_graph *g)
{
	path_code_destroy(g->code);
	hmap_deinit(&g->ways);
	hmap_deinit(&g->beginnings);
	hmap_deinit(&g->blocks);
	vec_deinit(&g->sorted);
}

static struct way way_out(const struct path_shape *s, uint32_t i)
{
	if (i + 1 < s->n)
		return (struct way){.from = s->blocks[i], .to = s->blocks[i + 1]};
	return (struct way){.from = s->blocks[i], .to = s->next, .end = 1 + (uint64_t)s->end};
}

static double length_of(struct edge_graph *g, const struct way *w)
{
	struct path_shape block = {.n = 1,
		.blocks = &w->from,
		.end = w->end ? (uint8_t)(w->end - 1) : PATH_NEXT,
		.next = w->to};
	uint64_t length = g->code ? path_code_length(g->code, &block) : 0;

	return length ? (double)length : 1;
}

static void add_path(struct edge_graph *g, const struct path_entry *p)
{
	struct beginning begin = {.block = p->shape.blocks[0], .start = p->shape.start};

	((struct beginning *)hmap_put(&g->beginnings, &begin, NULL))->count += (double)p->count;
	for (uint32_t i = 0; i < p->shape.n; i++) {
		struct way way = way_out(&p->shape, i), *w;
		struct block_sum *b = hmap_put(&g->blocks, &way.from, NULL);
		bool fresh;

		b->count += (double)p->count;
		w = hmap_put(&g->ways, &way, &fresh);
		w->count += (double)p->count;
		if (fresh)
			w->length = length_of(g, &way);
	}
}

/* ---- paths that ran ---- */

static double share_of_way(const struct edge_graph *g, const struct way *key)
{
	const struct way *w = hmap_get(&g->ways, key);
	const struct block_sum *b = hmap_get(&g->blocks, &key->from);

	return w && b && b->count > 0 ? w->count / b->count : 0;
}

static double predict(const struct edge_graph *g, const struct path_shape *s)
{
	struct beginning key = {.block = s->blocks[0], .start = s->start};
	const struct beginning *begin = hmap_get(&g->beginnings, &key);
	double count = begin ? begin->count : 0;

	for (uint32_t i = 0; i < s->n; i++) {
		struct way way = way_out(s, i);

		count *= share_of_way(g, &way);
	}
	return count;
}

/* ---- paths that are foretold, whether they ran or not ---- */

static int compare_ways(const void *a, const void *b)
{
	const struct way *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

static void sort_ways(struct edge_graph *g)
{
	for (const struct way *w = NULL; (w = hmap_next(&g->ways, w));)
		*vec_add(&g->sorted) = *w;
	vec_sort(&g->sorted, compare_ways);
	for (size_t i = g->sorted.n; i--;) {
		struct block_sum *b = hmap_get(&g->blocks, &g->sorted.p[i].from);

		b->first = i;
		g->longest += g->sorted.p[i].length;
	}
}

/* A block of the path that is being followed. */
struct step {
	uint64_t block;
	size_t way;           /* the next one out of it to try */
	double count, length; /* of the path so far, without the block's own instructions */
};

struct search {
	const struct edge_graph *graph;
	double least; /* the flow from which on a path is hot */
	uint64_t steps, found;
	VEC(struct step) stack;
};

static void go_to(struct search *s, uint64_t block, double count, double length)
{
	const struct block_sum *b = hmap_get(&s->graph->blocks, &block);

	if (b && count * (length + s->graph->longest) >= s->least)
		*vec_add(&s->stack) = (struct step){block, b->first, count, length};
}

/* The path goes on by one way; one that can no longer become hot is given up. */
static void take_way(struct search *s, const struct way *w, double count, double length)
{
	const struct block_sum *b = hmap_get(&s->graph->blocks, &w->from);

	count *= w->count / b->count;
	length += w->length;
	if (!w->end)
		go_to(s, w->to, count, length);
	else if (count * length >= s->least)
		s->found++;
}

/* Follows all ways from where paths begin; blocks never come again on a path. */
static void follow(struct search *s, const struct beginning *from)
{
	const struct edge_graph *g = s->graph;

	s->stack.n = 0;
	go_to(s, from->block, from->count, 0);
	while (s->stack.n && s->steps < STEPS_MOST) {
		struct step *at = &s->stack.p[s->stack.n - 1];
		const struct way *w = at->way < g->sorted.n ? &g->sorted.p[at->way] : NULL;

		s->steps++;
		at->way++;
		if (w && w->from == at->block)
			take_way(s, w, at->count, at->length);
		else
			s->stack.n--;
	}
}

static uint64_t count_foretold(struct edge_graph *g, double least)
{
	struct search s = {.graph = g, .least = least};

	sort_ways(g);
	for (const struct beginning *b = NULL; (b = hmap_next(&g->beginnings, b));)
		follow(&s, b);
	vec_deinit(&s.stack);
	return s.found;
}

/* ---- the whole ---- */

static double flow_of(double count, const struct path_entry *p)
{
	return count * (double)(p->length ? p->length : p->shape.n);
}

static void compare(const struct path_entry *p, double predicted, double least,
	struct path_prediction *out, double *common)
{
	double flow = flow_of((double)p->count, p), said = flow_of(predicted, p);

	*common += flow < said ? flow : said;
	out->hot += flow >= least;
	out->foretold += flow >= least && said >= least;
	out->wrong += flow < least && said >= least;
}

static void predict_procedure(struct path_codes *codes, const struct path_procedure *p,
	const struct path_entry *paths, double least, struct path_prediction *out, double *common)
{
	struct edge_graph g;
	uint64_t ran = out->foretold + out->wrong, all;

	graph_init(&g);
	if (p->procedure)
		path_code_create(codes, p->image, p->procedure, &g.code);
	for (size_t i = p->first; i < p->first + p->n; i++)
		add_path(&g, &paths[i]);
	for (size_t i = p->first; i < p->first + p->n; i++) {
		out->counts[i] = predict(&g, &paths[i].shape);
		compare(&paths[i], out->counts[i], least, out, common);
	}
	all = count_foretold(&g, least);
	ran = out->foretold + out->wrong - ran;
	out->never += all > ran ? all - ran : 0;
	graph_deinit(&g);
}

void path_predict(const struct path_list *l, double hot, struct path_prediction *out)
{
	const struct path_procedure *procedures;
	const struct path_entry *paths;
	size_t n = path_list_procedures(l, &procedures), npaths = path_list_all(l, &paths);
	double whole = 0, common = 0;

	*out = (struct path_prediction){.counts = xcalloc(npaths + 1, sizeof *out->counts)};
	for (size_t i = 0; i < npaths; i++)
		whole += flow_of((double)paths[i].count, &paths[i]);
	for (size_t i = 0; i < n; i++)
		predict_procedure(
			path_list_codes(l), &procedures[i], paths, hot * whole, out, &common);
	out->overlap = whole > 0 ? common / whole : 0;
}

void path_prediction_deinit(struct path_prediction *p)
{
	free(p->counts);
	*p = (struct path_prediction){0};
}
