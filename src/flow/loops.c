#include "flow/loops.h"

#include <stdlib.h>

#include "base/mem.h"

struct search {
	const struct graph *g;
	struct graph_walk walk;
	struct tree tree;  /* of the walk */
	uint32_t *merged;  /* union-find by node: the header of the loop it went into */
	uint32_t *header;  /* by node: of the innermost loop it is in but does not head */
	uint8_t *heads;    /* by node: whether it heads a loop */
	uint32_t *waiting; /* by node: list of edges that matter from here up */
	uint32_t *into;    /* by node: list of edges that lead to what is merged in it */
	uint32_t *next;    /* of both lists, by edge */
	uint32_t *body;    /* stack of nodes */
};

static uint32_t find(struct search *s, uint32_t node)
{
	while (s->merged[node] != node) {
		s->merged[node] = s->merged[s->merged[node]];
		node = s->merged[node];
	}
	return node;
}

/*
 * An edge matters to the loops of headers above both its ends. Havlak hands edges that come from
 * elsewhere on from header to header, which may be quadratic; Ramalingam's section 5 lets them wait
 * at the lowest node above both ends, after which each is looked at once.
 */
static void let_edges_wait(struct search *s)
{
	for (uint32_t e = 0; e < s->g->edges; e++) {
		uint32_t from = s->g->edge[e].from, to = s->g->edge[e].to;

		if (s->walk.pre[from] == GRAPH_NONE)
			continue;
		uint32_t at = tree_climb(&s->tree, from, to);

		s->next[e] = s->waiting[at];
		s->waiting[at] = e;
	}
}

static void add_to_body(struct search *s, uint32_t top, uint32_t node, uint32_t *n)
{
	if (node == top || s->header[node] != GRAPH_NONE)
		return;
	s->header[node] = top;
	s->body[(*n)++] = node;
}

/* Edges that wait at the top: back edges begin its loop, others get known where they lead. */
static uint32_t wake_edges(struct search *s, uint32_t top)
{
	uint32_t n = 0;

	for (uint32_t e = s->waiting[top], next; e != GRAPH_NONE; e = next) {
		uint32_t to = s->g->edge[e].to, place;

		next = s->next[e];
		if (to == top) {
			s->heads[top] = 1;
			add_to_body(s, top, find(s, s->g->edge[e].from), &n);
			continue;
		}
		place = find(s, to);
		s->next[e] = s->into[place];
		s->into[place] = e;
	}
	return n;
}

/* The body is what reaches a back edge without the top; it merges with the top. */
static void collect_loop(struct search *s, uint32_t top)
{
	uint32_t n = wake_edges(s, top);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t node = s->body[i];

		for (uint32_t e = s->into[node]; e != GRAPH_NONE; e = s->next[e])
			add_to_body(s, top, find(s, s->g->edge[e].from), &n);
	}
	while (n)
		s->merged[s->body[--n]] = top;
}

static void find_loops(struct search *s)
{
	let_edges_wait(s);
	for (uint32_t i = s->walk.reached; i-- > 0;)
		collect_loop(s, s->walk.preorder[i]);
}

/* Headers in the order of the walk: those of outer loops come before those of inner ones. */
static void number_loops(struct loops *l, const struct search *s)
{
	for (uint32_t i = 0; i < s->walk.reached; i++)
		l->n += s->heads[s->walk.preorder[i]];
	l->loop = xcalloc((size_t)l->n + 1, sizeof *l->loop);
	l->n = 0;
	for (uint32_t i = 0; i < s->walk.reached; i++) {
		uint32_t node = s->walk.preorder[i], around = s->header[node];
		uint32_t outer = around == GRAPH_NONE ? GRAPH_NONE : l->of[around];

		l->of[node] = outer;
		if (!s->heads[node])
			continue;
		l->of[node] = l->n;
		l->loop[l->n++] = (struct loop){
			.header = node,
			.parent = outer,
			.depth = outer == GRAPH_NONE ? 1 : l->loop[outer].depth + 1,
		};
	}
}

static void plant(struct loops *l)
{
	_cleanup_free_ uint32_t *parent = graph_numbers(l->n, 0);
	_cleanup_free_ uint32_t *order = graph_numbers(l->n, 0);

	for (uint32_t i = 0; i < l->n; i++) {
		parent[i] = l->loop[i].parent;
		order[i] = i;
	}
	tree_init(&l->tree, l->n, parent, order, l->n);
}

