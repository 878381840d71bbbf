#include <math.h>
#include <string.h>

#include "flow/solver_internal.h"

/* The slope of the likelihood along the log flow of a site, but for what flows on from it. */
static double flow_slope(const struct solver *s, const struct site *t, double flow)
{
	double slope = t->exposure > 0 ? t->count - t->exposure * flow : 0;

	return t->bound < INFINITY ? slope - solver_barrier(&s->m) * flow / (t->bound - flow)
				   : slope;
}

/*
 * Minus the curvature along the flow, times its square: that is the count. For errors the expected
 * one, as if seen once less, which matters where next to nothing was.
 */
static double flow_information(
	const struct solver *s, const struct site *t, double flow, bool cautious)
{
	double room = t->bound / flow - 1, expected = t->exposure * flow;

	if (cautious)
		return expected * expected / (expected + 1);
	return t->bound < INFINITY ? t->count + solver_barrier(&s->m) / (room * room) : t->count;
}

static double cautious_information(const struct site *t, const double *share)
{
	double seen = t->seen[0] + t->seen[1], both = share[0] * share[1];
	double variance = (seen * share[0] + 1) * (seen * share[1] + 1) / pow(seen + 2, 3);

	return both * both / variance;
}

/*
 * The outcomes of a branch have the curvature of their shares and that of their sum, and the latter
 * bends the wrong way. A guard that undoes it as far as the branch alone needs is enough to make
 * every step lead up; one of all outcomes stands for a likelihood that is nowhere above the true
 * one.
 */
void step_turn(const struct solver *s, uint32_t i, bool cautious, struct turn *turn)
{
	const struct site *t = &s->m.site[i];
	const struct point *p = &s->now;
	const double *share = p->share[i];
	double move = p->flow[i] * share[0] * share[1];

	*turn = (struct turn){
		.slope = t->seen[0] * share[1] - t->seen[1] * share[0],
		.information = cautious ? cautious_information(t, share)
					: t->seen[0] * share[1] * share[1] +
						  t->seen[1] * share[0] * share[0],
	};
	if (!cautious) {
		turn->cross = turn->slope;
		turn->guard = s->damping * (t->seen[0] + t->seen[1]);
		if (!s->exact)
			turn->guard += turn->cross * turn->cross / turn->information;
	}
	for (int w = 0; w < 2; w++)
		if (t->to[w] != SITE_OUT && t->to[0] != t->to[1])
			turn->effect[w] = (w ? -move : move) / p->flow[t->to[w]];
}

/* Adds to what the log flow of a target owes to that of the site: conservation. */
static void add_debt(struct solver *s, uint32_t i, uint32_t w, double debt)
{
	uint32_t to = s->m.site[i].to[w];
	struct block *b = to == i ? &s->matrix.diagonal[i] : &s->matrix.below[s->slots[i].way[w]];

	if (to >= i)
		b->a[1][0] -= debt;
	if (to <= i)
		b->a[0][1] -= debt;
}

static void add_ways(struct solver *s, uint32_t i)
{
	const struct site *t = &s->m.site[i];

	for (uint32_t w = 0; w < t->ways; w++) {
		uint32_t to = t->to[w];

		if (to == SITE_OUT || to == i)
			continue;
		double part = s->now.flow[i] * s->now.share[i][w] / s->now.flow[to];

		add_debt(s, i, w, part);
		s->matrix.diagonal[to].a[0][1] += part;
		s->matrix.diagonal[to].a[1][0] += part;
	}
}

/* What a branch leaves open about the flows into its targets. */
static void add_turn(struct solver *s, uint32_t i, const struct turn *turn)
{
	const struct site *t = &s->m.site[i];
	double answer = 1 / turn->information;

	for (uint32_t w = 0; w < 2; w++) {
		double effect = turn->effect[w];

		if (effect == 0)
			continue;
		s->matrix.diagonal[t->to[w]].a[1][1] -= effect * effect * answer;
		s->side[t->to[w]][1] += effect * turn->slope * answer;
		add_debt(s, i, w, -effect * turn->cross * answer);
	}
	if (turn->effect[0] != 0 && turn->effect[1] != 0)
		s->matrix.below[s->slots[i].across].a[1][1] -=
			turn->effect[0] * turn->effect[1] * answer;
	s->matrix.diagonal[i].a[0][0] += turn->guard - turn->cross * turn->cross * answer;
	s->side[i][0] -= turn->cross * turn->slope * answer;
}

/*
 * With u the step of the log flows and v that of the log odds: information W of flows, V of odds,
 * cross terms X; conservation C u = E v with multipliers m. Without v it is [W - X V^-1 X, (C + E
 * V^-1 X)'; C + E V^-1 X, -E V^-1 E'] [u; m] = [slopes; E V^-1 slopes].
 */
void step_assemble(struct solver *s, bool cautious)
{
	blocks_clear(&s->matrix);
	memset(s->side, 0, s->m.n * sizeof *s->side);
	for (uint32_t i = 0; i < s->m.n; i++) {
		const struct site *t = &s->m.site[i];
		struct turn turn;

		s->side[i][0] += flow_slope(s, t, s->now.flow[i]);
		s->matrix.diagonal[i].a[0][0] += flow_information(s, t, s->now.flow[i], cautious);
		add_ways(s, i);
		if (t->ways < 2)
			continue;
		step_turn(s, i, cautious, &turn);
		add_turn(s, i, &turn);
	}
	/* The source is not made by any flow; without a scale it stays where it is. */
	s->matrix.diagonal[s->m.source].a[1][1] = -1;
	if (!s->m.scaled)
		s->matrix.diagonal[s->m.source].a[0][0] = 1;
}

double step_answer(const struct solver *s, uint32_t i, const struct turn *turn, double slope)
{
	const struct site *t = &s->m.site[i];
	double sum = slope - turn->cross * s->side[i][0];

	for (int w = 0; w < 2; w++)
		if (turn->effect[w] != 0)
			sum += turn->effect[w] * s->side[t->to[w]][1];
	return sum / turn->information;
}

double step_find(struct solver *s)
{
	double gain = 0;

	step_assemble(s, false);
	blocks_factor(&s->matrix);
	blocks_solve(&s->matrix, s->side);
	for (uint32_t i = 0; i < s->m.n; i++) {
		const struct site *t = &s->m.site[i];
		double flow = s->side[i][0];
		struct turn turn;

		gain += flow_slope(s, t, s->now.flow[i]) * flow;
		s->change[i][0] = s->change[i][1] = flow;
		if (t->ways < 2)
			continue;
		step_turn(s, i, false, &turn);
		double odds = step_answer(s, i, &turn, turn.slope);

		s->change[i][0] += s->now.share[i][1] * odds;
		s->change[i][1] -= s->now.share[i][0] * odds;
		gain += turn.slope * odds;
	}
	return gain;
}
