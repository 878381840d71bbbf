#include "flow/equivalence.h"

#include <stdlib.h>

#include "base/mem.h"
#include "flow/components.h"

/*
 * The graph that is searched: node v became 2v -> 2v + 1, component c that cannot be left stands
 * apart and leaves `door[c]` in its place. Edges keep their numbers, then come those inside of
 * nodes, then those that close. Each part of it is strongly connected.
 */
struct closed {
	const struct graph *g;
	struct components c;
	uint32_t *door; /* by component: a node, GRAPH_NONE where it can be left */
	struct graph_edge *edge;
	uint32_t nodes, edges;
};

static void find_doors(struct closed *k, uint32_t exit)
{
	k->door = graph_numbers(k->c.n, GRAPH_NONE);
	for (uint32_t c = 0; c < k->c.n; c++)
		if (k->c.cyclic[c] && k->c.final[c] && c != k->c.of[exit])
			k->door[c] = k->nodes++;
}

/* Where an edge to the node leads, from another component. */
static uint32_t way_in(const struct closed *k, uint32_t node)
{
	uint32_t door = k->door[k->c.of[node]];

	return door == GRAPH_NONE ? 2 * node : door;
}

static void add_edge(struct closed *k, uint32_t from, uint32_t to)
{
	k->edge[k->edges++] = (struct graph_edge){from, to};
}

/* Edges that nothing reaches become loops of one node, which are classes of their own. */
static void split_nodes(struct closed *k)
{
	const struct graph *g = k->g;

	for (uint32_t e = 0; e < g->edges; e++) {
		uint32_t from = g->edge[e].from, to = g->edge[e].to;

		if (k->c.of[from] == GRAPH_NONE)
			add_edge(k, 2 * from, 2 * from);
		else if (k->c.of[from] == k->c.of[to])
			add_edge(k, 2 * from + 1, 2 * to);
		else
			add_edge(k, 2 * from + 1, way_in(k, to));
	}
	for (uint32_t n = 0; n < g->nodes; n++)
		add_edge(k, 2 * n, 2 * n + 1);
}

static void close_ends(struct closed *k, uint32_t entry, uint32_t exit)
{
	uint32_t start = way_in(k, entry);

	for (uint32_t n = 0; n < k->g->nodes; n++)
		if (k->c.of[n] != GRAPH_NONE && (n == exit || !graph_out_degree(k->g, n)))
			add_edge(k, 2 * n + 1, start);
	for (uint32_t c = 0; c < k->c.n; c++)
		if (k->door[c] != GRAPH_NONE)
			add_edge(k, k->door[c], start);
}

static void close_graph(struct graph *closed, const struct graph *g, uint32_t entry, uint32_t exit)
{
	struct closed k = {.g = g, .nodes = 2 * g->nodes};

	components_init(&k.c, g, entry);
	find_doors(&k, exit);
	k.edge = xmalloc(((size_t)g->edges + 3 * (size_t)g->nodes + 1) * sizeof *k.edge);
	split_nodes(&k);
	close_ends(&k, entry, exit);
	graph_init(closed, k.nodes, k.edge, k.edges);
	components_deinit(&k.c);
	free(k.door);
	free(k.edge);
}

/* What the search knows of a bracket: an edge past the tree, or a cap (edges + the node). */
struct bracket {
	uint32_t above, below; /* in its list */
	uint32_t size, class;  /* of the list when it was last on top, and the class that got */
};

struct bracket_list {
	uint32_t top, bottom, size;
};

struct search {
	const struct graph *g;
	uint32_t *number, *order; /* depth first, without regard to direction */
	uint32_t *parent;         /* by node: the tree edge */
	uint32_t *next, *stack;
	uint32_t reached;
	struct bracket *bracket;
	struct bracket_list *list; /* by node */
	uint32_t *high, *second;   /* by node: the two highest that brackets of children reach */
	uint32_t *caps, *next_cap; /* lists by node: where caps end */
	uint32_t *class, classes;
};

static uint32_t other_end(const struct graph *g, uint32_t e, uint32_t node)
{
	return g->edge[e].from == node ? g->edge[e].to : g->edge[e].from;
}

