#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "flow/solver_internal.h"

/* Variance of the log flow of one way of a site, and its covariance with that of the total. */
static double way_variance(const struct solver *s, uint32_t i, uint32_t w, double *with_total)
{
	const struct site *t = &s->m.site[i];
	const struct block *inverse = s->matrix.diagonal;
	double lean = w ? -s->now.share[i][0] : s->now.share[i][1], spread = 0, along = 0;
	struct turn turn;

	*with_total = s->side[i][0];
	if (t->ways < 2)
		return inverse[i].a[0][0];
	step_turn(s, i, true, &turn);
	for (int k = 0; k < 2; k++) {
		uint32_t to = t->to[k];

		if (turn.effect[k] == 0)
			continue;
		const struct block *b =
			to == i ? &inverse[i] : &s->matrix.below[s->slots[i].way[k]];

		spread += turn.effect[k] * turn.effect[k] * inverse[to].a[1][1];
		along += turn.effect[k] * (to > i ? b->a[1][0] : b->a[0][1]);
	}
	if (turn.effect[0] != 0 && turn.effect[1] != 0)
		spread += 2 * turn.effect[0] * turn.effect[1] *
			  s->matrix.below[s->slots[i].across].a[1][1];
	*with_total += lean * step_answer(s, i, &turn, 0);
	return inverse[i].a[0][0] + 2 * lean * along / turn.information +
	       lean * lean * (1 + spread / turn.information) / turn.information;
}

static struct flow_error error_of(
	const struct solver *s, double variance, double with, double total)
{
	return (struct flow_error){
		.absolute = s->m.scaled ? sqrt(fmax(variance, 0)) : INFINITY,
		.relative = sqrt(fmax(variance - 2 * with + total, 0)),
	};
}

/* Sets the right side to how the log of the total depends on the log flows. */
static void weigh_total(struct solver *s)
{
	const struct flow_problem *p = s->p;
	double sum = 0;

	memset(s->side, 0, s->m.n * sizeof *s->side);
	for (uint32_t n = 0; n < p->graph->nodes; n++)
		if (s->m.node_site[n] != GRAPH_NONE)
			sum += (p->weight ? p->weight[n] : 1) * s->now.flow[s->m.node_site[n]];
	for (uint32_t n = 0; n < p->graph->nodes && sum > 0; n++)
		if (s->m.node_site[n] != GRAPH_NONE)
			s->side[s->m.node_site[n]][0] = (p->weight ? p->weight[n] : 1) *
							s->now.flow[s->m.node_site[n]] / sum;
}

static double total_variance(const struct solver *s, const double (*weights)[2])
{
	double sum = 0;

	for (uint32_t i = 0; i < s->m.n; i++)
		sum += weights[i][0] * s->side[i][0];
	return sum;
}

void errors_find(struct solver *s, struct flow_solution *to)
{
	const struct graph *g = s->p->graph;
	size_t size = s->m.n * sizeof *s->side;

	step_assemble(s, true);
	blocks_factor(&s->matrix);
	weigh_total(s);
	_cleanup_free_ double(*weights)[2] = xmemdup(s->side, size);

	blocks_solve(&s->matrix, s->side);
	blocks_invert(&s->matrix);
	double total = total_variance(s, weights), with;

	for (uint32_t n = 0; n < g->nodes; n++) {
		uint32_t i = s->m.node_site[n];

		to->node_error[n] = (struct flow_error){INFINITY, INFINITY};
		if (i != GRAPH_NONE)
			to->node_error[n] =
				error_of(s, s->matrix.diagonal[i].a[0][0], s->side[i][0], total);
	}
	for (uint32_t e = 0; e < g->edges; e++) {
		uint32_t i = s->m.edge_site[e];

		to->edge_error[e] = (struct flow_error){INFINITY, INFINITY};
		if (i == GRAPH_NONE)
			continue;
		double variance = way_variance(s, i, s->m.edge_way[e], &with);

		to->edge_error[e] = error_of(s, variance, with, total);
	}
}
