#include "isa/scoreboard_internal.h"

#include <errno.h>
#include <string.h>

int scoreboard_block(struct scoreboard *s, const struct model_insn *insn, size_t n,
	struct scoreboard_insn *out, struct scoreboard_sum *sum)
{
	struct scoreboard_insn one;

	if (n > SCOREBOARD_MAX)
		return -E2BIG;
	if (sum)
		memset(sum, 0, sizeof *sum);
	if (!n)
		return 0;
	scoreboard_begin(s, insn, n);
	for (size_t i = 0; i < n; i++)
		scoreboard_step(s, i, 0, out ? &out[i] : &one);
	if (!sum)
		return 0;
	sum->cycles = s->retired - 1;
	scoreboard_bounds(s, false, out, sum);
	return 0;
}

#define STEADY 24 /* iterations that must repeat a pattern */

/* How many iterations the pattern has that the last ones repeat, or 0. */
static uint32_t find_period(const uint32_t *end, uint32_t rounds)
{
	uint32_t last = rounds - 1;

	if (rounds < 2 * STEADY + 1)
		return 0;
	for (uint32_t period = 1; period <= STEADY / 2; period++) {
		uint32_t i, length = end[last] - end[last - period];

		for (i = 1; i < STEADY; i++)
			if (end[last - i] - end[last - i - period] != length)
				break;
		if (i == STEADY)
			return period;
	}
	return 0;
}

#define ROUNDS 512

static double run_rounds(struct scoreboard *s, struct scoreboard_insn *out)
{
	uint32_t end[ROUNDS], round = 0, period = 0, half;
	uint64_t uops = 0;
	struct scoreboard_insn one;

	for (size_t i = 0; i < s->n; i++)
		uops += s->part[i].uops;
	for (; round < ROUNDS && !period; round++) {
		for (size_t i = 0; i < s->n; i++)
			scoreboard_step(s, i, round, out ? &out[i] : &one);
		end[round] = s->retired;
		/* The window must have been full before anything is steady. */
		if (uops * round > 2 * (uint64_t)s->limits->window || round > 128)
			period = find_period(end, round + 1);
	}
	half = period ? period : round / 2;
	return (double)(end[round - 1] - end[round - 1 - half]) / half;
}

int scoreboard_loop(struct scoreboard *s, const struct model_insn *insn, size_t n,
	struct scoreboard_insn *out, struct scoreboard_sum *sum)
{
	uint32_t first;

	if (n > SCOREBOARD_MAX)
		return -E2BIG;
	memset(sum, 0, sizeof *sum);
	if (!n)
		return 0;
	scoreboard_begin(s, insn, n);
	sum->cycles = run_rounds(s, out);
	first = out ? out[0].enter : 0;
	for (size_t i = 0; out && i < n; i++) {
		out[i].enter -= first;
		out[i].ready -= first;
		out[i].issue -= first;
		out[i].complete -= first;
		out[i].retire -= first;
	}
	scoreboard_bounds(s, true, out, sum);
	return 0;
}

const char *scoreboard_wait_name(enum scoreboard_wait w)
{
	static const char *const names[] = {"nothing", "front end", "window", "registers",
		"scheduler", "memory queue", "operand", "store", "unit", "order"};

	return names[w];
}

const char *scoreboard_bound_name(enum scoreboard_bound b)
{
	static const char *const names[] = {
		"front end", "units", "dependence", "retirement", "window"};

	return names[b];
}
