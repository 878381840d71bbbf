#include "flow/solver.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "flow/solver_internal.h"

static uint32_t slot_of(const struct pattern *p, uint32_t a, uint32_t b)
{
	return a == SITE_OUT || b == SITE_OUT || a == b ? GRAPH_NONE : pattern_slot(p, a, b);
}

static void point_init(struct point *p, uint32_t n)
{
	*p = (struct point){
		.odds = xcalloc((size_t)n + 1, sizeof *p->odds),
		.share = xcalloc((size_t)n + 1, sizeof *p->share),
		.flow = xcalloc((size_t)n + 1, sizeof *p->flow),
	};
}

static void point_deinit(struct point *p)
{
	free(p->odds);
	free(p->share);
	free(p->flow);
}

static void find_residual(const struct solver *s, struct flow_solution *to)
{
	const struct graph *g = s->p->graph;

	for (uint32_t n = 0; n < g->nodes; n++) {
		double in = n == s->p->entry ? s->now.flow[s->m.source] : 0;

		graph_each_in (e, g, n)
			in += to->edge[*e];
		if (to->node[n] > 0)
			to->residual = fmax(to->residual, fabs(in - to->node[n]) / to->node[n]);
	}
}

/* The odds of this search become those of the solution. */
static void take_end(struct solver *s, struct flow_solution *to)
{
	to->end = (struct flow_start){s->now.odds, s->m.n};
	s->now.odds = NULL;
}

static void take_flows(const struct solver *s, struct flow_solution *to)
{
	const struct graph *g = s->p->graph;

	for (uint32_t n = 0; n < g->nodes; n++)
		if (s->m.node_site[n] != GRAPH_NONE)
			to->node[n] = s->now.flow[s->m.node_site[n]];
	for (uint32_t e = 0; e < g->edges; e++) {
		uint32_t i = s->m.edge_site[e];

		if (i != GRAPH_NONE)
			to->edge[e] = s->now.flow[i] * s->now.share[i][s->m.edge_way[e]];
	}
	find_residual(s, to);
}

static int lay_out(struct solver *s, struct err *e)
{
	struct model *m = &s->m;
	_cleanup_free_ struct graph_edge *pair = xmalloc(3 * ((size_t)m->n + 1) * sizeof *pair);
	size_t n = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const uint32_t *to = m->site[i].to;

		for (int w = 0; w < 2; w++)
			if (to[w] != SITE_OUT)
				pair[n++] = (struct graph_edge){i, to[w]};
		if (to[0] != SITE_OUT && to[1] != SITE_OUT)
			pair[n++] = (struct graph_edge){to[0], to[1]};
	}
	if (pattern_init(&s->pattern, m->n, pair, n, m->source))
		return err_set(e, -E2BIG,
			"the flow of a graph of %u nodes and %u edges: too tangled to solve",
			s->p->graph->nodes, s->p->graph->edges);
	model_permute(m, s->p->graph, s->pattern.place);
	return 0;
}

static void space_init(struct solver *s)
{
	size_t n = (size_t)s->m.n + 1, slots = (size_t)s->pattern.first[s->m.n] + 1;

	s->slots = xmalloc(n * sizeof *s->slots);
	s->side = xcalloc(n, sizeof *s->side);
	s->change = xcalloc(n, sizeof *s->change);
	s->down = xmalloc(slots * sizeof *s->down);
	s->up = xmalloc(slots * sizeof *s->up);
	s->out = xmalloc(n * sizeof *s->out);
	blocks_init(&s->matrix, &s->pattern);
	point_init(&s->now, s->m.n);
	point_init(&s->next, s->m.n);
	for (uint32_t i = 0; i < s->m.n; i++) {
		const uint32_t *to = s->m.site[i].to;

		s->slots[i] = (struct slots){
			{slot_of(&s->pattern, i, to[0]), slot_of(&s->pattern, i, to[1])},
			slot_of(&s->pattern, to[0], to[1])};
	}
}

static void solver_deinit(struct solver *s)
{
	free(s->slots);
	free(s->side);
	free(s->change);
	free(s->down);
	free(s->up);
	free(s->out);
	blocks_deinit(&s->matrix);
	point_deinit(&s->now);
	point_deinit(&s->next);
	pattern_deinit(&s->pattern);
	model_deinit(&s->m);
}

static bool sound_counts(const struct flow_count *c, uint32_t n)
{
	for (uint32_t i = 0; c && i < n; i++)
		if (!(c[i].count >= 0 && c[i].count < INFINITY && c[i].exposure >= 0 &&
			    c[i].exposure < INFINITY) ||
			(c[i].count > 0 && c[i].exposure == 0))
			return false;
	return true;
}

static bool sound_numbers(const double *p, uint32_t n, double least, double most)
{
	for (uint32_t i = 0; p && i < n; i++)
		if (!(p[i] >= least && p[i] <= most))
			return false;
	return true;
}

static int check(const struct flow_problem *p, struct err *e)
{
	const struct graph *g = p->graph;

	if (p->entry >= g->nodes || p->exit >= g->nodes)
		return err_set(e, -EINVAL, "the flow of a graph: entry or exit is no node of it");
	if (!sound_counts(p->node, g->nodes) || !sound_counts(p->edge, g->edges) ||
		!sound_numbers(p->outcome, g->edges, 0, 1e30) ||
		!sound_numbers(p->weight, g->nodes, 0, 1e30) ||
		!sound_numbers(p->bound, g->edges, 1e-30, INFINITY) ||
		!sound_numbers(&p->prior, 1, 0, 1e30))
		return err_set(e, -EINVAL,
			"the flow of a graph: a count is negative, not finite or has no exposure");
	return 0;
}

int solver_solve(const struct flow_problem *p, struct flow_solution *to, struct err *e)
{
	const struct graph *g = p->graph;
	struct solver s = {.p = p};
	int r = check(p, e);

	if (r)
		return r;
	model_init(&s.m, p);
	r = lay_out(&s, e);
	if (r) {
		model_deinit(&s.m);
		return r;
	}
	*to = (struct flow_solution){
		.node = xcalloc((size_t)g->nodes + 1, sizeof *to->node),
		.edge = xcalloc((size_t)g->edges + 1, sizeof *to->edge),
		.node_error = xcalloc((size_t)g->nodes + 1, sizeof *to->node_error),
		.edge_error = xcalloc((size_t)g->edges + 1, sizeof *to->edge_error),
		.scaled = s.m.scaled,
	};
	space_init(&s);
	search_climb(&s, to);
	take_flows(&s, to);
	errors_find(&s, to);
	take_end(&s, to);
	solver_deinit(&s);
	return 0;
}

void flow_start_deinit(struct flow_start *s)
{
	free(s->odds);
	*s = (struct flow_start){0};
}

void solver_free(struct flow_solution *s)
{
	free(s->node);
	free(s->edge);
	free(s->node_error);
	free(s->edge_error);
	flow_start_deinit(&s->end);
	*s = (struct flow_solution){0};
}
