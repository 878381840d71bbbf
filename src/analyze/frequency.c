#include "analyze/frequency_internal.h"

#include "analyze/induction.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"
#include "flow/loops.h"

#include <math.h>
#include <stdlib.h>

#define NINETY FREQUENCY_NINETY

/*
 * The bias of neighbouring branches goes together and cancels in part: errors are this much smaller
 * than if each were off by itself (measured on programs with exact counts).
 */
#define TOGETHER 0.6

/* What pairs of samples cannot tell: time that a hypervisor stole, loops entered anew. */
#define ANCHOR_DOUBT 0.04
/* And what the sharing out of callees' time cannot. */
#define CALLS_DOUBT 0.2
/* What words that count cannot tell: what they do where bursts do not come, */
#define PACE_DOUBT 0.04
/* and how fast it went while nobody counted: bursts see as much of slow turns as of fast ones. */
#define UNCOUNTED_DOUBT 0.8
/* Turns that bursts see come together, */
#define IN_A_ROW 8.0
/* and few, or few of all, say nothing. */
#define FEWEST_SEEN  40
#define FEWEST_SHARE 0.3
/* Instructions in a ns: between these. Small procedures seem fast, for part of their time shows in
 * their callers. */
#define SLOWEST_PACE 0.25
#define FASTEST_PACE 30.0
/* How much longer than the time between samples a loop must go on, in the mean. */
#define STAYS 0.3
/* A scale is known when the samples' blocks have an absolute error below, in the mean. */
#define SCALE_KNOWN 0.28
/* One that others told is known when what they say has an error below, and with the blocks' own. */
#define TOLD       0.19
#define TOLD_KNOWN 0.36

/* ---- anchors ---- */

typedef VEC(struct fit_anchor) anchor_list;

/* What goes on in a loop. */
struct stay {
	double own, callees; /* samples */
	double entries;      /* flow into it from outside */
};

static struct stay stay_in(const struct fit *fit, const struct loops *loops, uint32_t loop,
	const struct flow_solution *s)
{
	const struct graph *g = &fit->traced.graph;
	struct stay stay = {0};

	for (uint32_t b = 0; b < fit->ev->flow->nblocks; b++) {
		if (!loops_contain(loops, loop, b))
			continue;
		stay.own += fit->taken[b];
		stay.callees += fit->ev->callees ? fit->ev->callees[b] : 0;
		graph_each_in (e, g, b)
			if (!loops_contain(loops, loop, g->edge[*e].from))
				stay.entries += s->edge[*e];
	}
	return stay;
}

/*
 * Turns of a loop are its rate times the time that is spent in it. Where it is left and entered
 * again from one sample to the next the differences say nothing: stays must be longer than that.
 * Samples bring their own error, callees that of how they are shared out.
 */
static bool anchor_of(const struct fit *fit, const struct loops *loops, const struct loop_rate *r,
	const struct flow_solution *s, struct fit_anchor *out)
{
	struct stay stay = stay_in(fit, loops, r->loop, s);
	double time = (stay.own + stay.callees) * fit->ev->period, count = r->rate * time;
	double entries = count * stay.entries / s->node[r->header];
	double calls = stay.callees / (stay.own + stay.callees);

	if (!(count > 0) || time < STAYS * r->between * entries)
		return false;
	*out = (struct fit_anchor){r->header, count,
		sqrt(r->error * r->error + 1 / stay.own + ANCHOR_DOUBT * ANCHOR_DOUBT +
			CALLS_DOUBT * CALLS_DOUBT * calls * calls)};
	return true;
}

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
		struct fit_anchor one;

		if (anchor_of(fit, &loops, &rates[i], s, &one))
			*vec_add(out) = one;
	}
	free(rates);
	loops_deinit(&loops);
}

/* Instructions in a ns of the procedure if a block ran so often. */
static double speed_at(
	const struct fit *fit, const struct flow_solution *s, const struct fit_anchor *a)
{
	const struct flow *f = fit->ev->flow;
	double sum = 0;

	for (uint32_t b = 0; b < f->nblocks; b++)
		sum += s->node[b] * f->blocks[b].count;
	return sum * a->count / s->node[a->block] / ((double)fit->ev->total * fit->ev->period);
}

/* A word that is moved back by what no burst has shown loses turns, so what no core would be as
 * slow as is left out. */
