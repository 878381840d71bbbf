#include "paths/plan.h"

#include "base/mem.h"

#include <stdlib.h>

#define REGISTER_COUNT                                                            \
	1.0 /* what a counter that is found by the variable costs more, by a step \
	     */
#define ROUNDS 4

struct planning {
	const struct numbering *n;
	const double *weight; /* by edge of the graph, or NULL */
	uint64_t *increment;  /* by edge of the dag */
	bool *reached;        /* by node */
	bool *known;          /* by node: the sum is the same however it is reached */
	uint64_t *sum;        /* there */
	bool *held;
	double *begins; /* by edge of the dag behind the given ones: how often it is taken */
};

/* ---- what is known ---- */

static void find_reached(struct planning *p)
{
	p->reached = xcalloc(p->n->dag.nodes + 1, 1);
	for (uint32_t i = 0; i < p->n->reached; i++)
		p->reached[p->n->order[i]] = true;
}

static void know(struct planning *p, uint32_t node)
{
	bool first = true;

	p->known[node] = true;
	graph_each_in (e, &p->n->dag, node) {
		uint32_t from = p->n->dag.edge[*e].from;
		uint64_t sum = p->increment[*e];

		if (from != p->n->outside) {
			if (!p->reached[from])
				continue;
			p->known[node] &= p->known[from];
			sum += p->sum[from];
		}
		p->known[node] &= first || sum == p->sum[node];
		p->sum[node] = sum;
		first = false;
	}
}

/* ---- where it pays to have it in the variable all the same ---- */

static double weight_of(const struct planning *p, uint32_t edge)
{
	const struct numbering *n = p->n;

	if (edge >= n->given)
		return p->begins[edge - n->given];
	return p->weight ? p->weight[edge] : 1;
}

/* What an edge costs, with its ends held or not. */
static double cost(const struct planning *p, uint32_t edge, bool from_held, bool to_held)
{
	const struct graph_edge *e = &p->n->dag.edge[edge];

	if (e->to == p->n->outside)
		return from_held ? weight_of(p, edge) * REGISTER_COUNT : 0;
	if (!to_held || (from_held && !p->increment[edge]))
		return 0;
	return weight_of(p, edge);
}

static double cost_around(const struct planning *p, uint32_t node, bool held)
{
	double sum = 0;

	graph_each_in (e, &p->n->dag, node)
		sum += cost(p, *e, p->held[p->n->dag.edge[*e].from], held);
	graph_each_out (e, &p->n->dag, node)
		sum += cost(p, *e, held, p->held[p->n->dag.edge[*e].to]);
	return sum;
}

/* One node at a time, as long as that helps; those that are not known must be held. */
static void choose_held(struct planning *p)
{
	bool changed = true;

	for (uint32_t i = 0; i < p->n->reached; i++)
		p->held[p->n->order[i]] = !p->known[p->n->order[i]];
	for (int round = 0; round < ROUNDS && changed; round++) {
		changed = false;
		for (uint32_t i = 0; i < p->n->reached; i++) {
			uint32_t node = p->n->order[i];
			bool other = !p->held[node];

			if (!p->known[node] ||
				cost_around(p, node, other) >= cost_around(p, node, !other))
				continue;
			p->held[node] = other;
			changed = true;
		}
	}
}

/* ---- steps ---- */

static struct plan_step step_on(const struct planning *p, uint32_t edge)
{
	const struct graph_edge *e = &p->n->dag.edge[edge];
	bool inside = e->from != p->n->outside;
	bool held = inside && p->held[e->from];
	uint64_t by = p->increment[edge] + (inside && !held ? p->sum[e->from] : 0);

	if (inside && !p->reached[e->from])
		return (struct plan_step){PLAN_NOTHING, 0};
	if (e->to == p->n->outside)
		return (struct plan_step){held ? PLAN_COUNT : PLAN_COUNTED, by};
	if (!p->held[e->to] || (held && !by))
		return (struct plan_step){PLAN_NOTHING, 0};
	return (struct plan_step){held ? PLAN_ADD : PLAN_SET, by};
}

/* How often paths begin behind cuts. */
static double *weigh_begins(const struct numbering *n, const double *weight)
{
	double *begins = xcalloc(n->dag.edges - n->given + 1, sizeof *begins);

	for (uint32_t i = 0; i < n->given; i++)
		if (n->cut[i])
			begins[n->begins[i] - n->given] += weight ? weight[i] : 1;
	return begins;
}

static double cost_of(const struct planning *p, uint32_t edge, enum plan_op op)
{
	static const double costs[] = {[PLAN_SET] = 2,
		[PLAN_ADD] = 1,
		[PLAN_COUNT] = 1 + REGISTER_COUNT,
		[PLAN_COUNTED] = 1};

	return weight_of(p, edge) * costs[op];
}

static void make_steps(struct plan *plan, const struct planning *p)
{
	plan->step = xcalloc(p->n->dag.edges + 1, sizeof *plan->step);
	plan->cost = 0;
	for (uint32_t i = 0; i < p->n->dag.edges; i++) {
		plan->step[i] = step_on(p, i);
		plan->cost += cost_of(p, i, plan->step[i].op);
	}
	plan->held = p->held;
	plan->variable = false;
	for (uint32_t i = 0; i < p->n->dag.nodes; i++)
		plan->variable |= plan->held[i];
}

