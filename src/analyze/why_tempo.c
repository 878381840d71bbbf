/*
 * How often a procedure ran, told from the time that its code takes where nothing can keep it
 * waiting for long. Loads that may go beyond the first cache are the one thing that nobody can
 * foresee. All other instructions take what they need at best, what mispredicted branches cost, and
 * lines of code that are gone from the cache: their samples alone are a clock that ticks nearly
 * evenly, even where loads have nine tenths of the time.
 */
#include "analyze/why_internal.h"

#include <math.h>
#include <string.h>

/*
 * What the hardware takes, fitted to procedures of twelve programs with exact counts
 * (bench/RESULTS.md). A window of 512 hides half of what the scoreboard has for code that is no
 * loop. Chips that nobody has measured are taken to be like their maker's older one. Mispredictions
 * of all but Zen 5 were fitted with a fifth more of them (foresight.h), and cost a fifth more
 * since: so there is more doubt.
 */
struct costs {
	double best;   /* of the scoreboard's cycles */
	double work;   /* cycles for what takes a whole cycle of the core's width */
	double missed; /* cycles of a branch that is likely mispredicted */
	double gone;   /* cycles of a line that is gone */
	double hidden; /* of the rest, as a logarithm, if all time were that of loads */
	double doubt;  /* the error of a program's mean */
};
static const struct costs icelake = {0.9, 0.9, 27.8, 2.6, 0.36, 0.25};
static const struct costs golden_cove = {0.51, 1.02, 22.0, 0.54, 0.29, 0.25};
static const struct costs zen4 = {0.68, 0.94, 17.6, 1.3, 0.74, 0.25};
static const struct costs zen5 = {0.49, 0.98, 18.8, 0.35, 0.44, 0.15};

static const struct costs *costs_of(const struct why_machine *m)
{
	const char *chip = model_name(m->model);

	if (!strcmp(chip, "zen5"))
		return &zen5;
	if (!strncmp(chip, "zen", 3))
		return &zen4;
	return strcmp(chip, "sapphirerapids") && strcmp(chip, "alderlake-p") ? &icelake
									     : &golden_cove;
}

double why_tempo_doubt(const struct why_machine *m)
{
	return costs_of(m)->doubt;
}

double why_line_cost(const struct why_work *w)
{
	return costs_of(w->machine)->gone;
}

/* How many mispredictions the time allows depends on the scale that is looked for. */
enum { TURNS = 5 };
#define CLOSE 0.02

/* Lines of code that are fetched anew in one execution of a block. */
static double lines_gone(struct why_work *w, const struct flow_block *b)
{
	double sum = 0;

	for (uint32_t i = b->first; i < b->first + b->count; i++) {
		const struct flow_insn *in = &w->flow->insns[i];

		if (i == b->first || in->address / 64 != in[-1].address / 64)
			sum += why_line_gone(w, i);
	}
	return sum;
}

static void add_block(struct why_work *w, uint32_t block, struct why_tempo_parts *p)
{
	const struct flow_block *b = &w->flow->blocks[block];
	double count = w->frequency->block[block].count;

	for (uint32_t i = b->first; i < b->first + b->count; i++) {
		const struct why_insn *in = &w->why->insns[i];
		bool far = (count > 0 || in->samples > 0) && why_loads_far(w, i);

		p->all += in->samples;
		p->far += far ? in->samples : 0;
		if (far || !(count > 0))
			continue;
		p->best += count * in->min_cpi;
		p->work += count * in->execution;
	}
	if (count > 0)
		p->gone += count * lines_gone(w, b);
}

/* How many mispredictions the time allows depends on the scale that is assumed. */
static void add_missed(struct why_work *w, struct why_tempo_parts *p)
{
	why_lay_out(w);
	why_find_missed(w);
	p->missed = 0;
	for (uint32_t b = 0; b < w->flow->nblocks; b++)
		p->missed += w->frequency->block[b].count * w->misses[b].after_likely;
}

/* What counts must be multiplied with, if mispredictions are those of the scale that is assumed. */
static double tempo_at(const struct why_work *w, const struct why_tempo_parts *p)
{
	const struct costs *c = costs_of(w->machine);
	double needed =
		c->best * p->best + c->work * p->work + c->missed * p->missed + c->gone * p->gone;

	if (!(needed > 0) || !(p->all > p->far))
		return NAN;
	return (p->all - p->far) * w->sample / needed * exp(c->hidden * p->far / p->all);
}

double why_measure_tempo(struct why_work *w, struct why_tempo_parts *p)
{
	double tempo = NAN;

	*p = (struct why_tempo_parts){.sample = w->sample};
	for (uint32_t b = 0; b < w->flow->nblocks; b++)
		add_block(w, b, p);
	for (int turn = 0; turn < TURNS; turn++) {
		add_missed(w, p);
		tempo = tempo_at(w, p);
		if (!isfinite(tempo) || fabs(log(tempo / w->why->assumed)) < CLOSE)
			break;
		w->why->assumed = sqrt(w->why->assumed * tempo);
	}
	return tempo;
}
