#include "analyze/frequency_internal.h"

#include "base/mem.h"

#include <stdlib.h>

/*
 * What an instruction takes on the average where nothing is known. It only gives counts that are
 * relative anyway a likely size.
 */
#define CYCLES_AN_INSTRUCTION 0.8
#define CYCLES_A_NS           3.0

/*
 * The samples of a block over its frequency vary from block to block by a factor of e or so, and
 * those of neighbours together: each says no more than a fifth of a count would.
 */
#define SAMPLES_SAY 0.2

/*
 * Outcomes of one burst go together, and bursts begin where time is spent, so that what a branch
 * did there is not quite what it does: how far the logarithm of its odds is off varies by this from
 * branch to branch (measured on programs with exact counts), however many outcomes there are.
 */
#define BURSTS_SAY 0.5
#define TIME_BIAS  0.5

/* Counted outcomes of another run are no samples, but that run may have been a little different. */
#define COUNTS_DOUBT 0.05
#define COUNTS_MOST  1e6 /* more of them at one branch say no more, and make large numbers */

static double samples_of(const struct evidence *ev, const struct flow_block *b)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < b->count; i++)
		sum += ev->samples[b->first + i];
	return (double)sum;
}

/* Counts in place of what bursts saw. */
static void take_counts(struct fit *fit)
{
	const struct graph *g = &fit->traced.graph;

	for (uint32_t e = 0; e < g->edges; e++) {
		uint32_t edge = fit->traced.edge[e];
		double all = g->edge[e].from < fit->ev->flow->nblocks
				     ? fit->ev->counts->block[g->edge[e].from]
				     : 0;

		fit->traced.outcome[e] = edge == GRAPH_NONE ? 0 : fit->ev->counts->edge[edge];
		if (all > COUNTS_MOST)
			fit->traced.outcome[e] *= COUNTS_MOST / all;
	}
}

/* Outcomes say no more of a branch than what is left of its odds' doubt. */
static void weaken_outcomes(struct fit *fit)
{
	const struct graph *g = &fit->traced.graph;
	double *outcome = fit->traced.outcome;
	double doubt = fit->ev->counts ? COUNTS_DOUBT : TIME_BIAS;

	for (uint32_t node = 0; node < g->nodes; node++) {
		double all = 0, squares = 0, say;
		uint32_t ways = graph_out_degree(g, node);

		graph_each_out (e, g, node) {
			all += outcome[*e];
			squares += outcome[*e] * outcome[*e];
		}
		if (!(all > 0) || ways < 2)
			continue;
		say = BURSTS_SAY * (all - squares / all) / ways * doubt * doubt;
		graph_each_out (e, g, node)
			outcome[*e] *= BURSTS_SAY / (1 + say);
	}
}

/* What excursions showed says more than bursts, where they came by. */
static void add_passages(struct fit *fit)
{
	double *said = xcalloc(fit->traced.graph.edges + 1, sizeof *said);

	excursions_say(fit->ev, &fit->traced, said);
	for (uint32_t e = 0; e < fit->traced.graph.edges; e++)
		fit->traced.outcome[e] += said[e];
	free(said);
}

void fit_init(struct fit *fit, const struct evidence *ev)
{
	const struct flow *f = ev->flow;
	double cycles = ev->clock ? ev->period * CYCLES_A_NS : ev->period;

	*fit = (struct fit){.ev = ev};
	traced_init(&fit->traced, ev);
	if (ev->counts)
		take_counts(fit);
	weaken_outcomes(fit);
	if (!ev->counts)
		add_passages(fit);
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

void fit_deinit(struct fit *fit)
{
	traced_deinit(&fit->traced);
	free(fit->taken);
	free(fit->needed);
	free(fit->count);
	free(fit->weight);
	flow_start_deinit(&fit->start);
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

/* A count with a relative error of 1 / sqrt(k) is like k that were counted. */
static void add_anchors(struct fit *fit)
{
	for (size_t i = 0; i < fit->nanchors; i++) {
		const struct fit_anchor *a = &fit->anchors[i];
		double k = 1 / (a->error * a->error);

		fit->count[a->block].count += k;
		fit->count[a->block].exposure += k / a->count;
	}
}

static int solve(struct fit *fit, struct flow_solution *s, struct err *e)
{
	const struct flow *f = fit->ev->flow;
	const struct flow_problem p = {.graph = &fit->traced.graph,
		.entry = f->entry_node,
		.exit = f->exit_node,
		.node = fit->count,
		.outcome = fit->traced.outcome,
		.weight = fit->weight,
		.near = &fit->start};
	int rc = solver_solve(&p, s, e);

	if (rc)
		return rc;
	flow_start_deinit(&fit->start);
	fit->start = s->end;
	s->end = (struct flow_start){0};
	return 0;
}

/* How much samples may say depends on what is expected of them, and that on the flows. */
int fit_solve(struct fit *fit, struct flow_solution *s, struct err *e)
{
	int rc;

	weaken_samples(fit, NULL);
	add_anchors(fit);
	if ((rc = solve(fit, s, e)))
		return rc;
	weaken_samples(fit, s->node);
	add_anchors(fit);
	solver_free(s);
	return solve(fit, s, e);
}