/* The i-th edge at a node: those that leave come first. */
static uint32_t edge_at(const struct graph *g, uint32_t node, uint32_t i)
{
	uint32_t outs = graph_out_degree(g, node);

	return i < outs ? g->out[g->out_first[node] + i] : g->in[g->in_first[node] + i - outs];
}

static uint32_t degree(const struct graph *g, uint32_t node)
{
	return graph_out_degree(g, node) + graph_in_degree(g, node);
}

static void walk_from(struct search *s, uint32_t root)
{
	uint32_t depth = 1;

	s->stack[0] = root;
	s->order[s->reached] = root;
	s->number[root] = s->reached++;
	while (depth) {
		uint32_t node = s->stack[depth - 1];

		if (s->next[node] == degree(s->g, node)) {
			depth--;
			continue;
		}
		uint32_t e = edge_at(s->g, node, s->next[node]++), to = other_end(s->g, e, node);

		if (s->number[to] != GRAPH_NONE)
			continue;
		s->parent[to] = e;
		s->order[s->reached] = to;
		s->number[to] = s->reached++;
		s->stack[depth++] = to;
	}
}

static void push(struct search *s, struct bracket_list *l, uint32_t b)
{
	s->bracket[b].above = GRAPH_NONE;
	s->bracket[b].below = l->top;
	if (l->top == GRAPH_NONE)
		l->bottom = b;
	else
		s->bracket[l->top].above = b;
	l->top = b;
	l->size++;
}

static void delete (struct search *s, struct bracket_list *l, uint32_t b)
{
	uint32_t above = s->bracket[b].above, below = s->bracket[b].below;

	*(above == GRAPH_NONE ? &l->top : &s->bracket[above].below) = below;
	*(below == GRAPH_NONE ? &l->bottom : &s->bracket[below].above) = above;
	l->size--;
}

static void concatenate(struct search *s, struct bracket_list *l, const struct bracket_list *under)
{
	if (!under->size)
		return;
	if (!l->size) {
		*l = *under;
		return;
	}
	s->bracket[l->bottom].below = under->top;
	s->bracket[under->top].above = l->bottom;
	l->bottom = under->bottom;
	l->size += under->size;
}

/* Deletes the brackets that end at the node, adds those that begin; returns the highest reached. */
static uint32_t update_brackets(struct search *s, uint32_t node)
{
	struct bracket_list *l = &s->list[node];
	uint32_t highest = GRAPH_NONE, at = s->number[node];

	for (uint32_t cap = s->caps[node]; cap != GRAPH_NONE; cap = s->next_cap[cap])
		delete (s, l, s->g->edges + cap);
	for (uint32_t i = 0; i < degree(s->g, node); i++) {
		uint32_t e = edge_at(s->g, node, i), to = other_end(s->g, e, node);

		if (s->number[to] <= at || s->parent[to] == e)
			continue;
		delete (s, l, e);
		if (s->class[e] == GRAPH_NONE)
			s->class[e] = s->classes++;
	}
	for (uint32_t i = 0; i < degree(s->g, node); i++) {
		uint32_t e = edge_at(s->g, node, i), to = s->number[other_end(s->g, e, node)];

		if (to >= at || s->parent[node] == e)
			continue;
		push(s, l, e);
		if (to < highest)
			highest = to;
	}
	return highest;
}

/* Where brackets of two children go on above, the names of lists below would be ambiguous. */
static void cap(struct search *s, uint32_t node, uint32_t highest)
{
	uint32_t to = s->second[node];

	if (to >= highest || to >= s->number[node])
		return;
	push(s, &s->list[node], s->g->edges + node);
	s->next_cap[node] = s->caps[s->order[to]];
	s->caps[s->order[to]] = node;
}

/* The list's top and size name the class of the tree edge above it. */
static void name_class(struct search *s, uint32_t node)
{
	uint32_t e = s->parent[node], top = s->list[node].top;

	if (top == GRAPH_NONE) /* on no cycle: a node that nothing reaches */
		return;
	struct bracket *b = &s->bracket[top];

	if (b->size != s->list[node].size) {
		b->size = s->list[node].size;
		b->class = s->classes++;
	}
	s->class[e] = b->class;
	if (b->size == 1 && top < s->g->edges)
		s->class[top] = b->class;
}

