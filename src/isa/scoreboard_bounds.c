#include "isa/scoreboard_internal.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- units ---- */

#define SETS 96

/* Sets of units that are worth looking at: the groups in use, and unions of those that meet. */
struct sets {
	uint32_t set[SETS];
	unsigned n;
};

static void add_set(struct sets *sets, uint32_t units)
{
	for (unsigned i = 0; i < sets->n; i++)
		if (sets->set[i] == units)
			return;
	if (units && sets->n < SETS)
		sets->set[sets->n++] = units;
}

static void find_sets(const struct scoreboard *s, struct sets *sets)
{
	sets->n = 0;
	for (size_t i = 0; i < s->n; i++)
		for (unsigned k = 0; k < s->part[i].nuses; k++)
			add_set(sets, model_group(s->model, s->part[i].use[k].group).units);
	for (unsigned a = 0; a < sets->n; a++)
		for (unsigned b = 0; b < a; b++)
			if (sets->set[a] & sets->set[b])
				add_set(sets, sets->set[a] | sets->set[b]);
}

/* Work that only units of the set can do, for each of them. */
static double work_in(const struct scoreboard *s, uint32_t set)
{
	uint64_t cycles = 0;

	for (size_t i = 0; i < s->n; i++)
		for (unsigned k = 0; k < s->part[i].nuses; k++) {
			const struct model_use *u = &s->part[i].use[k];
			uint32_t units = model_group(s->model, u->group).units;
			unsigned each =
				u->cycles & MODEL_WHOLE ? (unsigned)__builtin_popcount(units) : 1;

			if (units && !(units & ~set))
				cycles += (uint64_t)(u->cycles & ~MODEL_WHOLE) * each;
		}
	return (double)cycles / __builtin_popcount(set);
}

static void bound_units(const struct scoreboard *s, struct scoreboard_sum *sum)
{
	struct sets sets;

	find_sets(s, &sets);
	for (unsigned i = 0; i < sets.n; i++) {
		double cycles = work_in(s, sets.set[i]);

		if (cycles > sum->units) {
			sum->units = cycles;
			sum->unit_mask = sets.set[i];
		}
	}
}

/* ---- dependence ---- */

#define CHAIN_ROUNDS 24

/* An instruction of one iteration when only dependence holds it up. */
struct node {
	uint32_t begin, end;
	int32_t from; /* the one that it waited for, over all iterations; -1: none */
};

/* Walks back from the last to complete until an instruction comes again: that is the chain. */
static double find_chain(const struct node *all, size_t n, int32_t at, struct scoreboard_insn *out)
{
	int32_t *seen = xmalloc(n * sizeof *seen), i;
	double cycles = 0;

	memset(seen, 0xff, n * sizeof *seen);
	for (i = at; i >= 0 && seen[(size_t)i % n] < 0; i = all[i].from)
		seen[(size_t)i % n] = i;
	if (i >= 0) {
		int32_t later = seen[(size_t)i % n], rounds = (later - i) / (int32_t)n;

		cycles = (double)(all[later].begin - all[i].begin) / rounds;
		for (int32_t k = later; out && k != i; k = all[k].from)
			out[(size_t)k % n].in_chain = true;
	}
	free(seen);
	return cycles;
}

static void bound_chain(
	struct scoreboard *s, bool loop, struct scoreboard_insn *out, struct scoreboard_sum *sum)
{
	size_t rounds = loop ? CHAIN_ROUNDS : 1, n = rounds * s->n;
	struct node *all = xmalloc(n * sizeof *all);
	size_t latest = n - s->n;

	scoreboard_begin(s, s->insn, s->n);
	s->ideal = true;
	for (size_t i = 0; i < n; i++) {
		struct scoreboard_insn one;

		scoreboard_step(s, i % s->n, (uint32_t)(i / s->n), &one);
		all[i] = (struct node){one.issue, one.complete, (int32_t)s->waited_for};
		if (i >= n - s->n && all[i].end > all[latest].end)
			latest = i;
	}
	if (loop) {
		sum->chain = find_chain(all, s->n, (int32_t)latest, out);
	} else {
		sum->chain = all[latest].end - 1;
		for (int32_t k = (int32_t)latest; out && k >= 0; k = all[k].from)
			out[k].in_chain = true;
	}
	free(all);
}

/* ---- all of them ---- */

void scoreboard_bounds(
	struct scoreboard *s, bool loop, struct scoreboard_insn *out, struct scoreboard_sum *sum)
{
	uint64_t uops = 0, leaving = 0;
	double most;

	for (size_t i = 0; i < s->n; i++) {
		uops += s->part[i].uops;
		leaving += !s->part[i].fused;
		sum->unknown += (s->insn[i].flags & MODEL_UNKNOWN) != 0;
	}
	sum->front = (double)uops / s->limits->width;
	sum->retire = s->limits->retire ? (double)leaving / s->limits->retire : 0;
	bound_units(s, sum);
	bound_chain(s, loop, out, sum);
	most = fmax(fmax(sum->front, sum->units), fmax(sum->chain, sum->retire));
	if (sum->cycles > 1.1 * most && sum->cycles > most + 0.5 && loop)
		sum->bound = SCOREBOARD_BOUND_WINDOW;
	else if (sum->chain == most)
		sum->bound = SCOREBOARD_BOUND_CHAIN;
	else if (sum->units == most)
		sum->bound = SCOREBOARD_BOUND_UNITS;
	else
		sum->bound = sum->front == most ? SCOREBOARD_BOUND_FRONT : SCOREBOARD_BOUND_RETIRE;
}
