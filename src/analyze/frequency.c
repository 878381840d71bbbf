#include "analyze/frequency_internal.h"

#include "analyze/induction.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"
#include "flow/loops.h"

#include <math.h>
#include <stdlib.h>

#define NINETY 1.645 /* standard errors around the 90% interval */

/* What pairs of samples cannot tell: time that a hypervisor stole, loops entered anew. */
#define ANCHOR_DOUBT 0.04
/* A scale is known when the samples' blocks have an absolute error below, in the mean. */
#define SCALE_KNOWN 0.12

/* ---- anchors ---- */

typedef VEC(struct fit_anchor) anchor_list;

static double samples_in(const struct fit *fit, const struct loops *loops, uint32_t loop)
{
	double sum = 0;

	for (uint32_t b = 0; b < fit->ev->flow->nblocks; b++)
		if (loops_contain(loops, loop, b))
			sum += fit->taken[b];
	return sum;
}

/*
 * A loop that calls nothing spends its time under its own samples, so its turns are rate times
 * that. The samples bring their own error.
 */
static void find_anchors(const struct fit *fit, const struct flow_solution *s, anchor_list *out)
{
	struct loops loops;
	struct loop_rate *rates;
	size_t n;

	if (!fit->ev->clock || !fit->ev->nanchors)
		return;
	loops_init(&loops, &fit->traced.graph, fit->ev->flow->entry_node);
	n = induction_rates(fit->ev, &loops, s->node, &rates);
	for (size_t i = 0; i < n; i++) {
		double samples = samples_in(fit, &loops, rates[i].loop);
		double count = rates[i].rate * samples * fit->ev->period;

		if (rates[i].calls || !(count > 0))
			continue;
		*vec_add(out) = (struct fit_anchor){rates[i].header, count,
			sqrt(rates[i].error * rates[i].error + 1 / samples +
				ANCHOR_DOUBT * ANCHOR_DOUBT)};
	}
	free(rates);
	loops_deinit(&loops);
}

/* ---- from flows to estimates ---- */

static enum frequency_confidence confidence_of(double error)
{
	if (error < 0.04)
		return CONFIDENCE_HIGH;
	return error < 0.15 ? CONFIDENCE_MEDIUM : CONFIDENCE_LOW;
}

static struct estimate estimate_of(double flow, double error, bool converged)
{
	struct estimate x = {.count = flow, .low = 0, .high = INFINITY};

	if (error < 100) {
		x.low = flow * exp(-NINETY * error);
		x.high = flow * exp(NINETY * error);
	}
	x.confidence = converged && flow > 0 ? confidence_of(error) : CONFIDENCE_LOW;
	return x;
}

static void take_solution(
	struct frequency *to, const struct fit *fit, const struct flow_solution *s)
{
	const struct flow *f = to->flow;
	const struct traced *t = &fit->traced;

	to->converged = s->converged;
	for (uint32_t b = 0; b < f->nblocks; b++)
		to->block[b] = estimate_of(s->node[b], s->node_error[b].relative, s->converged);
	for (uint32_t e = 0; e < t->graph.edges; e++)
		if (t->edge[e] != GRAPH_NONE)
			to->edge[t->edge[e]] =
				estimate_of(s->edge[e], s->edge_error[e].relative, s->converged);
}

/* The error of the scale is that of the blocks where the samples are. */
static void take_scale(struct frequency *to, const struct fit *fit, const struct flow_solution *s)
{
	double sum = 0, samples = 0, error;

	for (uint32_t b = 0; b < to->flow->nblocks; b++) {
		double one = s->node_error[b].absolute;

		samples += fit->taken[b];
		sum += fit->taken[b] * (one < 1 ? one * one : 1);
	}
	error = samples > 0 ? sqrt(sum / samples) : 1;
	if (!s->converged || !fit->nanchors || error > SCALE_KNOWN)
		return;
	to->scale = FREQUENCY_KNOWN;
	to->scale_low = exp(-NINETY * error);
	to->scale_high = exp(NINETY * error);
}

static int estimate(struct frequency *to, struct fit *fit, struct err *e)
{
	struct flow_solution s = {0};
	anchor_list anchors = {0};
	int rc = fit_solve(fit, &s, e);

	if (rc)
		return rc;
	find_anchors(fit, &s, &anchors);
	if (anchors.n) {
		solver_free(&s);
		fit->anchors = anchors.p;
		fit->nanchors = anchors.n;
		rc = fit_solve(fit, &s, e);
	}
	if (!rc) {
		take_solution(to, fit, &s);
		take_scale(to, fit, &s);
		solver_free(&s);
	}
	vec_deinit(&anchors);
	return rc;
}

int frequency_create(const struct evidence *ev, struct frequency **out, struct err *e)
{
	struct frequency *to = xcalloc(1, sizeof *to);
	struct fit fit;
	int rc;

	*to = (struct frequency){.flow = ev->flow, .scale_high = INFINITY};
	to->block = xcalloc(ev->flow->nblocks + 1, sizeof *to->block);
	to->edge = xcalloc(ev->flow->graph.edges + 1, sizeof *to->edge);
	fit_init(&fit, ev);
	rc = estimate(to, &fit, e);
	fit_deinit(&fit);
	if (rc) {
		frequency_destroy(to);
		return rc;
	}
	*out = to;
	return 0;
}

void frequency_destroy(struct frequency *f)
{
	if (!f)
		return;
	free(f->block);
	free(f->edge);
	free(f);
}

const char *frequency_scale_name(enum frequency_scale scale)
{
	static const char *const names[] = {"relative", "known", "exact"};

	return names[scale];
}

const char *frequency_confidence_name(enum frequency_confidence confidence)
{
	static const char *const names[] = {"low", "medium", "high", "exact"};

	return names[confidence];
}
