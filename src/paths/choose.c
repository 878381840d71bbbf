#include "paths/choose.h"

#include "base/mem.h"
#include "edit/guide.h"
#include "paths/fast.h"
#include "paths/refine.h"
#include "paths/seams.h"

#include <stdlib.h>
#include <string.h>

/* Places of the variable: registers; words, which take memory by instruction. */
#define PARTS 256
#define WORDS 8

#define LITTLE_MORE 1.02 /* what fewer counters may cost */

/* Walks begin with the first link: loops are then entered as the procedure is. */
static void put_entry_first(struct choosing *c)
{
	struct exact_function *f = &c->model.graph;

	for (size_t i = 1; i < f->links.n; i++) {
		if (f->links.p[i].kind != EXACT_LINK_ENTRY)
			continue;
		struct exact_link link = f->links.p[i];
		struct exact_place place = c->places.p[i];

		f->links.p[i] = f->links.p[0];
		c->places.p[i] = c->places.p[0];
		f->links.p[0] = link;
		c->places.p[0] = place;
	}
}

/* Code for a block's ways out may stand at its start: a path that ends there would lack the block.
 */
static bool may_end_on(const struct choosing *c, size_t link)
{
	const struct exact_place *p = &c->places.p[link];
	const struct flow *flow = c->function->flow;
	uint32_t from = c->model.graph.links.p[link].from;

	if (p->how != EXACT_BEFORE || from >= flow->nblocks)
		return p->how != EXACT_NOWHERE;
	return p->where == flow->blocks[from].first + flow->blocks[from].count - 1;
}

/* By what earlier runs counted, if the procedure ran then; else by guesses. */
static void weigh(struct choosing *c)
{
	size_t n = c->places.n;

	vec_reserve(&c->weights, n + 1);
	vec_reserve(&c->cuttable, n + 1);
	c->weights.n = c->cuttable.n = n;
	c->refined = c->guide && guide_weights(c->guide, &c->model.graph, c->weights.p);
	c->function->seldom = c->guide && !c->refined;
	for (size_t i = 0; i < n; i++) {
		const struct exact_place *place = &c->places.p[i];

		c->weights.p[i] = c->refined ? c->weights.p[i] * place->price : place->weight;
		c->cuttable.p[i] = may_end_on(c, i) ? c->weights.p[i] : -1;
	}
}

/* Whoever comes to a safe node goes on: nobody is called who may not come back. */
static void find_safe(struct choosing *c)
{
	const struct exact_function *f = &c->model.graph;
	uint32_t outside = exact_outside(f);

	vec_reserve(&c->safe, outside + 1);
	c->safe.n = outside + 1;
	for (uint32_t i = 0; i <= outside; i++)
		c->safe.p[i] = i >= f->blocks.n || f->blocks.p[i].call == EXACT_CALLS_NOBODY;
	vec_each (l, &f->links)
		if (l->kind == EXACT_LINK_TAIL)
			c->safe.p[l->from] = true;
}

/* And code can be on all ways to an early one. */
static void find_early(struct choosing *c)
{
	const struct exact_function *f = &c->model.graph;

	vec_reserve(&c->early, c->safe.n);
	c->early.n = c->safe.n;
	memcpy(c->early.p, c->safe.p, c->safe.n * sizeof *c->safe.p);
	for (size_t i = 0; i < f->links.n; i++)
		if (c->cuttable.p[i] < 0)
			c->early.p[f->links.p[i].to] = false;
}

/* By link, to be freed: what is wanted to be cut, and where paths end in any case. */
static bool *all_cuts(const struct choosing *c, const bool *cut)
{
	bool *all = xcalloc(c->graph.edges + 1, sizeof *all);

	for (uint32_t i = 0; i < c->graph.edges; i++) {
		const struct exact_place *p = &c->places.p[i];

		all[i] = (cut && cut[i]) ||
			 (p->how == EXACT_ON_EDGE && c->ends[p->where] &&
				 c->model.graph.links.p[i].kind == EXACT_LINK_INSIDE);
	}
	return all;
}

