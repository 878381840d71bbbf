#include <math.h>
#include <string.h>

#include "flow/solver_internal.h"

#define STEPS_MOST    300
#define STEPS_NEAR    40 /* where it is not far */
#define FALL_MOST     0.95
#define STRIDE_LEAST  1e-7
#define LOG_ODDS_MOST 50.0
#define PRIOR_FIRST   1.0
#define GOOD_ENOUGH   1e-5 /* of the log-likelihood */
#define FLOW_LEAST    1e-200
#define FLOW_MOST     1e200

static void find_shares(const struct model *m, struct point *p)
{
	for (uint32_t i = 0; i < m->n; i++) {
		p->share[i][0] = m->site[i].ways == 2 ? 1 / (1 + exp(-p->odds[i])) : 1;
		p->share[i][1] = m->site[i].ways == 2 ? 1 / (1 + exp(p->odds[i])) : 0;
	}
}

static void find_flows(struct solver *s, struct point *p)
{
	uint32_t n = s->m.n, slots = s->pattern.first[n];

	memset(s->down, 0, slots * sizeof *s->down);
	memset(s->up, 0, slots * sizeof *s->up);
	memset(s->out, 0, n * sizeof *s->out);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t w = 0; w < s->m.site[i].ways; w++) {
			uint32_t to = s->m.site[i].to[w], slot = s->slots[i].way[w];

			if (to == SITE_OUT)
				s->out[i] += p->share[i][w];
			else if (to != i)
				(i < to ? s->down : s->up)[slot] += p->share[i][w];
		}
	chain_solve(&s->pattern, s->down, s->up, s->out, p->flow);
	double factor = exp(p->scale) / fmax(p->flow[s->reference], FLOW_LEAST);

	for (uint32_t i = 0; i < n; i++)
		p->flow[i] = fmin(fmax(p->flow[i] * factor, FLOW_LEAST), FLOW_MOST);
}

static double likelihood_of(const struct model *m, const struct point *p)
{
	double sum = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct site *t = &m->site[i];

		if (p->flow[i] >= t->bound)
			return -INFINITY;
		if (t->ways == 2)
			sum += t->seen[0] * log(p->share[i][0]) + t->seen[1] * log(p->share[i][1]);
		if (t->exposure > 0)
			sum += t->count * log(p->flow[i]) - t->exposure * p->flow[i];
		if (t->bound < INFINITY)
			sum += solver_barrier(m) * log1p(-p->flow[i] / t->bound);
	}
	return sum;
}

static void evaluate(struct solver *s, struct point *p)
{
	find_shares(&s->m, p);
	find_flows(s, p);
	p->likelihood = likelihood_of(&s->m, p);
}

/* The longest step that leaves every flow some of what it has. */
static double longest_stride(const struct solver *s)
{
	double fall = 0;

	for (uint32_t i = 0; i < s->m.n; i++)
		for (uint32_t w = 0; w < s->m.site[i].ways; w++)
			fall = fmax(fall, -s->change[i][w]);
	return fall > FALL_MOST ? FALL_MOST / fall : 1;
}

/* Flows change in a straight line, so that they go on conserving. */
static void stride(struct solver *s, double t)
{
	for (uint32_t i = 0; i < s->m.n; i++) {
		double odds = s->now.odds[i];

		if (s->m.site[i].ways == 2)
			odds += log1p(t * s->change[i][0]) - log1p(t * s->change[i][1]);
		s->next.odds[i] = fmin(fmax(odds, -LOG_ODDS_MOST), LOG_ODDS_MOST);
	}
	s->next.scale = s->now.scale + log1p(t * s->side[s->reference][0]);
	evaluate(s, &s->next);
}

/* Along the step, as far as the likelihood rises as it should; returns how far. */
static double walk(struct solver *s, double gain)
{
	for (double t = longest_stride(s); t > STRIDE_LEAST; t /= 2) {
		stride(s, t);
		if (!(s->next.likelihood >= s->now.likelihood + 1e-4 * t * gain))
			continue;
		struct point other = s->now;

		s->now = s->next;
		s->next = other;
		return t;
	}
	return 0;
}

/* How often a site is seen, when it is counted; 0 when not. */
static double rate_of(const struct model *m, uint32_t site)
{
	const struct site *t = site == SITE_OUT ? NULL : &m->site[site];

	return t && t->exposure > 0 ? (t->count + 0.5) / t->exposure : 0;
}

