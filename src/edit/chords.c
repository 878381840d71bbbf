#include "edit/chords.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- sets of nodes ---- */

enum { HAS_OUTSIDE = 1, HAS_LOSSES = 2 };

struct sets {
	uint32_t *parent;
	uint8_t *has; /* by the first of a set */
};

static void sets_init(struct sets *s, uint32_t n, uint32_t outside, const bool *loses)
{
	s->parent = graph_numbers(n, 0);
	s->has = xcalloc(n + 1, sizeof *s->has);
	for (uint32_t i = 0; i < n; i++) {
		s->parent[i] = i;
		s->has[i] = i == outside ? HAS_OUTSIDE : loses && loses[i] ? HAS_LOSSES : 0;
	}
}

static void sets_deinit(struct sets *s)
{
	free(s->parent);
	free(s->has);
}

static uint32_t set_of(const struct sets *s, uint32_t node)
{
	while (s->parent[node] != node) {
		s->parent[node] = s->parent[s->parent[node]];
		node = s->parent[node];
	}
	return node;
}

/* Whether they were two. */
static bool join(struct sets *s, uint32_t a, uint32_t b)
{
	a = set_of(s, a);
	b = set_of(s, b);
	s->parent[a < b ? b : a] = a < b ? a : b;
	s->has[a < b ? a : b] = s->has[a] | s->has[b];
	return a != b;
}

/* Whether an edge would hide what is lost at one end. */
static bool hides(const struct sets *s, const struct graph_edge *e)
{
	uint8_t from = s->has[set_of(s, e->from)], to = s->has[set_of(s, e->to)];

	return (from & HAS_OUTSIDE && to & HAS_LOSSES) || (to & HAS_OUTSIDE && from & HAS_LOSSES);
}

/* ---- choosing ---- */

struct candidate {
	double weight;
	uint32_t edge;
};

static bool is_before(const struct candidate *x, const struct candidate *y)
{
	return x->weight != y->weight ? x->weight > y->weight : x->edge < y->edge;
}

/* Heaviest first. Most graphs are small: Shell's sort (1959) takes a third of what qsort does. */
static void sort_candidates(struct candidate *list, uint32_t n)
{
	uint32_t gap = 1;

	while (gap < n / 3)
		gap = 3 * gap + 1;
	for (; gap; gap /= 3)
		for (uint32_t i = gap; i < n; i++) {
			struct candidate c = list[i];
			uint32_t k = i;

			for (; k >= gap && is_before(&c, &list[k - gap]); k -= gap)
				list[k] = list[k - gap];
			list[k] = c;
		}
}

/* Those that cannot be counted must be in the tree. */
static int take_uncountable(struct chords *c, const double *weight, struct sets *s)
{
	for (uint32_t i = 0; i < c->graph->edges; i++) {
		const struct graph_edge *e = &c->graph->edge[i];

		if (weight[i] >= 0)
			continue;
		c->counted[i] = false;
		if (!join(s, e->from, e->to))
			return -ENOSPC;
	}
	return 0;
}

static void take_heaviest(struct chords *c, const double *weight, struct sets *s)
{
	struct candidate *list = xcalloc(c->graph->edges + 1, sizeof *list);
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->graph->edges; i++)
		if (weight[i] >= 0)
			list[n++] = (struct candidate){weight[i], i};
	sort_candidates(list, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct graph_edge *e = &c->graph->edge[list[i].edge];

		if (!hides(s, e) && join(s, e->from, e->to))
			c->counted[list[i].edge] = false;
	}
	free(list);
}

/* Parts are what hangs together by edges that are not counted. */
static void find_parts(struct chords *c, const struct sets *s)
{
	const struct graph *g = c->graph;
	uint32_t *number = graph_numbers(g->nodes, GRAPH_NONE);
	uint32_t outside = set_of(s, c->outside);

	c->part = graph_numbers(g->nodes, GRAPH_NONE);
	c->balanced = xcalloc(g->nodes + 1, sizeof *c->balanced);
	c->parts = 0;
	for (uint32_t i = 0; i < g->nodes; i++) {
		uint32_t set = set_of(s, i);

		if (i == c->outside)
			continue;
		if (number[set] == GRAPH_NONE) {
			c->balanced[c->parts] = set != outside;
			number[set] = c->parts++;
		}
		c->part[i] = number[set];
	}
	free(number);
}

static void begin(struct chords *c, const struct graph *g, uint32_t outside)
{
	*c = (struct chords){.graph = g, .outside = outside};
	c->counted = xmalloc(g->edges + 1);
	memset(c->counted, 1, g->edges + 1);
}

