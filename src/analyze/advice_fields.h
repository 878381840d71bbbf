/*
 * Which members of structs are touched together, and in which order they would need fewer cache
 * lines (after Chilimbi, Davidson and Larus, PLDI 1999: field reordering by affinity).
 *
 * What is touched of one struct, with never more than TOUCH_WINDOW references between, is a visit;
 * its cost is the number of cache lines that it needs. Visits are kept by what they touched, so
 * that any order of members can be judged by what really happened, with instances where they were.
 */
#ifndef CULPRIT_ANALYZE_ADVICE_FIELDS_H
#define CULPRIT_ANALYZE_ADVICE_FIELDS_H

#include "analyze/touches.h"

#define FIELDS_MOST 64 /* members; of larger structs those behind are one */

struct field {
	const char *name;
	uint64_t offset, size, align;
	uint64_t touched;  /* visits that did */
	bool fixed;        /* it must stay where it is: a base class, a table of functions */
	uint64_t proposed; /* offset */
};

struct field_advice {
	const struct type *type;
	uint64_t references, visits;
	uint64_t lines;       /* of all visits, as it is */
	uint64_t ordered;     /* in the proposed order */
	uint64_t aligned;     /* in that order, with each instance at the beginning of a line */
	uint64_t hot;         /* bytes of the members that one visit in 20 or more touches */
	struct field *fields; /* by offset */
	uint32_t n;
	uint64_t *affinity; /* n x n: visits that touch both */
};

struct fields;
struct fields *fields_create(void);
void fields_destroy(struct fields *f); /* takes NULL */
void fields_take(struct fields *f, const struct touch *t);
/* After the last touch; those with most references first. */
size_t fields_settle(struct fields *f, const struct field_advice **out);

#endif