static void number(struct choosing *c, const bool *cut, uint64_t limit)
{
	_cleanup_free_ bool *all = c->ends ? all_cuts(c, cut) : NULL;
	struct number_wish wish = {.cut = all ? all : cut,
		.weight = c->cuttable.p,
		.limit = limit,
		.often = c->weights.p};

	numbering_init(&c->numbering, &c->graph, exact_outside(&c->model.graph), &wish);
	plan_init(&c->plan, &c->numbering, c->weights.p, c->to_the_end ? NULL : c->early.p);
	c->model.derived.n = 0;
	if (c->derives && c->numbering.total <= c->array)
		derive_choose(&c->numbering, c->weights.p, c->safe.p, &c->plan, &c->model.derived);
}

static void forget(struct choosing *c)
{
	plan_deinit(&c->plan);
	numbering_deinit(&c->numbering);
}

/* What is behind a table that several jumps share finds the variable in one place, so the blocks
 * there hang together with all of them. */
static void hold_behind_tables(const struct choosing *c, bool *blocks)
{
	const struct exact_function *f = &c->model.graph;

	vec_each (l, &f->links)
		if (l->from >= f->blocks.n && l->from < exact_outside(f) && l->to < f->blocks.n &&
			c->plan.held[l->from] && graph_in_degree(&c->graph, l->from) > 1)
			blocks[l->to] = true;
}

/* Blocks where the variable must have its value: those where the sum is not known, also behind
 * them in a node that their ways out share. */
static bool *held_blocks(const struct choosing *c)
{
	const struct exact_function *f = &c->model.graph;
	bool *blocks = xmemdup(c->plan.held, f->blocks.n + 1);

	vec_each (l, &f->links)
		if (l->from < f->blocks.n && l->to >= f->blocks.n && l->to < exact_outside(f))
			blocks[l->from] |= c->plan.held[l->to];
	hold_behind_tables(c, blocks);
	return blocks;
}

/* Takes the blocks that hang together with one of them out of the set. */
static void take_part(const struct flow *flow, bool *blocks, bool *part, uint32_t *stack)
{
	uint32_t depth = 0, first = 0;

	while (!blocks[first])
		first++;
	memset(part, 0, flow->nblocks);
	stack[depth++] = first;
	blocks[first] = false;
	while (depth) {
		uint32_t node = stack[--depth];

		part[node] = true;
		graph_each_out (e, &flow->graph, node) {
			uint32_t to = flow->graph.edge[*e].to;

			if (to < flow->nblocks && blocks[to]) {
				blocks[to] = false;
				stack[depth++] = to;
			}
		}
		graph_each_in (e, &flow->graph, node) {
			uint32_t from = flow->graph.edge[*e].from;

			if (from < flow->nblocks && blocks[from]) {
				blocks[from] = false;
				stack[depth++] = from;
			}
		}
	}
}

/* Each part has a place to itself: a loop may have a register where the rest calls others. What is
 * left in the set has none. */
static void have_registers(struct choosing *c, bool *blocks, bool *part, uint32_t *stack)
{
	const struct flow *flow = c->function->flow;
	bool *left = xmemdup(blocks, flow->nblocks + 1);

	for (int i = 0; i < PARTS && memchr(left, true, flow->nblocks); i++) {
		take_part(flow, left, part, stack);
		if (!edit_variable_in_register(c->scene.edit, c->function, c->variable, part))
			continue;
		for (uint32_t k = 0; k < flow->nblocks; k++)
			blocks[k] &= !part[k];
	}
	free(left);
}

