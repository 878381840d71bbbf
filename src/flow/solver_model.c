#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "flow/components.h"
#include "flow/solver_internal.h"

enum { SWEEPS = 8 };

/* One way out of a node, or several that were put together at a site. */
struct way {
	uint32_t edge; /* GRAPH_NONE when it is none */
	uint32_t to;   /* site or SITE_OUT */
	double seen, hope;
};

struct builder {
	struct model *m;
	const struct flow_problem *p;
	struct components c;
	struct graph_walk walk;
	bool *ends;   /* by node: flow may leave the graph here */
	double *hope; /* by node: see find_hopes */
	VEC(struct site) sites;
	VEC(struct way) ways;
};

static void find_ends(struct builder *b)
{
	const struct graph *g = b->p->graph;
	_cleanup_free_ bool *have = xcalloc((size_t)b->c.n + 1, sizeof *have);

	b->ends = xcalloc((size_t)g->nodes + 1, sizeof *b->ends);
	if (b->c.of[b->p->exit] != GRAPH_NONE) {
		b->ends[b->p->exit] = true;
		have[b->c.of[b->p->exit]] = true;
	}
	for (uint32_t i = 0; i < b->walk.reached; i++) {
		uint32_t node = b->walk.preorder[i], c = b->c.of[node];

		if (!b->c.final[c] || have[c])
			continue;
		b->ends[node] = true;
		have[c] = true;
	}
}

/* Edges against the depth-first order; every cycle has one. */
static bool retreats(const struct builder *b, uint32_t edge)
{
	const struct graph_edge *e = &b->p->graph->edge[edge];

	return b->walk.post[e->from] <= b->walk.post[e->to];
}

static double hope_of_edge(const struct builder *b, uint32_t edge)
{
	return b->hope[b->p->graph->edge[edge].to] * (retreats(b, edge) ? 0.5 : 1);
}

/*
 * What is expected of branches before any was seen: that they go either way, in walks that come to
 * an end with few turns back. The hope of a node is the probability that a walk from it ends, when
 * branches are even and one in two walks is given up at each turn; branches in proportion to hope
 * make the walks that do end. Even branches alone would run a loop of 30 tests with 30 ways to
 * continue a billion times. Some sweeps are near enough.
 */
static void find_hopes(struct builder *b)
{
	const struct graph *g = b->p->graph;

	b->hope = xcalloc((size_t)g->nodes + 1, sizeof *b->hope);
	for (int sweep = 0; sweep < SWEEPS; sweep++)
		for (uint32_t i = 0; i < b->walk.reached; i++) {
			uint32_t node = b->walk.postorder[i];
			double sum = b->ends[node];

			graph_each_out (e, g, node)
				sum += hope_of_edge(b, *e);
			b->hope[node] =
				fmax(1e-280, sum / (graph_out_degree(g, node) + b->ends[node]));
		}
}

static uint32_t add_site(struct builder *b)
{
	*vec_add(&b->sites) = (struct site){.to = {SITE_OUT, SITE_OUT}, .bound = INFINITY};
	return b->sites.n - 1;
}

static void add_way(struct builder *b, uint32_t site, const struct way *way)
{
	struct site *s = &b->sites.p[site];

	s->to[s->ways] = way->to;
	s->seen[s->ways] = way->seen;
	s->hope[s->ways] = way->hope;
	if (way->edge != GRAPH_NONE) {
		b->m->edge_site[way->edge] = site;
		b->m->edge_way[way->edge] = s->ways;
	}
	s->ways++;
}

/* Two ways become one, to a site that chooses between them. */
static struct way join_ways(struct builder *b, const struct way *two)
{
	uint32_t site = add_site(b);

	add_way(b, site, &two[0]);
	add_way(b, site, &two[1]);
	return (struct way){GRAPH_NONE, site, two[0].seen + two[1].seen, two[0].hope + two[1].hope};
}

static void observe(struct site *s, const struct flow_count *c)
{
	s->count = c->count;
	s->exposure = c->exposure;
}

/* Where an edge leads: to a site of its own first when something is known of it. */
static uint32_t edge_target(struct builder *b, uint32_t edge)
{
	const struct flow_problem *p = b->p;
	uint32_t to = b->m->node_site[p->graph->edge[edge].to];
	bool counted = p->edge && p->edge[edge].exposure > 0;
	bool bounded = p->bound && p->bound[edge] < INFINITY;

	if (!counted && !bounded)
		return to;
	uint32_t site = add_site(b);
	struct site *s = &b->sites.p[site];

	if (counted)
		observe(s, &p->edge[edge]);
	if (bounded)
		s->bound = p->bound[edge];
	add_way(b, site, &(struct way){GRAPH_NONE, to, 0, 0});
	return site;
}

