/* Where the time went, for a procedure and for many (the paper's Figure 4). */
#include "analyze/why_internal.h"

#include <math.h>
#include <string.h>

/* ---- a procedure ---- */

/* The best case by execution and causes; hazards are among the dynamic stalls. */
static void sum_best(const struct why_work *w, struct why_summary *s)
{
	double best = 0, execution = 0, stopped = 0;

	for (uint32_t i = 0; i < w->flow->ninsns; i++) {
		const struct why_insn *in = &w->why->insns[i];
		const struct why_time *t = &w->time[i];
		double count = in->count;

		best += t->best;
		if (t->best < in->min_cpi * count) /* it has a culprit */
			continue;
		if (in->min_cpi > 0 || in->execution > 0)
			execution += in->execution * count;
		s->cause[in->cause] += in->stopped * count;
		stopped += in->stopped * count;
	}
	s->execution = fmin(execution, best);
	for (unsigned c = 0; c < WHY_CAUSES; c++)
		s->cause[c] *= stopped > 0 ? (best - s->execution) / stopped : 0;
	if (!(stopped > 0))
		s->execution = best;
}

static void sum_stalls(const struct why_work *w, uint32_t insn, struct why_summary *s)
{
	const struct why_insn *in = &w->why->insns[insn];

	s->dynamic += (in->stall - in->unexplained) * in->count;
	s->unexplained += in->unexplained * in->count;
	for (uint32_t i = 0; i < in->nstalls; i++) {
		const struct why_stall *stall = &w->stalls.p[in->first_stall + i];

		s->culprit[stall->culprit].min += stall->min * in->count;
		s->culprit[stall->culprit].max += stall->max * in->count;
	}
}

/* Expected and not seen; that it is less than nothing needs some samples to be said. */
static bool is_gain(const struct why_work *w, double hidden)
{
	double samples = hidden / w->sample;

	return samples > 1.64 * sqrt(samples + 1);
}

static void each_field(struct why_summary *to, const struct why_summary *from, double factor)
{
	const double *x = (const double *)from;
	double *y = (double *)to;

	_Static_assert(sizeof *to % sizeof *y == 0, "a summary is numbers only");
	for (size_t i = 0; i < sizeof *to / sizeof *y; i++)
		y[i] += x[i] * factor;
}

void why_sum_up(struct why_work *w)
{
	struct why_summary s = {0};

	sum_best(w, &s);
	for (uint32_t i = 0; i < w->flow->ninsns; i++) {
		const struct why_time *t = &w->time[i];

		if (w->why->insns[i].stall > 0)
			sum_stalls(w, i, &s);
		else
			s.sampling_error += t->seen - t->laid;
		if (is_gain(w, t->hidden))
			s.unexplained_gain -= t->hidden;
		else
			s.sampling_error -= t->hidden;
	}
	memset(&w->why->summary, 0, sizeof w->why->summary);
	if (w->why->cycles > 0)
		each_field(&w->why->summary, &s, 1 / w->why->cycles);
}

/* ---- a program ---- */

void why_program_add(struct why_program *p, const struct why *w)
{
	if (w->frequency->scale == FREQUENCY_RELATIVE) {
		p->relative += w->cycles;
		each_field(&p->relative_sum, &w->summary, w->cycles);
		return;
	}
	p->known += w->cycles;
	each_field(&p->sum, &w->summary, w->cycles);
	for (uint32_t b = 0; b < w->evidence->flow->nblocks; b++) {
		double count = w->frequency->block[b].count;

		p->instructions += count * w->evidence->flow->blocks[b].count;
		p->best += count * w->blocks[b].best;
	}
}

void why_program_add_unseen(struct why_program *p, double cycles)
{
	p->unseen += cycles;
}

struct why_summary why_program_summary(const struct why_program *p)
{
	struct why_summary s = {0};

	if (p->known > 0)
		each_field(&s, &p->sum, 1 / p->known);
	return s;
}

struct why_summary why_program_relative(const struct why_program *p)
{
	struct why_summary s = {0};

	if (p->relative > 0)
		each_field(&s, &p->relative_sum, 1 / p->relative);
	return s;
}