/* The same on the stack, or below it. */
static bool have_words(struct choosing *c, bool *blocks, bool *part, uint32_t *stack)
{
	const struct flow *flow = c->function->flow;
	const char *why;
	bool had = true;

	for (int i = 1; had && memchr(blocks, true, flow->nblocks); i++) {
		if (i < WORDS) {
			take_part(flow, blocks, part, stack);
		} else {
			memcpy(part, blocks, flow->nblocks);
			memset(blocks, false, flow->nblocks);
		}
		had = edit_variable(c->scene.edit, c->function, c->variable, part, &why);
	}
	return had;
}

static bool have_variable(struct choosing *c)
{
	const struct flow *flow = c->function->flow;
	bool *blocks = held_blocks(c), *part = xcalloc(flow->nblocks + 1, sizeof *part);
	uint32_t *stack = graph_numbers(flow->nblocks, 0);
	bool had;

	have_registers(c, blocks, part, stack);
	if (!c->to_the_end && !c->full && memchr(blocks, true, flow->nblocks))
		fast_find(c, blocks);
	for (uint32_t i = 0; i < flow->nblocks; i++)
		blocks[i] &= !c->fast.p[i];
	had = have_words(c, blocks, part, stack);
	free(blocks);
	free(part);
	free(stack);
	return had;
}

static void choose_how(struct choosing *c, bool bare)
{
	struct path_function *m = &c->model;
	uint64_t total = c->numbering.total;

	m->shortened = c->numbering.ncut > c->loops + c->certain;
	m->how = bare               ? PATH_HOW_SHORT
		 : total > c->array ? PATH_HOW_HASH
		 : total > 1        ? PATH_HOW_ARRAY
				    : PATH_HOW_ONE;
	m->fixed.n = 0;
}

/* Beside what is cut so far; not before tables, which are no blocks that a path could go on to. */
static void cut_at_seams(struct choosing *c, bool certain, bool *cut)
{
	double *often = xcalloc(c->graph.edges + 1, sizeof *often);
	bool *can = xcalloc(c->graph.edges + 1, sizeof *can);
	bool *dear = xcalloc(c->graph.edges + 1, sizeof *dear);

	for (uint32_t i = 0; i < c->graph.edges; i++) {
		often[i] = c->weights.p[i] / c->places.p[i].price;
		can[i] = c->cuttable.p[i] >= 0 && c->graph.edge[i].to < c->model.graph.blocks.n;
		dear[i] = c->places.p[i].price > 1;
	}
	memcpy(cut, c->numbering.cut, c->graph.edges);
	seams_cut(&c->numbering, &c->graph,
		&(struct seams_wish){often, can, dear, c->safe.p, certain}, cut);
	free(often);
	free(can);
	free(dear);
}

/* Where that costs less and loses nothing. */
static void cut_surely(struct choosing *c)
{
	bool *cut = xcalloc(c->graph.edges + 1, sizeof *cut);
	bool *before = xmemdup(c->numbering.cut, c->graph.edges + 1);
	uint32_t ncut = c->numbering.ncut;
	double cost = c->plan.cost;

	cut_at_seams(c, true, cut);
	c->model.pieces = memcmp(cut, before, c->graph.edges);
	if (c->model.pieces) {
		forget(c);
		number(c, cut, c->array);
	}
	if (c->model.pieces && c->plan.cost >= cost) {
		forget(c);
		number(c, before, c->array);
		c->model.pieces = false;
	}
	c->certain = c->numbering.ncut - ncut;
	free(cut);
	free(before);
}

/* With as few counters as cost hardly more: what seldom runs is cut first. */
static void number_tightly(struct choosing *c, const bool *cut, double cost)
{
	uint64_t limit = c->tight > c->graph.edges ? c->tight : c->graph.edges;

	do {
		limit = limit < c->array ? limit : c->array;
		forget(c);
		number(c, cut, limit);
		limit *= 4;
	} while (c->plan.cost > cost * LITTLE_MORE && limit / 4 < c->array);
}

