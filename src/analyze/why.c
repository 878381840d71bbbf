#include "analyze/why_internal.h"

#include "base/err.h"
#include "base/mem.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- scale ---- */

#define TOO_FAST 0.05 /* of the time that may be faster than the best case */

/* Cycles that would be faster than the best case if all counts were so many times higher. */
static double too_fast(const struct why_work *w, double factor)
{
	double sum = 0;

	for (uint32_t b = 0; b < w->flow->nblocks; b++) {
		const struct flow_block *block = &w->flow->blocks[b];
		double best = 0, seen = 0;

		for (uint32_t i = block->first; i < block->first + block->count; i++) {
			best += w->why->insns[i].min_cpi;
			seen += w->why->insns[i].samples;
		}
		sum += fmax(0, best * w->frequency->block[b].count * factor - seen * w->sample);
	}
	return sum;
}

/*
 * Without a scale, what can be said is how often the procedure can have run at most: so often that
 * some of it would go faster than the best case.
 */
static double largest_scale(const struct why_work *w)
{
	double low = 1e-9, high = 1e9, limit = TOO_FAST * w->why->cycles;

	if (!(w->why->cycles > 0) || too_fast(w, high) <= limit)
		return 1;
	for (unsigned i = 0; i < 100 && high / low > 1.001; i++) {
		double middle = sqrt(low * high);

		if (too_fast(w, middle) > limit)
			high = middle;
		else
			low = middle;
	}
	return low;
}

/* ---- cycles per instruction ---- */

#define SIGMA 1.64 /* 90%, two-sided */

/* Factors by which the counts may be off to both sides, as the logarithm's square. */
struct spread {
	double down, up; /* of the count */
};

static double square_log(double x)
{
	double l = log(x);

	return x > 0 && isfinite(l) ? l * l : INFINITY;
}

static struct spread spread_of(const struct why_work *w, const struct estimate *e)
{
	const struct frequency *f = w->frequency;
	struct spread s = {0, 0};

	if (!(e->count > 0))
		return (struct spread){INFINITY, INFINITY};
	s.down = square_log(e->low / e->count);
	s.up = square_log(e->high / e->count);
	if (f->scale == FREQUENCY_RELATIVE) {
		s.down = INFINITY; /* it may have run less often, and not more than is told */
		s.up += w->why->likeliest ? SIGMA * SIGMA * f->told * f->told : 0;
	} else {
		s.down += square_log(f->scale_low);
		s.up += square_log(f->scale_high);
	}
	return s;
}

/* Cycles a time with their interval: chance in the samples, and the spread of the counts. */
static void divide(const struct why_work *w, double samples, double count, const struct spread *s,
	double *cpi, double *low, double *high)
{
	double each = w->sample / count;
	double most = samples + SIGMA * sqrt(samples + 1) + 0.5;
	double least = fmax(0, samples - SIGMA * sqrt(samples));
	bool relative = w->frequency->scale == FREQUENCY_RELATIVE;

	if (!(count > 0)) {
		*cpi = NAN;
		*low = 0;
		*high = INFINITY;
		return;
	}
	*cpi = relative ? NAN : samples * each;
	*low = least > 0 ? samples * each * exp(-sqrt(square_log(least / samples) + s->up)) : 0;
	*high = samples > 0 ? samples * each * exp(sqrt(square_log(most / samples) + s->down))
			    : most * each * exp(sqrt(s->down));
}

static void divide_block(struct why_work *w, uint32_t block)
{
	const struct flow_block *b = &w->flow->blocks[block];
	struct spread s = spread_of(w, &w->frequency->block[block]);
	struct why_cycles *c = &w->why->blocks[block];
	double count = why_block_count(w, block), samples = 0;

	for (uint32_t i = b->first; i < b->first + b->count; i++) {
		struct why_insn *in = &w->why->insns[i];

		in->count = count;
		divide(w, in->samples, count, &s, &in->cpi, &in->cpi_low, &in->cpi_high);
		samples += in->samples;
		c->best += in->min_cpi;
	}
	divide(w, samples, count, &s, &c->actual, &c->low, &c->high);
}

/* Of the procedure: by all instructions that ran. Errors within it even out; the scale's do not. */
static void divide_procedure(struct why_work *w)
{
	const struct frequency *f = w->frequency;
	double best = 0, samples = 0, instructions = 0, down = 0, up = 0;
	struct spread s;

	for (uint32_t b = 0; b < w->flow->nblocks; b++) {
		const struct estimate *e = &f->block[b];
		double count = why_block_count(w, b), n = w->flow->blocks[b].count;

		instructions += count * n;
		best += count * w->why->blocks[b].best;
		down += fmin(e->count - e->low, e->count) * n * w->why->assumed;
		up += fmin(e->high - e->count, e->count) * n * w->why->assumed;
	}
	for (uint32_t i = 0; i < w->flow->ninsns; i++)
		samples += w->why->insns[i].samples;
	s = spread_of(w, &(struct estimate){instructions, fmax(0, instructions - down),
				 instructions + up, CONFIDENCE_LOW});
	divide(w, samples, instructions, &s, &w->why->cpi.actual, &w->why->cpi.low,
		&w->why->cpi.high);
	w->why->cpi.best = instructions > 0 ? best / instructions : 0;
}

