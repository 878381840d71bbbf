/*
 * How often bursts are taken, and how it is said: on command lines, in the environment of edited
 * programs (CULPRIT_BURSTS), so here for culprit and for the run time.
 *
 *	10000:50	after so many checks a burst of so many
 *	2%, 0.5%	bursts of a usual length, as often as that share of the time allows
 *	all, never	one burst that never ends; none at all
 */
#ifndef CULPRIT_RT_BURST_RATES_H
#define CULPRIT_RT_BURST_RATES_H

#include <stdbool.h>
#include <stdint.h>

struct burst_rates {
	int64_t check, instr; /* nCheck:nInstr; instr 0: all that runs is one burst */
	uint64_t share;       /* millionths of the time that recording takes; 0: check is meant */
};

#define BURST_NEVER ((int64_t)1 << 62) /* as nCheck: no burst */

/*
 * One in 200 checks is in a burst. Long ones are better in both ways: code that has not run for a
 * while is slow at first, and what repeats is seen where streams are shorter than bursts.
 */
#define BURST_CHECKS_USUAL 100000
#define BURST_INSTR_USUAL  500

/* A decimal number; moves on behind it. False: there is none, or it is too large. */
static inline bool burst_rates_number(const char **text, int64_t *out)
{
	const char *p = *text;

	for (*out = 0; *p >= '0' && *p <= '9' && *out <= BURST_NEVER / 16; p++)
		*out = *out * 10 + (*p - '0');
	if (p == *text || (*p >= '0' && *p <= '9') || *out > BURST_NEVER)
		return false;
	*text = p;
	return true;
}

static inline bool burst_rates_is(const char *text, const char *word)
{
	while (*word && *text == *word) {
		text++;
		word++;
	}
	return !*word && !*text;
}

/* "0.5%" behind its whole part: to millionths. */
static inline bool burst_rates_share(const char *text, int64_t whole, uint64_t *share)
{
	uint64_t unit = 10000;

	*share = whole < 100 ? (uint64_t)whole * unit : 0;
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9'; text++) {
			unit /= 10;
			*share += (uint64_t)(*text - '0') * unit;
		}
	return *share && burst_rates_is(text, "%");
}

static inline bool burst_rates_parse(const char *text, struct burst_rates *out)
{
	struct burst_rates r = {BURST_CHECKS_USUAL, BURST_INSTR_USUAL, 0};
	bool good = true;

	if (burst_rates_is(text, "all")) {
		r.check = r.instr = 0;
	} else if (burst_rates_is(text, "never")) {
		r.check = BURST_NEVER;
		r.instr = 1;
	} else {
		int64_t first;

		good = burst_rates_number(&text, &first);
		if (good && *text == ':') {
			text++;
			r.check = first;
			good = burst_rates_number(&text, &r.instr) && !*text && r.instr;
		} else if (good) {
			good = burst_rates_share(text, first, &r.share);
		}
	}
	if (good)
		*out = r;
	return good;
}

#endif