/* The outcomes' own estimate; where there are none, that of counts at both targets. */
static double first_odds(const struct model *m, const struct site *t)
{
	double rate[2] = {rate_of(m, t->to[0]), rate_of(m, t->to[1])};
	double way = rate[0] > 0 && rate[1] > 0 ? rate[0] / (rate[0] + rate[1]) : 0.5;

	return log((t->seen[0] + way) / (t->seen[1] + 1 - way));
}

/* The scale that would bring as many counts as there were, if bounds let it. */
static void start(struct solver *s, const struct flow_start *near)
{
	const struct model *m = &s->m;
	double counts = 0, expected = 0, over = 0;

	s->reference = m->source;
	s->now.scale = 0;
	for (uint32_t i = 0; i < m->n; i++)
		if (m->site[i].ways == 2)
			s->now.odds[i] = near        ? near->odds[i]
					 : m->scaled ? first_odds(m, &m->site[i])
						     : log(m->site[i].seen[0] / m->site[i].seen[1]);
	evaluate(s, &s->now);
	for (uint32_t i = 0; i < m->n; i++) {
		counts += m->site[i].count;
		expected += m->site[i].exposure * s->now.flow[i];
		over = fmax(over, s->now.flow[i] / m->site[i].bound);
		if (m->site[i].count > m->site[s->reference].count)
			s->reference = i;
	}
	if (!m->scaled)
		return;
	s->now.scale = log(fmin(counts / expected, over > 0 ? 0.5 / over : INFINITY) *
			   s->now.flow[s->reference]);
	evaluate(s, &s->now);
}

/* One step; without guards it is the best near the top, and when it is bad, guards go up. */
static bool advance(struct solver *s, double gain)
{
	double t = gain > 0 ? walk(s, gain) : 0;

	if (t == 0 && s->damping == 1)
		return false;
	if (t > 0.1)
		s->damping = s->damping > 1e-6 ? s->damping / 10 : 0;
	else if (!s->exact)
		s->damping = fmin(1, fmax(1e-5, 10 * s->damping));
	s->exact = t > 0.1;
	return true;
}

/*
 * Fails when it runs out of steps, or of digits: where loops turn 1e13 times for each entry, what
 * comes in is no more than the rounding of what turns.
 */
static bool climb(struct solver *s, double enough, uint32_t most, uint32_t *steps)
{
	s->damping = 0;
	s->exact = true;
	enough += 1e-13 * fabs(s->now.likelihood);
	while (*steps < most) {
		double gain = step_find(s);

		if (fabs(gain) < enough && s->damping > 0) {
			s->damping = 0; /* which may have hidden a gain */
			gain = step_find(s);
		}
		if (fabs(gain) < enough)
			return true;
		++*steps;
		if (!advance(s, gain))
			return false;
	}
	return false;
}

/* From where a problem much like it ended, if that is near. */
static bool climb_near(struct solver *s, double prior, struct flow_solution *to)
{
	const struct flow_start *near = s->p->near;

	if (!near || near->n != s->m.n || !s->m.scaled)
		return false;
	model_set_prior(&s->m, prior);
	start(s, near);
	return climb(s, GOOD_ENOUGH, STEPS_NEAR, &to->steps);
}

/*
 * Where the likelihood is flat, strides are long and lead to nothing: a prior that begins strong
 * and fades keeps the way to the top away from the edge, as barriers of interior points do.
 */
void search_climb(struct solver *s, struct flow_solution *to)
{
	double prior = s->p->prior > 0 ? s->p->prior : FLOW_PRIOR;

	to->converged = climb_near(s, prior, to);
	if (!to->converged) {
		to->steps = 0;
		model_set_prior(&s->m, s->m.scaled ? fmax(prior, PRIOR_FIRST) : prior);
		start(s, NULL);
		to->converged = !s->m.scaled; /* with outcomes alone the start is the top */
	}
	while (s->m.prior > prior) {
		climb(s, GOOD_ENOUGH + s->m.prior * (0.1 + 0.003 * s->m.n), STEPS_MOST, &to->steps);
		model_set_prior(&s->m, fmax(prior, s->m.prior / 10));
		evaluate(s, &s->now);
	}
	if (!to->converged)
		to->converged = climb(s, GOOD_ENOUGH, STEPS_MOST, &to->steps);
	to->likelihood = s->now.likelihood;
}
