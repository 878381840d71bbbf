#include "analyze/frequency_internal.h"

#include "base/err.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

/*
 * What an instruction takes on the average where nothing is known. It only gives counts that are
 * relative anyway a likely size.
 */
#define CYCLES_AN_INSTRUCTION 0.8
#define CYCLES_A_NS           3.0

/*
 * The samples of a block over its frequency vary from block to block by a factor of e or so: they
 * say no more than so many counts would.
 */
#define SAMPLES_SAY 1.0

#define NINETY 1.645 /* standard errors around the 90% interval */

/* ---- samples as evidence ---- */

struct fit {
	const struct evidence *ev;
	struct traced traced;
	double *taken;  /* by node: samples */
	double *needed; /* by node: samples that one execution should bring */
	struct flow_count *count;
	double *weight; /* by node: instructions */
};

static double samples_of(const struct evidence *ev, const struct flow_block *b)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < b->count; i++)
		sum += ev->samples[b->first + i];
	return (double)sum;
}

static void fit_init(struct fit *fit, const struct evidence *ev)
{
	const struct flow *f = ev->flow;
	double cycles = ev->clock ? ev->period * CYCLES_A_NS : ev->period;

	*fit = (struct fit){.ev = ev};
	traced_init(&fit->traced, ev);
	fit->taken = xcalloc(f->graph.nodes, sizeof *fit->taken);
	fit->needed = xcalloc(f->graph.nodes, sizeof *fit->needed);
	fit->count = xcalloc(f->graph.nodes, sizeof *fit->count);
	fit->weight = xcalloc(f->graph.nodes, sizeof *fit->weight);
	for (uint32_t b = 0; b < f->nblocks; b++) {
		fit->taken[b] = samples_of(ev, &f->blocks[b]);
		fit->weight[b] = f->blocks[b].count;
		fit->needed[b] = f->blocks[b].count * CYCLES_AN_INSTRUCTION /
				 (cycles > 0 ? cycles : CYCLES_AN_INSTRUCTION);
	}
}

static void fit_deinit(struct fit *fit)
{
	traced_deinit(&fit->traced);
	free(fit->taken);
	free(fit->needed);
	free(fit->count);
	free(fit->weight);
}

/* flow: as far as it is known, NULL: as if all instructions ran equally often. */
static void weaken_samples(struct fit *fit, const double *flow)
{
	const struct flow *f = fit->ev->flow;
	double all = 0, even;

	for (uint32_t b = 0; b < f->nblocks; b++)
		all += fit->needed[b];
	even = all > 0 ? (double)fit->ev->total / all : 0;
	for (uint32_t b = 0; b < f->nblocks; b++) {
		double expected = fit->needed[b] * (flow ? flow[b] : even);
		double most = fit->taken[b] > expected ? fit->taken[b] : expected;
		double say = most > SAMPLES_SAY ? SAMPLES_SAY / most : 1;

		fit->count[b] = (struct flow_count){fit->taken[b] * say, fit->needed[b] * say};
	}
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

static int solve(struct fit *fit, struct flow_solution *s, struct err *e)
{
	const struct flow *f = fit->ev->flow;
	const struct flow_problem p = {.graph = &fit->traced.graph,
		.entry = f->entry_node,
		.exit = f->exit_node,
		.node = fit->count,
		.outcome = fit->traced.outcome,
		.weight = fit->weight};

	return solver_solve(&p, s, e);
}

/* How much samples may say depends on what is expected of them, and that on the flows. */
static int estimate(struct frequency *to, struct fit *fit, struct err *e)
{
	struct flow_solution s = {0};
	int rc;

	weaken_samples(fit, NULL);
	if ((rc = solve(fit, &s, e)))
		return rc;
	weaken_samples(fit, s.node);
	solver_free(&s);
	if ((rc = solve(fit, &s, e)))
		return rc;
	take_solution(to, fit, &s);
	solver_free(&s);
	return 0;
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