int chords_choose(struct chords *c, const struct graph *g, uint32_t outside, const double *weight,
	const bool *loses)
{
	struct sets sets;
	int rc;

	begin(c, g, outside);
	sets_init(&sets, g->nodes, outside, loses);
	rc = take_uncountable(c, weight, &sets);
	if (!rc) {
		take_heaviest(c, weight, &sets);
		find_parts(c, &sets);
	}
	sets_deinit(&sets);
	if (rc)
		chords_deinit(c);
	return rc;
}

int chords_recall(struct chords *c, const struct graph *g, uint32_t outside, const bool *counted)
{
	struct sets sets;
	int rc = 0;

	begin(c, g, outside);
	sets_init(&sets, g->nodes, outside, NULL);
	memcpy(c->counted, counted, g->edges);
	for (uint32_t i = 0; i < g->edges; i++)
		if (!counted[i] && !join(&sets, g->edge[i].from, g->edge[i].to))
			rc = -EBADMSG;
	if (!rc)
		find_parts(c, &sets);
	sets_deinit(&sets);
	if (rc)
		chords_deinit(c);
	return rc;
}

void chords_deinit(struct chords *c)
{
	free(c->counted);
	free(c->part);
	free(c->balanced);
	*c = (struct chords){0};
}

/* ---- solving ---- */

/* The tree is taken apart from its leaves: a node with one unknown edge tells what that carries. */
struct solving {
	const struct chords *c;
	const uint64_t *lost;
	uint64_t *count;
	bool *known;
	uint32_t *unknown; /* edges of each node */
	uint32_t *ready;   /* nodes with one of them */
	uint32_t nready;
};

static void count_unknown(struct solving *s, uint32_t edge, uint32_t by)
{
	const struct graph_edge *e = &s->c->graph->edge[edge];
	uint32_t ends[] = {e->from, e->to};

	for (int i = 0; i < 2; i++) {
		s->unknown[ends[i]] += by;
		if (s->unknown[ends[i]] == 1 && by == UINT32_MAX && ends[i] != s->c->outside)
			s->ready[s->nready++] = ends[i];
	}
}

/* What is known of a node, in less out, as numbers that may wrap around; *edge is the unknown one.
 */
static uint64_t net_of(const struct solving *s, uint32_t node, uint32_t *edge)
{
	const struct graph *g = s->c->graph;
	uint64_t net = s->lost ? -s->lost[node] : 0;

	graph_each_in (e, g, node) {
		if (s->known[*e])
			net += s->count[*e];
		else
			*edge = *e;
	}
	graph_each_out (e, g, node) {
		if (s->known[*e])
			net -= s->count[*e];
		else
			*edge = *e;
	}
	return net;
}

static bool solve_node(struct solving *s, uint32_t node)
{
	uint32_t edge = GRAPH_NONE;
	uint64_t net;

	if (s->unknown[node] != 1)
		return true; /* the other end of its last edge was first */
	net = net_of(s, node, &edge);
	s->count[edge] = s->c->graph->edge[edge].from == node ? net : -net;
	s->known[edge] = true;
	count_unknown(s, edge, UINT32_MAX);
	return (int64_t)s->count[edge] >= 0;
}

bool chords_solve(const struct chords *c, const uint64_t *lost, uint64_t *count)
{
	const struct graph *g = c->graph;
	struct solving s = {.c = c, .lost = lost, .count = count};
	bool fine = true;

	s.known = xmemdup(c->counted, g->edges + 1);
	s.unknown = graph_numbers(g->nodes, 0);
	s.ready = graph_numbers(2 * g->nodes, 0);
	for (uint32_t i = 0; i < g->edges; i++)
		if (!c->counted[i])
			count_unknown(&s, i, 1);
	for (uint32_t i = 0; i < g->nodes; i++)
		if (s.unknown[i] == 1 && i != c->outside)
			s.ready[s.nready++] = i;
	for (uint32_t at = 0; at < s.nready; at++)
		fine &= solve_node(&s, s.ready[at]);
	for (uint32_t i = 0; i < g->edges; i++)
		if ((int64_t)count[i] < 0)
			count[i] = 0;
	free(s.known);
	free(s.unknown);
	free(s.ready);
	return fine;
}

static void add_to(const struct chords *c, uint32_t node, int64_t count, int64_t *balance)
{
	if (node != c->outside && c->balanced[c->part[node]])
		balance[c->part[node]] += count;
}

void chords_balance(const struct chords *c, const uint64_t *count, int64_t *balance)
{
	memset(balance, 0, c->parts * sizeof *balance);
	for (uint32_t i = 0; i < c->graph->edges; i++) {
		const struct graph_edge *e = &c->graph->edge[i];

		if (!c->counted[i])
			continue;
		add_to(c, e->to, (int64_t)count[i], balance);
		add_to(c, e->from, -(int64_t)count[i], balance);
	}
}