static void leave_out_slow(
	const struct fit *fit, const struct flow_solution *s, anchor_list *list, size_t from)
{
	size_t end = list->n;

	list->n = from;
	for (size_t i = from; i < end && fit->ev->clock; i++) {
		double speed = speed_at(fit, s, &list->p[i]);

		if (speed > SLOWEST_PACE && speed < FASTEST_PACE)
			list->p[list->n++] = list->p[i];
	}
}

/* Words that count (store/paces.h): of all turns, as many are known as of those that bursts saw. */
static void find_paces(const struct fit *fit, const struct flow_solution *s, anchor_list *out)
{
	const struct evidence *ev = fit->ev;
	size_t before = out->n;

	for (size_t i = 0; i < ev->npaces; i++) {
		const struct pace *p = &ev->paces[i];
		double share = (double)p->counted / (double)p->seen;
		double uncounted = UNCOUNTED_DOUBT * (1 - share);
		uint32_t block;

		if (p->counted < FEWEST_SEEN || share < FEWEST_SHARE || !p->turns ||
			evidence_insn_at(ev->flow, p->offset, &block) == GRAPH_NONE ||
			!(s->node[block] > 0))
			continue;
		*vec_add(out) = (struct fit_anchor){block, (double)p->turns / share,
			sqrt(PACE_DOUBT * PACE_DOUBT + uncounted * uncounted +
				IN_A_ROW * (1 - share) / (double)p->counted)};
	}
	leave_out_slow(fit, s, out, before);
}

/*
 * Samples expect instructions to take what they take on the average. In a big procedure that is
 * many a weak word about the scale; so where anchors tell it, they are expected to take what they
 * then take, and samples say nothing but how the time is shared out.
 */
static void expect_as_anchored(
	struct fit *fit, const struct flow_solution *s, const anchor_list *anchors)
{
	double sum = 0, weights = 0;

	vec_each (a, anchors) {
		double relative = s->node_error[a->block].relative;
		double weight = 1 / (a->error * a->error + relative * relative);

		if (!(s->node[a->block] > 0))
			continue;
		sum += weight * log(a->count / s->node[a->block]);
		weights += weight;
	}
	for (uint32_t b = 0; b < fit->ev->flow->nblocks && weights > 0; b++)
		fit->needed[b] /= exp(sum / weights);
}

/* ---- from flows to estimates ---- */

static enum frequency_confidence confidence_of(double error)
{
	if (error < 0.035)
		return CONFIDENCE_HIGH;
	return error < 0.15 ? CONFIDENCE_MEDIUM : CONFIDENCE_LOW;
}

static struct estimate estimate_of(double flow, double error, bool trusted)
{
	struct estimate x = {.count = flow, .low = 0, .high = INFINITY};

	error *= TOGETHER;
	if (error < 100) {
		x.low = flow * exp(-NINETY * error);
		x.high = flow * exp(NINETY * error);
	}
	x.confidence = trusted && flow > 0 ? confidence_of(error) : CONFIDENCE_LOW;
	return x;
}

static void take_solution(
	struct frequency *to, const struct fit *fit, const struct flow_solution *s)
{
	const struct flow *f = to->flow;
	const struct traced *t = &fit->traced;
	bool trusted = s->converged && fit->ev->total > 0;

	to->converged = s->converged;
	for (uint32_t b = 0; b < f->nblocks; b++)
		to->block[b] = estimate_of(s->node[b], s->node_error[b].relative, trusted);
	for (uint32_t e = 0; e < t->graph.edges; e++)
		if (t->edge[e] != GRAPH_NONE)
			to->edge[t->edge[e]] =
				estimate_of(s->edge[e], s->edge_error[e].relative, trusted);
}

