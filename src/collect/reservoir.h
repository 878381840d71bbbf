/*
 * A uniform sample of fixed size from things that come one by one (Vitter 1985, algorithm R): each
 * stays with the same probability.
 */
#ifndef CULPRIT_COLLECT_RESERVOIR_H
#define CULPRIT_COLLECT_RESERVOIR_H

#include <stddef.h>
#include <stdint.h>

#define RESERVOIR_NONE SIZE_MAX

struct reservoir {
	uint64_t seen; /* since the last clearing */
	uint64_t random;
};

/* splitmix64; the high half of the product is uniform below its second factor. */
static inline uint64_t reservoir_below(struct reservoir *r, uint64_t n)
{
	uint64_t z = r->random += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (uint64_t)((unsigned __int128)(z ^ z >> 31) * n >> 64);
}

/* The place of one more among `most`, in the order 0, 1, 2 ... first; or RESERVOIR_NONE. */
static inline size_t reservoir_place(struct reservoir *r, size_t most)
{
	uint64_t at = r->seen++;

	if (at >= most)
		at = reservoir_below(r, r->seen);
	return at < most ? (size_t)at : RESERVOIR_NONE;
}

/* What the i-th of n that were kept stands for; together they stand for all that were seen. */
static inline uint64_t reservoir_weight(const struct reservoir *r, size_t i, size_t n)
{
	unsigned __int128 seen = r->seen;

	return (uint64_t)(seen * (i + 1) / n - seen * i / n);
}

#endif