/* ---- life ---- */

static void begin(struct why_work *w)
{
	const struct flow *f = w->flow;
	uint32_t n = f->ninsns;

	w->facts = xcalloc(n + 1, sizeof *w->facts);
	w->block_of = graph_numbers(n, 0);
	w->time = xcalloc(n + 1, sizeof *w->time);
	w->stayed = xcalloc(n + 1, sizeof *w->stayed);
	w->shadow = xcalloc(n + 1, sizeof *w->shadow);
	w->late = xcalloc(n + 1, sizeof *w->late);
	w->misses = xcalloc(f->nblocks + 1, sizeof *w->misses);
	w->why->insns = xcalloc(n + 1, sizeof *w->why->insns);
	w->why->blocks = xcalloc(f->nblocks + 1, sizeof *w->why->blocks);
	for (uint32_t b = 0; b < f->nblocks; b++)
		for (uint32_t i = 0; i < f->blocks[b].count; i++)
			w->block_of[f->blocks[b].first + i] = b;
	for (uint32_t i = 0; i < n; i++)
		w->why->insns[i].on = GRAPH_NONE;
	loops_init(&w->loops, &f->graph, f->entry_node);
	w->loop = xcalloc(w->loops.n + 1, sizeof *w->loop);
	w->board = scoreboard_create(w->machine->model);
}

static void end(struct why_work *w)
{
	w->why->stalls = w->stalls.p;
	w->why->nstalls = (uint32_t)w->stalls.n;
	w->why->from = w->from.p;
	w->why->nfrom = (uint32_t)w->from.n;
	scoreboard_destroy(w->board);
	loops_deinit(&w->loops);
	free(w->loop);
	free(w->misses);
	free(w->time);
	free(w->stayed);
	free(w->late);
	free(w->shadow);
	free(w->block_of);
	free(w->facts);
}

/* min_cpi becomes what was seen of the best case here; blocks know the sum. */
static void show_layout(struct why_work *w)
{
	for (uint32_t i = 0; i < w->flow->ninsns; i++)
		if (w->why->insns[i].count > 0)
			w->why->insns[i].min_cpi = w->time[i].laid / w->why->insns[i].count;
}

static int time_code(struct why_work *w, struct err *e)
{
	int rc;

	why_shift(w);
	rc = why_schedule(w, e);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < w->flow->ninsns; i++)
		w->why->cycles += w->why->insns[i].samples * w->sample;
	w->why->likeliest = w->frequency->scale == FREQUENCY_RELATIVE && w->frequency->told > 0;
	if (w->frequency->scale == FREQUENCY_RELATIVE && !w->why->likeliest)
		w->why->assumed = largest_scale(w);
	return 0;
}

static int analyse(struct why_work *w, struct err *e)
{
	int rc = time_code(w, e);

	if (rc)
		return rc;
	for (uint32_t b = 0; b < w->flow->nblocks; b++)
		divide_block(w, b);
	divide_procedure(w);
	w->admits = true;
	why_lay_out(w);
	why_accuse(w);
	why_sum_up(w);
	show_layout(w);
	why_show_stays(w);
	return 0;
}

static struct why *begin_why(struct why_work *w, const struct evidence *ev,
	const struct frequency *f, const struct why_machine *m)
{
	struct why *why = xcalloc(1, sizeof *why);

	*w = (struct why_work){.why = why, .evidence = ev, .frequency = f, .flow = ev->flow};
	why->evidence = ev;
	why->frequency = f;
	why->machine = *m;
	why->assumed = 1;
	w->machine = &why->machine;
	w->sample = ev->period * (ev->clock ? m->cycles_per_ns * m->own : 1);
	why->sample = w->sample;
	begin(w);
	return why;
}

static int no_time(struct err *e)
{
	return err_set(e, -ENOENT, "no time was sampled: record cycles or cpu-clock");
}

int why_create(const struct evidence *ev, const struct frequency *f, const struct why_machine *m,
	struct why **out, struct err *e)
{
	struct why_work w;
	struct why *why = begin_why(&w, ev, f, m);
	int rc = w.sample > 0 ? analyse(&w, e) : no_time(e);

	end(&w);
	if (rc)
		why_destroy(why);
	else
		*out = why;
	return rc;
}

int why_tempo(const struct evidence *ev, const struct frequency *f, const struct why_machine *m,
	double *out, struct why_tempo_parts *parts, struct err *e)
{
	struct why_work w;
	struct why *why = begin_why(&w, ev, f, m);
	int rc = w.sample > 0 ? time_code(&w, e) : no_time(e);

	if (!rc)
		*out = why_measure_tempo(&w, parts);
	end(&w);
	why_destroy(why);
	return rc;
}

void why_destroy(struct why *w)
{
	if (!w)
		return;
	free(w->insns);
	free(w->blocks);
	free(w->stalls);
	free(w->from);
	free(w);
}

const char *why_units(const struct why *w, unsigned group, char *text, size_t size)
{
	snprintf(text, size, "%s", model_group(w->machine.model, group).name);
	return text;
}