/* The error of the scale is that of the blocks where the samples are. */
static void take_scale(struct frequency *to, const struct fit *fit, const struct flow_solution *s)
{
	double sum = 0, samples = 0, error;

	for (uint32_t b = 0; b < to->flow->nblocks; b++) {
		double one = TOGETHER * s->node_error[b].absolute;

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

/* An anchor tells the scale as well as its block is known in comparison with the others. */
static void take_words(
	struct frequency *to, const struct flow_solution *s, const anchor_list *anchors)
{
	to->words = xcalloc(anchors->n + 1, sizeof *to->words);
	vec_each (a, anchors) {
		double relative = TOGETHER * s->node_error[a->block].relative;

		if (s->node[a->block] > 0)
			to->words[to->nwords++] =
				(struct frequency_word){log(a->count / s->node[a->block]),
					sqrt(a->error * a->error + relative * relative)};
	}
}

static int estimate(struct frequency *to, struct fit *fit, struct err *e)
{
	struct flow_solution s = {0};
	anchor_list anchors = {0};
	int rc = fit_solve(fit, &s, e);

	if (rc)
		return rc;
	find_anchors(fit, &s, &anchors);
	find_paces(fit, &s, &anchors);
	if (anchors.n) {
		expect_as_anchored(fit, &s, &anchors);
		solver_free(&s);
		fit->anchors = anchors.p;
		fit->nanchors = anchors.n;
		rc = fit_solve(fit, &s, e);
	}
	if (!rc) {
		take_solution(to, fit, &s);
		take_scale(to, fit, &s);
		take_words(to, &s, &anchors);
		solver_free(&s);
	}
	vec_deinit(&anchors);
	return rc;
}

/* ---- counted, not estimated ---- */

static double samples_of(const struct evidence *ev, const struct flow_block *b)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < b->count; i++)
		sum += ev->samples[b->first + i];
	return (double)sum;
}

static struct estimate counted(double count, double doubt)
{
	double share = doubt / (count + 1);

	return (struct estimate){.count = count,
		.low = fmax(0, count - doubt),
		.high = count + doubt,
		.confidence = !(doubt > 0)   ? CONFIDENCE_EXACT
			      : share < 0.05 ? CONFIDENCE_HIGH
			      : share < 0.2  ? CONFIDENCE_MEDIUM
					     : CONFIDENCE_LOW};
}

/* Whether a share of the samples is in blocks whose counts may be off, and how far. */
static void take_counts(struct frequency *to, const struct evidence *ev)
{
	const struct evidence_counts *c = ev->counts;
	double samples = 0, off = 0;

	for (uint32_t b = 0; b < to->flow->nblocks; b++) {
		double taken = samples_of(ev, &to->flow->blocks[b]);

		to->block[b] = counted(c->block[b], c->doubt[b]);
		samples += taken;
		off += taken * fmin(1, c->doubt[b] / (c->block[b] + 1));
	}
	for (uint32_t e = 0; e < to->flow->graph.edges; e++) {
		uint32_t from = to->flow->graph.edge[e].from;

		to->edge[e] = counted(c->edge[e], from < to->flow->nblocks ? c->doubt[from] : 0);
	}
	off = samples > 0 ? off / samples : 0;
	to->converged = true;
	if (off > SCALE_KNOWN)
		return;
	to->scale = off > 0 ? FREQUENCY_KNOWN : FREQUENCY_EXACT;
	to->scale_low = 1 - off;
	to->scale_high = 1 + off;
}

static int create(
	const struct evidence *ev, struct flow_start *start, struct frequency **out, struct err *e)
{
	struct frequency *to = xcalloc(1, sizeof *to);
	struct fit fit;
	int rc = 0;

	*to = (struct frequency){.flow = ev->flow, .scale_high = INFINITY};
	to->block = xcalloc(ev->flow->nblocks + 1, sizeof *to->block);
	to->edge = xcalloc(ev->flow->graph.edges + 1, sizeof *to->edge);
	if (ev->counts && ev->counts->tied) {
		take_counts(to, ev);
	} else {
		fit_init(&fit, ev);
		fit.start = *start;
		*start = (struct flow_start){0};
		rc = estimate(to, &fit, e);
		to->start = fit.start;
		fit.start = (struct flow_start){0};
		fit_deinit(&fit);
	}
	if (rc) {
		frequency_destroy(to);
		return rc;
	}
	*out = to;
	return 0;
}

int frequency_create(const struct evidence *ev, struct frequency **out, struct err *e)
{
	struct flow_start none = {0};

	return create(ev, &none, out, e);
}

int frequency_renew(struct frequency **f, const struct evidence *ev, struct err *e)
{
	struct frequency *again;
	int rc = create(ev, &(*f)->start, &again, e);

	if (rc)
		return rc;
	frequency_destroy(*f);
	*f = again;
	return 0;
}

void frequency_destroy(struct frequency *f)
{
	if (!f)
		return;
	free(f->block);
	free(f->edge);
	free(f->words);
	flow_start_deinit(&f->start);
	free(f);
}

/* ---- what others told of the scale ---- */