/* An edge counts for loops around one end and not the other, once inner loops are summed up. */
static void classify_edge(struct loops *l, const struct graph *g, uint32_t e, uint32_t *side)
{
	uint32_t from = l->of[g->edge[e].from], to = l->of[g->edge[e].to];
	uint32_t both = from == GRAPH_NONE || to == GRAPH_NONE ? GRAPH_NONE
							       : tree_climb(&l->tree, from, to);
	bool heads = to != GRAPH_NONE && l->loop[to].header == g->edge[e].to;

	l->edge[e] = (both != to ? LOOP_ENTER : 0) | (both != from ? LOOP_LEAVE : 0);
	if (heads && both == to) {
		l->edge[e] |= LOOP_BACK;
		l->loop[to].backs++;
	}
	if (to != GRAPH_NONE)
		l->loop[to].entries++;
	if (from != GRAPH_NONE)
		l->loop[from].exits++;
	if (both != GRAPH_NONE) {
		l->loop[both].entries--;
		l->loop[both].exits--;
	}
	if (heads && both != to)
		side[to]--;
}

/* What inner loops have counts for the outer ones; entries beside the header are left in side. */
static void sum_up(struct loops *l, uint32_t *side)
{
	for (uint32_t i = l->n; i-- > 0;) {
		struct loop *in = &l->loop[i];

		side[i] += in->entries;
		in->irreducible = side[i] != 0;
		if (in->parent == GRAPH_NONE)
			continue;
		l->loop[in->parent].entries += in->entries;
		l->loop[in->parent].exits += in->exits;
		l->loop[in->parent].nodes += in->nodes;
	}
}

static void classify(struct loops *l, const struct search *s)
{
	_cleanup_free_ uint32_t *side = graph_numbers(l->n, 0);

	for (uint32_t i = 0; i < s->walk.reached; i++)
		if (l->of[s->walk.preorder[i]] != GRAPH_NONE)
			l->loop[l->of[s->walk.preorder[i]]].nodes++;
	for (uint32_t e = 0; e < s->g->edges; e++)
		if (s->walk.pre[s->g->edge[e].from] != GRAPH_NONE)
			classify_edge(l, s->g, e, side);
	sum_up(l, side);
}

static void search_init(struct search *s, const struct graph *g, uint32_t root)
{
	_cleanup_free_ uint32_t *parent = graph_numbers(g->nodes, GRAPH_NONE);

	*s = (struct search){
		.g = g,
		.merged = graph_numbers(g->nodes, 0),
		.header = graph_numbers(g->nodes, GRAPH_NONE),
		.heads = xcalloc((size_t)g->nodes + 1, 1),
		.waiting = graph_numbers(g->nodes, GRAPH_NONE),
		.into = graph_numbers(g->nodes, GRAPH_NONE),
		.next = graph_numbers(g->edges, GRAPH_NONE),
		.body = graph_numbers(g->nodes, 0),
	};
	graph_walk_init(&s->walk, g, root);
	for (uint32_t n = 0; n < g->nodes; n++) {
		s->merged[n] = n;
		if (s->walk.parent[n] != GRAPH_NONE)
			parent[n] = g->edge[s->walk.parent[n]].from;
	}
	tree_init(&s->tree, g->nodes, parent, s->walk.preorder, s->walk.reached);
}

static void search_deinit(struct search *s)
{
	graph_walk_deinit(&s->walk);
	tree_deinit(&s->tree);
	free(s->merged);
	free(s->header);
	free(s->heads);
	free(s->waiting);
	free(s->into);
	free(s->next);
	free(s->body);
}

void loops_init(struct loops *l, const struct graph *g, uint32_t root)
{
	struct search s;

	*l = (struct loops){
		.of = graph_numbers(g->nodes, GRAPH_NONE),
		.edge = xcalloc((size_t)g->edges + 1, 1),
	};
	search_init(&s, g, root);
	find_loops(&s);
	number_loops(l, &s);
	plant(l);
	classify(l, &s);
	search_deinit(&s);
}

void loops_deinit(struct loops *l)
{
	free(l->loop);
	free(l->of);
	free(l->edge);
	tree_deinit(&l->tree);
	*l = (struct loops){0};
}
