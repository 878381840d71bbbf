#include "flow/components.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct search {
	const struct graph *g;
	struct components *c;
	uint32_t *number, *low; /* by node: when it was seen, 0 not yet; the lowest it reaches */
	uint32_t *next;         /* by node: its next edge */
	uint32_t *path, *open;  /* stacks: the way from the root; nodes of no component yet */
	uint32_t depth, n_open, numbers;
};

static void enter(struct search *s, uint32_t node)
{
	s->low[node] = s->number[node] = ++s->numbers;
	s->path[s->depth++] = node;
	s->open[s->n_open++] = node;
}

/* All above node on the open stack is its component. */
static void close_component(struct search *s, uint32_t node)
{
	uint32_t member;

	do {
		member = s->open[--s->n_open];
		s->c->of[member] = s->c->n;
		s->c->size[s->c->n]++;
	} while (member != node);
	s->c->n++;
}

/*
 * Tarjan's algorithm (1972): a node that reaches no open one seen before it is the first of its
 * component.
 */
static void search(struct search *s)
{
	while (s->depth) {
		uint32_t node = s->path[s->depth - 1];

		if (s->next[node] < s->g->out_first[node + 1]) {
			uint32_t to = s->g->edge[s->g->out[s->next[node]++]].to;

			if (!s->number[to])
				enter(s, to);
			else if (s->c->of[to] == GRAPH_NONE && s->low[to] < s->low[node])
				s->low[node] = s->low[to];
			continue;
		}
		s->depth--;
		if (s->low[node] == s->number[node])
			close_component(s, node);
		else if (s->low[node] < s->low[s->path[s->depth - 1]])
			s->low[s->path[s->depth - 1]] = s->low[node];
	}
}

static void look_at_edges(struct components *c, const struct graph *g)
{
	for (uint32_t i = 0; i < c->n; i++)
		c->final[i] = true;
	for (uint32_t e = 0; e < g->edges; e++) {
		uint32_t from = c->of[g->edge[e].from];

		if (from == GRAPH_NONE)
			continue;
		if (c->of[g->edge[e].to] == from)
			c->cyclic[from] = true;
		else
			c->final[from] = false;
	}
}

void components_init(struct components *c, const struct graph *g, uint32_t root)
{
	size_t space = (size_t)g->nodes + 1;
	_cleanup_free_ uint32_t *low = xcalloc(space, sizeof *low);
	_cleanup_free_ uint32_t *next = xmemdup(g->out_first, space * sizeof *next);
	_cleanup_free_ uint32_t *path = xmalloc(space * sizeof *path);
	_cleanup_free_ uint32_t *open = xmalloc(space * sizeof *open);
	_cleanup_free_ uint32_t *number = xcalloc(space, sizeof *number);
	struct search s = {.g = g,
		.c = c,
		.number = number,
		.low = low,
		.next = next,
		.path = path,
		.open = open};

	*c = (struct components){
		.of = graph_numbers(g->nodes, GRAPH_NONE),
		.size = xcalloc(space, sizeof *c->size),
		.cyclic = xcalloc(space, sizeof *c->cyclic),
		.final = xcalloc(space, sizeof *c->final),
	};
	enter(&s, root);
	search(&s);
	look_at_edges(c, g);
}

void components_deinit(struct components *c)
{
	free(c->of);
	free(c->size);
	free(c->cyclic);
	free(c->final);
	*c = (struct components){0};
}