static void plan_one(struct plan *plan, const struct numbering *n, const double *weight)
{
	struct planning p = {.n = n, .weight = weight};

	p.increment = numbering_increments(n, weight);
	p.begins = weigh_begins(n, weight);
	find_reached(&p);
	p.known = xcalloc(n->dag.nodes + 1, sizeof *p.known);
	p.sum = xcalloc(n->dag.nodes + 1, sizeof *p.sum);
	p.held = xcalloc(n->dag.nodes + 1, sizeof *p.held);
	for (uint32_t i = n->reached; i-- > 0;)
		know(&p, n->order[i]);
	choose_held(&p);
	make_steps(plan, &p);
	free(p.increment);
	free(p.begins);
	free(p.reached);
	free(p.known);
	free(p.sum);
}

/* ---- counting where only one way is left ---- */

/* The numbering without what follows there. */
struct ahead {
	const struct numbering *n;
	bool *decided;  /* by node: paths are counted on the ways to it */
	uint64_t *rest; /* by node that is: what its edges add up to, from it on */
};

static uint32_t only_way(const struct numbering *n, uint32_t node)
{
	graph_each_out (e, &n->dag, node) {
		uint32_t to = n->dag.edge[*e].to;

		if (to == n->outside || n->paths[to])
			return *e;
	}
	return GRAPH_NONE;
}

static bool begins_at(const struct numbering *n, uint32_t node)
{
	graph_each_in (e, &n->dag, node)
		if (n->dag.edge[*e].from == n->outside)
			return true;
	return false;
}

static bool find_decided(struct ahead *a, const bool *early)
{
	const struct numbering *n = a->n;
	bool any = false;

	for (uint32_t i = 0; i < n->reached; i++) {
		uint32_t node = n->order[i], edge, to;

		if (!early[node] || n->paths[node] != 1 || begins_at(n, node))
			continue;
		edge = only_way(n, node);
		to = n->dag.edge[edge].to;
		if (to != n->outside && !a->decided[to])
			continue;
		a->decided[node] = any = true;
		a->rest[node] = n->value[edge] + (to == n->outside ? 0 : a->rest[to]);
	}
	return any;
}

/* Edges from decided nodes stay as loops of the outside that nobody takes. */
static void cut_ahead(const struct ahead *a, struct numbering *out)
{
	const struct numbering *n = a->n;
	struct graph_edge *list = xmemdup(n->dag.edge, (n->dag.edges + 1) * sizeof *list);

	*out = *n;
	out->value = xmemdup(n->value, (n->dag.edges + 1) * sizeof *n->value);
	out->order = graph_numbers(n->dag.nodes, 0);
	out->reached = 0;
	for (uint32_t i = 0; i < n->reached; i++)
		if (!a->decided[n->order[i]])
			out->order[out->reached++] = n->order[i];
	for (uint32_t i = 0; i < n->dag.edges; i++) {
		if (a->decided[list[i].from])
			list[i] = (struct graph_edge){n->outside, n->outside};
		if (!a->decided[list[i].to])
			continue;
		out->value[i] += a->rest[list[i].to];
		list[i].to = n->outside;
	}
	graph_init(&out->dag, n->dag.nodes, list, n->dag.edges);
	free(list);
}

static void plan_ahead(struct plan *plan, const struct ahead *a, const double *weight)
{
	const struct numbering *n = a->n;
	struct numbering shorter;

	cut_ahead(a, &shorter);
	plan_one(plan, &shorter, weight);
	for (uint32_t i = 0; i < n->dag.edges; i++)
		if (a->decided[n->dag.edge[i].from]) {
			plan->cost -= weight_of(&(struct planning){.n = n, .weight = weight}, i);
			plan->step[i] = (struct plan_step){PLAN_NOTHING, 0};
		}
	graph_deinit(&shorter.dag);
	free(shorter.value);
	free(shorter.order);
}

void plan_init(
	struct plan *plan, const struct numbering *n, const double *weight, const bool *early)
{
	struct ahead a = {.n = n};
	struct plan other;

	plan_one(plan, n, weight);
	if (!early)
		return;
	a.decided = xcalloc(n->dag.nodes + 1, sizeof *a.decided);
	a.rest = xcalloc(n->dag.nodes + 1, sizeof *a.rest);
	if (find_decided(&a, early)) {
		plan_ahead(&other, &a, weight);
		if (other.cost > plan->cost) {
			plan_deinit(&other);
		} else {
			plan_deinit(plan);
			*plan = other;
		}
	}
	free(a.decided);
	free(a.rest);
}

void plan_deinit(struct plan *p)
{
	free(p->step);
	free(p->held);
	*p = (struct plan){0};
}

bool *plan_short(const struct graph *g, uint32_t outside)
{
	bool *cut = xcalloc(g->edges + 1, sizeof *cut);

	for (uint32_t i = 0; i < g->edges; i++)
		cut[i] = g->edge[i].to != outside && graph_in_degree(g, g->edge[i].to) > 1;
	return cut;
}
