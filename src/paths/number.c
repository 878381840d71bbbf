#include "paths/number.h"

#include "base/mem.h"
#include "edit/chords.h"
#include "paths/fewer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- what must be cut ---- */

enum { UNSEEN, OPEN, DONE };

struct walking {
	const struct graph *g;
	uint32_t outside;
	bool *cut;
	uint8_t *state;  /* by node */
	uint32_t *next;  /* by node: of its edges out, in graph.out */
	uint32_t *stack; /* of open nodes */
	uint32_t depth;
	uint32_t *order; /* nodes as they are done with */
	uint32_t n;
};

static void open_node(struct walking *w, uint32_t node)
{
	w->state[node] = OPEN;
	w->next[node] = w->g->out_first[node];
	w->stack[w->depth++] = node;
}

/* Edges to nodes that are open go around. */
static void step(struct walking *w)
{
	uint32_t node = w->stack[w->depth - 1], edge, to;

	if (w->next[node] == w->g->out_first[node + 1]) {
		w->state[node] = DONE;
		w->order[w->n++] = node;
		w->depth--;
		return;
	}
	edge = w->g->out[w->next[node]++];
	to = w->g->edge[edge].to;
	if (to == w->outside)
		return;
	if (w->state[to] == OPEN)
		w->cut[edge] = true;
	else if (w->state[to] == UNSEEN)
		open_node(w, to);
}

/* Heads first seen over an edge that the caller cuts are walked to all the same: what comes into
 * the order comes after all it leads to. */
static void walk_all(struct walking *w)
{
	graph_each_out (e, w->g, w->outside) {
		uint32_t to = w->g->edge[*e].to;

		if (to == w->outside || w->state[to] != UNSEEN)
			continue;
		open_node(w, to);
		while (w->depth)
			step(w);
	}
}

static void walking_init(struct walking *w, const struct graph *g, uint32_t outside, bool *cut)
{
	*w = (struct walking){.g = g, .outside = outside, .cut = cut};
	w->state = xcalloc(g->nodes + 1, 1);
	w->next = graph_numbers(g->nodes, 0);
	w->stack = graph_numbers(g->nodes, 0);
	w->order = graph_numbers(g->nodes, 0);
	w->state[outside] = DONE;
	walk_all(w);
}

static void walking_deinit(struct walking *w)
{
	free(w->state);
	free(w->next);
	free(w->stack);
}

/* ---- how many paths ---- */

