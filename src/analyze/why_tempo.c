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
 * Fitted to 381 procedures of eleven programs with exact counts (bench/RESULTS.md). They are about
 * what the hardware takes.
 */
#define BEST   0.9  /* of the scoreboard's cycles */
#define WORK   0.9  /* cycles for what takes a whole cycle of the core's width */
#define MISSED 23.0 /* cycles of a branch that is likely mispredicted */
#define GONE   2.6  /* cycles of a line that is gone */
#define HIDDEN 0.36 /* of the rest, as a logarithm, if all time were that of loads */

/* How many mispredictions the time allows depends on the scale that is looked for. */
enum { TURNS = 5 };
#define CLOSE 0.02

/* Lines of code that are fetched anew in one execution of a block. */
static double lines_gone(struct why_work *w, const struct flow_block *b)
{
	double sum = 0;

	for (uint32_t i = b->first; i < b->first + b->count; i++) {
		const struct flow_insn *in = &w->flow->insns[i];
		struct why_front front;

		if (i > b->first && in->address / 64 == in[-1].address / 64)
			continue;
		why_front_at(w, i, &front);
		sum += front.fresh_line * front.gone;
	}
	return sum;
}

/* What one execution of a block takes outside of such loads, and what was sampled there. */
static double cycles_of(struct why_work *w, uint32_t block, double *far, double *all)
{
	const struct flow_block *b = &w->flow->blocks[block];
	double cycles = MISSED * w->misses[block].after_likely + GONE * lines_gone(w, b);

	for (uint32_t i = b->first; i < b->first + b->count; i++) {
		const struct why_insn *in = &w->why->insns[i];

		*all += in->samples;
		if (why_loads_far(w, i))
			*far += in->samples;
		else
			cycles += BEST * in->min_cpi + WORK * in->execution;
	}
	return cycles;
}

/* What counts must be multiplied with, if mispredictions are those of the scale that is assumed. */
static double tempo_at(struct why_work *w)
{
	double needed = 0, far = 0, all = 0;

	why_lay_out(w);
	memset(w->misses, 0, (w->flow->nblocks + 1) * sizeof *w->misses);
	why_find_front(w);
	for (uint32_t b = 0; b < w->flow->nblocks; b++)
		needed += w->frequency->block[b].count * cycles_of(w, b, &far, &all);
	if (!(needed > 0) || !(all > far))
		return NAN;
	return (all - far) * w->sample / needed * exp(HIDDEN * far / all);
}

double why_measure_tempo(struct why_work *w)
{
	double tempo = NAN;

	for (int turn = 0; turn < TURNS; turn++) {
		tempo = tempo_at(w);
		if (!isfinite(tempo) || fabs(log(tempo / w->why->assumed)) < CLOSE)
			break;
		w->why->assumed = sqrt(w->why->assumed * tempo);
	}
	return tempo;
}