static void multiply_one(struct estimate *x, double factor)
{
	x->count *= factor;
	x->low *= factor;
	x->high *= factor;
}

static void multiply(struct estimate *list, uint32_t n, double factor)
{
	for (uint32_t i = 0; i < n; i++)
		multiply_one(&list[i], factor);
}

/* Only the count is new: what is told of the whole makes no block's share of it any surer. */
static void move_to(struct estimate *x, double count)
{
	if (x->count > 0)
		multiply_one(x, count / x->count);
	else
		x->count = count;
}

static void move_to_solution(
	struct frequency *f, const struct fit *fit, const struct flow_solution *s)
{
	const struct traced *t = &fit->traced;

	for (uint32_t b = 0; b < f->flow->nblocks; b++)
		move_to(&f->block[b], s->node[b]);
	for (uint32_t e = 0; e < t->graph.edges; e++)
		if (t->edge[e] != GRAPH_NONE)
			move_to(&f->edge[t->edge[e]], s->edge[e]);
}

static void leave_out_contradicting(const struct frequency *f, double factor, anchor_list *list)
{
	size_t n = 0;

	vec_each (a, list)
		if (fabs(log(a->count / (f->block[a->block].count * factor))) <
			FREQUENCY_CONTRADICTS)
			list->p[n++] = *a;
	list->n = n;
}

/* The told scale as anchors: each block has its share, by samples, of what it says. */
static void find_told(const struct fit *fit, const struct frequency *f, double factor, double error,
	anchor_list *out)
{
	for (uint32_t b = 0; b < f->flow->nblocks; b++)
		if (fit->taken[b] > 0 && f->block[b].count > 0)
			*vec_add(out) = (struct fit_anchor){b, f->block[b].count * factor,
				error * sqrt((double)fit->ev->total / fit->taken[b])};
}

/* Whether there are anchors that the told scale leaves standing, and a solution with both. */
static bool solve_told(struct frequency *f, struct fit *fit, double factor, double error)
{
	struct flow_solution s = {0};
	anchor_list anchors = {0}, told = {0};
	struct err none;
	bool done = false;

	if (fit_solve(fit, &s, &none))
		return false;
	find_anchors(fit, &s, &anchors);
	find_paces(fit, &s, &anchors);
	leave_out_contradicting(f, factor, &anchors);
	find_told(fit, f, factor, error, &told);
	if (anchors.n)
		expect_as_anchored(fit, &s, &told);
	solver_free(&s);
	vec_each (a, &anchors)
		*vec_add(&told) = *a;
	fit->anchors = told.p;
	fit->nanchors = told.n;
	if (anchors.n && !fit_solve(fit, &s, &none)) {
		done = s.converged;
		if (done)
			move_to_solution(f, fit, &s);
		solver_free(&s);
	}
	vec_deinit(&anchors);
	vec_deinit(&told);
	return done;
}

/*
 * Anchors of single loops are right whatever the scale of the rest is. To multiply all counts would
 * move these loops away from them, so they are estimated once more with both.
 */
static bool fit_told(struct frequency *f, const struct evidence *ev, double factor, double error)
{
	struct fit fit;
	bool done;

	if (!f->nwords || !f->converged)
		return false;
	fit_init(&fit, ev);
	done = solve_told(f, &fit, factor, error);
	fit_deinit(&fit);
	return done;
}

void frequency_rescale(struct frequency *f, const struct evidence *ev, double factor, double error)
{
	double sum = 0, samples = 0, all;

	for (uint32_t b = 0; b < f->flow->nblocks; b++) {
		double taken = samples_of(ev, &f->flow->blocks[b]);
		double own = log(f->block[b].high / f->block[b].low) / (2 * NINETY);

		samples += taken;
		sum += taken * (own < 1 ? own * own : 1);
	}
	if (!fit_told(f, ev, factor, error)) {
		multiply(f->block, f->flow->nblocks, factor);
		multiply(f->edge, f->flow->graph.edges, factor);
	}
	all = samples > 0 ? sqrt(error * error + sum / samples) : 1;
	f->told = fmax(all, 1e-3);
	if (!f->converged || error > TOLD || all > TOLD_KNOWN)
		return;
	f->told = 0;
	f->scale = FREQUENCY_KNOWN;
	f->scale_low = exp(-NINETY * all);
	f->scale_high = exp(NINETY * all);
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