static void collect_ways(struct builder *b, uint32_t node)
{
	const struct flow_problem *p = b->p;
	double sum = b->ends[node];

	graph_each_out (e, p->graph, node)
		sum += hope_of_edge(b, *e);
	b->ways.n = 0;
	if (b->ends[node])
		*vec_add(&b->ways) = (struct way){GRAPH_NONE, SITE_OUT, 0, 1 / sum};
	graph_each_out (e, p->graph, node)
		*vec_add(&b->ways) = (struct way){*e, edge_target(b, *e),
			p->outcome ? p->outcome[*e] : 0, fmax(hope_of_edge(b, *e) / sum, 1e-6)};
}

static void build_node(struct builder *b, uint32_t node)
{
	collect_ways(b, node);
	while (b->ways.n > 2) {
		size_t n = 0;

		for (size_t i = 0; i < b->ways.n; i += 2)
			b->ways.p[n++] =
				i + 1 < b->ways.n ? join_ways(b, &b->ways.p[i]) : b->ways.p[i];
		b->ways.n = n;
	}
	for (size_t i = 0; i < b->ways.n; i++)
		add_way(b, b->m->node_site[node], &b->ways.p[i]);
	if (b->p->node && b->p->node[node].exposure > 0)
		observe(&b->sites.p[b->m->node_site[node]], &b->p->node[node]);
}

/* Exposures without a single count would only pull the scale to 0. */
static void find_scale(struct model *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		m->scaled |= m->site[i].count > 0;
	for (uint32_t i = 0; i < m->n && !m->scaled; i++) {
		m->site[i].exposure = 0;
		m->site[i].bound = INFINITY;
	}
}

void model_init(struct model *m, const struct flow_problem *p)
{
	const struct graph *g = p->graph;
	struct builder b = {.m = m, .p = p};

	*m = (struct model){
		.node_site = graph_numbers(g->nodes, GRAPH_NONE),
		.edge_site = graph_numbers(g->edges, GRAPH_NONE),
		.edge_way = xcalloc((size_t)g->edges + 1, 1),
	};
	components_init(&b.c, g, p->entry);
	graph_walk_init(&b.walk, g, p->entry);
	find_ends(&b);
	find_hopes(&b);
	for (uint32_t i = 0; i < b.walk.reached; i++)
		m->node_site[b.walk.preorder[i]] = add_site(&b);
	for (uint32_t i = 0; i < b.walk.reached; i++)
		build_node(&b, b.walk.preorder[i]);
	m->source = add_site(&b);
	add_way(&b, m->source, &(struct way){GRAPH_NONE, m->node_site[p->entry], 0, 0});
	m->site = b.sites.p;
	m->n = b.sites.n;
	find_scale(m);
	components_deinit(&b.c);
	graph_walk_deinit(&b.walk);
	free(b.ends);
	free(b.hope);
	vec_deinit(&b.ways);
}

void model_set_prior(struct model *m, double prior)
{
	for (uint32_t i = 0; i < m->n; i++)
		for (int w = 0; w < 2; w++)
			m->site[i].seen[w] += (prior - m->prior) * m->site[i].hope[w];
	m->prior = prior;
}

static void renumber(uint32_t *sites, uint32_t n, const uint32_t *place)
{
	for (uint32_t i = 0; i < n; i++)
		if (sites[i] != GRAPH_NONE)
			sites[i] = place[sites[i]];
}

void model_permute(struct model *m, const struct graph *g, const uint32_t *place)
{
	struct site *site = xmalloc(((size_t)m->n + 1) * sizeof *site);

	for (uint32_t i = 0; i < m->n; i++) {
		renumber(m->site[i].to, 2, place);
		site[place[i]] = m->site[i];
	}
	free(m->site);
	m->site = site;
	renumber(m->node_site, g->nodes, place);
	renumber(m->edge_site, g->edges, place);
	m->source = place[m->source];
}

void model_deinit(struct model *m)
{
	free(m->site);
	free(m->node_site);
	free(m->edge_site);
	free(m->edge_way);
	*m = (struct model){0};
}
