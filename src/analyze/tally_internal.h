/*
 * What the two halves of the tally share: tally.c (rows, and views from totals) and tally_code.c
 * (views from PC profiles).
 */
#ifndef CULPRIT_ANALYZE_TALLY_INTERNAL_H
#define CULPRIT_ANALYZE_TALLY_INTERNAL_H

#include "analyze/tally.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"

struct tally {
	struct selection *sel;
	enum tally_by by;
	const char *pattern; /* of procedures, may be NULL */
	size_t nevents;
	VEC(struct tally_row) rows;
	VEC(uint64_t) counts; /* nevents for each row */
	uint64_t *totals;     /* by event */
	struct strtab names;
	struct arena memory;
};

/* Adds a row (its samples are set at the end) and returns its number. */
size_t tally_add_row(struct tally *t, const struct tally_row *row);
static inline void tally_count(struct tally *t, size_t row, size_t event, uint64_t samples)
{
	t->counts.p[row * t->nevents + event] += samples;
}

int tally_procedures(struct tally *t, struct err *e);
int tally_lines(struct tally *t, struct err *e);

#endif