static void hand_up(struct search *s, uint32_t node, uint32_t highest)
{
	uint32_t up = other_end(s->g, s->parent[node], node);

	if (s->high[node] < highest)
		highest = s->high[node];
	if (highest < s->high[up]) {
		s->second[up] = s->high[up];
		s->high[up] = highest;
	} else if (highest < s->second[up]) {
		s->second[up] = highest;
	}
	concatenate(s, &s->list[up], &s->list[node]);
}

/* Figure 4 of Johnson, Pearson and Pingali, from the leaves of the trees up. */
static void name_classes(struct search *s)
{
	for (uint32_t i = s->reached; i-- > 0;) {
		uint32_t node = s->order[i], highest = update_brackets(s, node);

		if (s->parent[node] == GRAPH_NONE)
			continue;
		cap(s, node, highest);
		name_class(s, node);
		hand_up(s, node, highest);
	}
	for (uint32_t e = 0; e < s->g->edges; e++)
		if (s->class[e] == GRAPH_NONE)
			s->class[e] = s->classes++;
}

static void search_init(struct search *s, const struct graph *g)
{
	size_t brackets = (size_t)g->edges + g->nodes + 1;

	*s = (struct search){
		.g = g,
		.number = graph_numbers(g->nodes, GRAPH_NONE),
		.order = graph_numbers(g->nodes, 0),
		.parent = graph_numbers(g->nodes, GRAPH_NONE),
		.next = graph_numbers(g->nodes, 0),
		.stack = graph_numbers(g->nodes, 0),
		.bracket = xcalloc(brackets, sizeof *s->bracket),
		.list = xmalloc(((size_t)g->nodes + 1) * sizeof *s->list),
		.high = graph_numbers(g->nodes, GRAPH_NONE),
		.second = graph_numbers(g->nodes, GRAPH_NONE),
		.caps = graph_numbers(g->nodes, GRAPH_NONE),
		.next_cap = graph_numbers(g->nodes, GRAPH_NONE),
		.class = graph_numbers(g->edges, GRAPH_NONE),
	};
	for (uint32_t n = 0; n < g->nodes; n++)
		s->list[n] = (struct bracket_list){GRAPH_NONE, GRAPH_NONE, 0};
}

static void search_deinit(struct search *s)
{
	free(s->number);
	free(s->order);
	free(s->parent);
	free(s->next);
	free(s->stack);
	free(s->bracket);
	free(s->list);
	free(s->high);
	free(s->second);
	free(s->caps);
	free(s->next_cap);
	free(s->class);
}

/* Classes of closing edges alone get no number. */
static void number_classes(struct equivalence *q, const struct graph *g, const struct search *s)
{
	_cleanup_free_ uint32_t *number = graph_numbers(s->classes, GRAPH_NONE);

	for (uint32_t i = 0; i < g->edges + g->nodes; i++) {
		uint32_t *class = &number[s->class[i]];

		if (*class == GRAPH_NONE)
			*class = q->n++;
		*(i < g->edges ? &q->edge[i] : &q->node[i - g->edges]) = *class;
	}
}

void equivalence_init(struct equivalence *q, const struct graph *g, uint32_t entry, uint32_t exit)
{
	struct graph closed;
	struct search s;

	*q = (struct equivalence){
		.edge = graph_numbers(g->edges, 0),
		.node = graph_numbers(g->nodes, 0),
	};
	close_graph(&closed, g, entry, exit);
	search_init(&s, &closed);
	for (uint32_t n = 0; n < closed.nodes; n++)
		if (s.number[n] == GRAPH_NONE)
			walk_from(&s, n);
	name_classes(&s);
	number_classes(q, g, &s);
	search_deinit(&s);
	graph_deinit(&closed);
}

void equivalence_deinit(struct equivalence *q)
{
	free(q->edge);
	free(q->node);
	*q = (struct equivalence){0};
}