static uint64_t add_most(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

struct counting {
	const struct walking *walk;
	const struct number_wish *wish;
	bool *cut;
	uint64_t *paths;
	uint64_t most; /* of one node */
};

static uint64_t paths_by(const struct counting *c, uint32_t edge)
{
	uint32_t to = c->walk->g->edge[edge].to;

	return c->cut[edge] || to == c->walk->outside ? 1 : c->paths[to];
}

/* Light ones first; of equal ones those with most paths. */
static bool is_before(const struct counting *c, uint32_t a, uint32_t b)
{
	const double *weight = c->wish->weight;

	if (weight && weight[a] != weight[b])
		return weight[a] < weight[b];
	return paths_by(c, a) > paths_by(c, b);
}

/* The edge of a node that is to be cut next; GRAPH_NONE: no cut makes paths fewer. */
static uint32_t next_to_cut(const struct counting *c, uint32_t node)
{
	uint32_t best = GRAPH_NONE;

	graph_each_out (e, c->walk->g, node) {
		if (paths_by(c, *e) <= 1 || (c->wish->weight && c->wish->weight[*e] < 0))
			continue;
		if (best == GRAPH_NONE || is_before(c, *e, best))
			best = *e;
	}
	return best;
}

static uint64_t sum_of(const struct counting *c, uint32_t node)
{
	uint64_t sum = 0;

	graph_each_out (e, c->walk->g, node)
		sum = add_most(sum, paths_by(c, *e));
	return sum;
}

static void count_node(struct counting *c, uint32_t node)
{
	uint64_t sum = sum_of(c, node);
	uint32_t edge;

	while (sum > c->most && (edge = next_to_cut(c, node)) != GRAPH_NONE) {
		c->cut[edge] = true;
		sum = sum_of(c, node);
	}
	c->paths[node] = sum;
}

/* Paths from all beginnings, with no node having more than `most` of its own. */
static uint64_t count_all(struct counting *c, uint64_t most)
{
	const struct graph *g = c->walk->g;
	bool *head = xcalloc(g->nodes + 1, 1);
	uint64_t total = 0;

	c->most = most;
	memcpy(c->cut, c->walk->cut, g->edges);
	for (uint32_t i = 0; i < c->walk->n; i++)
		count_node(c, c->walk->order[i]);
	graph_each_out (e, g, c->walk->outside)
		total = add_most(total, paths_by(c, *e));
	for (uint32_t i = 0; i < g->edges; i++)
		if (c->cut[i] && c->walk->state[g->edge[i].from] == DONE)
			head[g->edge[i].to] = true;
	for (uint32_t i = 0; i < g->nodes; i++)
		if (head[i])
			total = add_most(total, c->paths[i]);
	free(head);
	return total;
}

/* Cuts wherever a node has more than its share: crude, but it comes to an end. */
static void keep_below(struct counting *c, uint64_t limit)
{
	for (uint64_t most = limit; most && count_all(c, most) > limit; most /= 2)
		;
}

/* ---- the acyclic graph and its values ---- */

static void make_dag(struct numbering *n, const struct graph *g, const uint8_t *state)
{
	VEC(struct graph_edge) list = {0};
	uint32_t *head = graph_numbers(g->nodes, GRAPH_NONE);

	for (uint32_t i = 0; i < g->edges; i++) {
		struct graph_edge e = g->edge[i];

		n->cut[i] &= state[e.from] == DONE;
		if (n->cut[i]) {
			n->ncut++;
			head[e.to] = 0;
			e.to = n->outside;
		}
		*vec_add(&list) = e;
	}
	for (uint32_t i = 0; i < g->nodes; i++) {
		if (head[i] == GRAPH_NONE)
			continue;
		head[i] = (uint32_t)list.n;
		*vec_add(&list) = (struct graph_edge){n->outside, i};
	}
	n->begins = graph_numbers(g->edges, GRAPH_NONE);
	for (uint32_t i = 0; i < g->edges; i++)
		if (n->cut[i])
			n->begins[i] = head[g->edge[i].to];
	graph_init(&n->dag, g->nodes, list.p, (uint32_t)list.n);
	vec_deinit(&list);
	free(head);
}

static uint64_t paths_over(const struct numbering *n, uint32_t edge)
{
	uint32_t to = n->dag.edge[edge].to;

	return to == n->outside ? 1 : n->paths[to];
}

/* By edge of the dag. */
static double *weigh_all(const struct numbering *n, const double *often)
{
	double *all = xcalloc(n->dag.edges + 1, sizeof *all);

	for (uint32_t i = 0; i < n->given && often; i++) {
		all[i] = often[i];
		if (n->cut[i])
			all[n->begins[i]] += often[i];
	}
	return all;
}

struct weighed {
	double often;
	uint32_t edge;
};

static int by_often(const void *a, const void *b)
{
	const struct weighed *x = a, *y = b;

	if (x->often != y->often)
		return x->often < y->often ? -1 : 1;
	return x->edge < y->edge ? -1 : x->edge > y->edge;
}

static uint64_t number_node(struct numbering *n, uint32_t node, const double *often)
{
	VEC(struct weighed) list = {0};
	uint64_t sum = 0;

	graph_each_out (e, &n->dag, node)
		*vec_add(&list) = (struct weighed){often[*e], *e};
	vec_sort(&list, by_often);
	vec_each (w, &list) {
		n->value[w->edge] = sum;
		sum = add_most(sum, paths_over(n, w->edge));
	}
	vec_deinit(&list);
	return sum;
}

static void number_all(struct numbering *n, const struct walking *w, const double *often)
{
	double *all = weigh_all(n, often);

	n->value = xcalloc(n->dag.edges + 1, sizeof *n->value);
	for (uint32_t i = 0; i < w->n; i++)
		n->paths[w->order[i]] = number_node(n, w->order[i], all);
	n->total = number_node(n, n->outside, all);
	free(all);
}

static void begin(struct numbering *n, struct walking *w, const struct graph *g, uint32_t outside,
	const bool *wanted)
{
	bool *cut = xcalloc(g->edges + 1, 1);

	*n = (struct numbering){.outside = outside, .given = g->edges};
	for (uint32_t i = 0; i < g->edges && wanted; i++)
		cut[i] = wanted[i] && g->edge[i].to != outside;
	walking_init(w, g, outside, cut);
	n->cut = xmemdup(cut, g->edges + 1);
	n->paths = xcalloc(g->nodes + 1, sizeof *n->paths);
	n->order = w->order;
	n->reached = w->n;
}

void numbering_init(struct numbering *n, const struct graph *g, uint32_t outside,
	const struct number_wish *wish)
{
	struct walking w;
	struct counting c = {.wish = wish, .walk = &w};
	uint64_t limit = wish->limit && wish->limit < NUMBER_MOST ? wish->limit : NUMBER_MOST;
	uint32_t without = 0;
	bool *first; /* what is cut in any case */

	begin(n, &w, g, outside, wish->cut);
	first = xcalloc(g->edges + 1, sizeof *first);
	c.cut = n->cut;
	c.paths = n->paths;
	memcpy(first, w.cut, g->edges);
	keep_below(&c, NUMBER_MOST);
	if (limit < NUMBER_MOST) {
		memcpy(w.cut, n->cut, g->edges);
		fewer_paths(&(struct fewer){g, outside, w.order, w.n, wish->weight, w.cut}, limit);
		keep_below(&c, limit);
	}
	for (uint32_t i = 0; i < g->edges; i++)
		without += first[i] && w.state[g->edge[i].from] == DONE;
	make_dag(n, g, w.state);
	n->shortened = n->ncut - without;
	number_all(n, &w, wish->often);
	free(first);
	free(w.cut);
	walking_deinit(&w);
}

/* ---- again ---- */

struct valued {
	uint64_t value;
	uint32_t edge;
};

static int by_value(const void *a, const void *b)
{
	const struct valued *x = a, *y = b;

	return x->value < y->value ? -1 : x->value > y->value;
}

/* Values of a node's edges must be the sums of the paths before them, in some order. */
static bool check_node(const struct numbering *n, uint32_t node, uint64_t *sum)
{
	VEC(struct valued) list = {0};
	bool fine = true;

	*sum = 0;
	graph_each_out (e, &n->dag, node)
		if (paths_over(n, *e))
			*vec_add(&list) = (struct valued){n->value[*e], *e};
	vec_sort(&list, by_value);
	vec_each (v, &list) {
		fine &= v->value == *sum;
		*sum = add_most(*sum, paths_over(n, v->edge));
	}
	vec_deinit(&list);
	return fine && *sum <= NUMBER_MOST;
}

int numbering_recall(struct numbering *n, const struct graph *g, uint32_t outside, const bool *cut,
	const uint64_t *values, size_t nvalues)
{
	struct walking w;
	bool fine;

	begin(n, &w, g, outside, cut);
	fine = !memcmp(n->cut, cut, g->edges); /* nothing else goes around */
	make_dag(n, g, w.state);
	fine = fine && n->dag.edges == nvalues;
	if (fine)
		n->value = xmemdup(values, nvalues * sizeof *values);
	for (uint32_t i = 0; i < w.n && fine; i++)
		fine = check_node(n, w.order[i], &n->paths[w.order[i]]);
	fine = fine && check_node(n, outside, &n->total);
	free(w.cut);
	walking_deinit(&w);
	if (fine)
		return 0;
	numbering_deinit(n);
	return -EBADMSG;
}

void numbering_deinit(struct numbering *n)
{
	graph_deinit(&n->dag);
	free(n->cut);
	free(n->begins);
	free(n->value);
	free(n->paths);
	free(n->order);
	*n = (struct numbering){0};
}

/* ---- paths and increments ---- */

static uint32_t edge_for(const struct numbering *n, uint32_t node, uint64_t number)
{
	uint32_t best = GRAPH_NONE;

	graph_each_out (e, &n->dag, node)
		if (paths_over(n, *e) && n->value[*e] <= number &&
			(best == GRAPH_NONE || n->value[*e] > n->value[best]))
			best = *e;
	return best;
}

void numbering_decode(const struct numbering *n, uint64_t number, number_path *out)
{
	uint32_t node = n->outside;

	out->n = 0;
	do {
		uint32_t edge = edge_for(n, node, number);

		*vec_add(out) = edge;
		number -= n->value[edge];
		node = n->dag.edge[edge].to;
	} while (node != n->outside);
}

/* Along the edges of the tree nothing is added: a potential of the nodes takes it up. */
struct spreading {
	const struct numbering *n;
	const bool *chord;
	uint64_t *potential; /* by node */
	bool *seen;
	uint32_t *stack, depth;
};

static void reach(struct spreading *s, uint32_t node, uint64_t potential)
{
	if (s->seen[node])
		return;
	s->seen[node] = true;
	s->potential[node] = potential;
	s->stack[s->depth++] = node;
}

static void spread_from(struct spreading *s, uint32_t root)
{
	const struct graph *dag = &s->n->dag;

	reach(s, root, 0);
	while (s->depth) {
		uint32_t node = s->stack[--s->depth];

		graph_each_out (e, dag, node)
			if (!s->chord[*e])
				reach(s, dag->edge[*e].to, s->potential[node] + s->n->value[*e]);
		graph_each_in (e, dag, node)
			if (!s->chord[*e])
				reach(s, dag->edge[*e].from, s->potential[node] - s->n->value[*e]);
	}
}

static void spread(const struct numbering *n, const bool *chord, uint64_t *potential)
{
	struct spreading s = {.n = n, .chord = chord, .potential = potential};

	s.seen = xcalloc(n->dag.nodes + 1, 1);
	s.stack = graph_numbers(n->dag.nodes, 0);
	spread_from(&s, n->outside);
	for (uint32_t i = 0; i < n->dag.nodes; i++)
		spread_from(&s, i);
	free(s.seen);
	free(s.stack);
}

uint64_t *numbering_increments(const struct numbering *n, const double *weight)
{
	uint64_t *potential = xcalloc(n->dag.nodes + 1, sizeof *potential);
	uint64_t *out = xcalloc(n->dag.edges + 1, sizeof *out);
	double *heavy = xcalloc(n->dag.edges + 1, sizeof *heavy);
	struct chords chords;

	for (uint32_t i = 0; i < n->given; i++) {
		const struct graph_edge *e = &n->dag.edge[i];

		if (e->from != n->outside && e->to != n->outside)
			heavy[i] = weight && weight[i] >= 0 ? 1 + weight[i] : 1;
	}
	chords_choose(&chords, &n->dag, n->outside, heavy, NULL); /* none is negative: it works */
	spread(n, chords.counted, potential);
	for (uint32_t i = 0; i < n->dag.edges; i++)
		out[i] =
			n->value[i] + potential[n->dag.edge[i].from] - potential[n->dag.edge[i].to];
	chords_deinit(&chords);
	free(heavy);
	free(potential);
	return out;
}
