/*
 * Fuzzing a type of blob that can be merged: the first byte says where the one profile ends and the
 * other begins; those that are read and packed again are merged both ways.
 */
#ifndef CULPRIT_TESTS_FUZZ_BLOB_RIG_H
#define CULPRIT_TESTS_FUZZ_BLOB_RIG_H

#include "base/buf.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool condition)
{
	if (!condition)
		abort();
}

/* Merging is the same both ways, and adds the weights. */
static inline void merge_both_ways(
	const struct blob_type *type, const struct buf *a, const struct buf *b)
{
	struct buf ab = {0}, ba = {0};
	uint64_t wa = 0, wb = 0, sum = 0, both;

	require(!type->merge(a->p, a->n, b->p, b->n, &ab));
	require(!type->merge(b->p, b->n, a->p, a->n, &ba));
	require(ab.n == ba.n && !memcmp(ab.p, ba.p, ab.n));
	require(!type->weight(a->p, a->n, &wa) && !type->weight(b->p, b->n, &wb) &&
		!type->weight(ab.p, ab.n, &sum));
	if (__builtin_add_overflow(wa, wb, &both))
		both = UINT64_MAX;
	require(sum == both);
	buf_deinit(&ab);
	buf_deinit(&ba);
}

/* `repack` reads a profile and packs it again; false when it is none. */
static inline int fuzz_two(const struct blob_type *type,
	bool (*repack)(const uint8_t *p, size_t n, struct buf *again), const uint8_t *data,
	size_t size)
{
	struct buf a = {0}, b = {0};
	size_t half;

	if (!size)
		return 0;
	half = 1 + (size - 1) * data[0] / 255;
	if (repack(data + 1, half - 1, &a) && repack(data + half, size - half, &b))
		merge_both_ways(type, &a, &b);
	buf_deinit(&a);
	buf_deinit(&b);
	return 0;
}

#endif
