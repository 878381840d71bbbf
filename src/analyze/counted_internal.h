/*
 * What the two halves of counts from exact runs share: counted.c gathers and adds up runs,
 * counted_place.c puts what belongs to a procedure onto its flow.
 */
#ifndef CULPRIT_ANALYZE_COUNTED_INTERNAL_H
#define CULPRIT_ANALYZE_COUNTED_INTERNAL_H

#include "analyze/counted.h"
#include "base/vec.h"
#include "store/exact.h"

/* A row of the sum; key.count is not used. */
struct counted_row {
	struct exact_row key;
	double count;
	double doubt; /* how far it may be off */
};

struct counted {
	VEC(struct counted_row) rows; /* by key */
	bool tied;
};

/* The first row that is not below; for lookups. */
size_t counted_find(const struct counted *c, const struct exact_row *key);

#endif