/* Of several ways to cut, the one that costs least. */
static void refine(struct choosing *c)
{
	bool *around = xmemdup(c->numbering.cut, c->graph.edges + 1), *cuts[REFINE_CUTS];
	enum refine_cuts best = REFINE_NONE;
	double least = 0;

	for (enum refine_cuts i = 0; i < REFINE_CUTS; i++) {
		if (i >= REFINE_SEAMS && !c->derives) {
			cuts[i] = NULL;
			continue;
		}
		cuts[i] = refine_cut(&c->graph, c->numbering.outside, c->weights.p, around, i);
		for (uint32_t k = 0; k < c->graph.edges; k++)
			cuts[i][k] &= c->cuttable.p[k] >= 0;
		forget(c);
		number(c, cuts[i], c->array);
		if (i >= REFINE_SEAMS) {
			cut_at_seams(c, false, cuts[i]);
			forget(c);
			number(c, cuts[i], c->array);
		}
		if (i == REFINE_NONE || c->plan.cost < least) {
			best = i;
			least = c->plan.cost;
		}
	}
	number_tightly(c, cuts[best], least);
	c->model.pieces = best >= REFINE_SEAMS;
	for (enum refine_cuts i = 0; i < REFINE_CUTS; i++)
		free(cuts[i]);
	free(around);
}

/* All of them, if they fit or must; else with edges cut that seem to be cold. */
static void number_paths(struct choosing *c)
{
	c->model.pieces = false;
	c->certain = 0;
	number(c, NULL, c->most);
	c->loops = c->numbering.ncut - c->numbering.shortened;
	if (c->refined)
		refine(c);
	else if (!c->full && c->numbering.total > c->array) {
		forget(c);
		number(c, NULL, c->array);
	}
	if (c->everywhere && !c->refined && !c->full && c->numbering.total > c->tight)
		number_tightly(c, NULL, c->plan.cost);
	if (c->derives && !c->refined)
		cut_surely(c);
}

static void choose(struct choosing *c)
{
	bool bare = false, *cut;

	number_paths(c);
	vec_reserve(&c->fast, c->graph.nodes + 1);
	memset(c->fast.p, 0, c->graph.nodes + 1);
	if (c->bare || !have_variable(c)) {
		forget(c);
		cut = plan_short(&c->graph, exact_outside(&c->model.graph));
		number(c, cut, 0);
		c->model.pieces = false;
		c->certain = 0;
		memset(c->fast.p, 0, c->graph.nodes + 1);
		free(cut);
		bare = true;
	}
	choose_how(c, bare);
}

/* As the map has it. */
static void keep(struct choosing *c)
{
	struct path_function *m = &c->model;

	for (size_t i = 0; i < m->graph.links.n; i++)
		m->graph.links.p[i].counted = c->numbering.cut[i];
	m->values.n = 0;
	for (uint32_t i = 0; i < c->numbering.dag.edges; i++)
		*vec_add(&m->values) = c->numbering.value[i];
}

void choose_model(struct choosing *c, struct edit_function *f)
{
	struct loops loops;

	c->function = f;
	loops_init(&loops, &f->flow->graph, f->flow->entry_node);
	exact_model(&c->scene, f, &c->model.graph, &c->places, &loops, NULL);
	loops_deinit(&loops);
	put_entry_first(c);
}

void choose_paths(struct choosing *c, struct edit_function *f)
{
	choose_model(c, f);
	path_graph(&c->model.graph, &c->graph);
	weigh(c);
	find_safe(c);
	find_early(c);
	choose(c);
	keep(c);
}

void choose_end(struct choosing *c)
{
	forget(c);
	graph_deinit(&c->graph);
}

void choosing_deinit(struct choosing *c)
{
	path_function_deinit(&c->model);
	vec_deinit(&c->places);
	vec_deinit(&c->weights);
	vec_deinit(&c->cuttable);
	vec_deinit(&c->safe);
	vec_deinit(&c->early);
	vec_deinit(&c->fast);
}
