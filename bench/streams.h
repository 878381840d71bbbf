/*
 * Streams of values as instructions see them, and some that no instruction would: what hot lists
 * are tested and measured on. The same seed gives the same stream.
 */
#ifndef CULPRIT_BENCH_STREAMS_H
#define CULPRIT_BENCH_STREAMS_H

#include <math.h>
#include <stdint.h>

struct stream {
	uint64_t i, n; /* position and length */
	uint64_t random;
};

struct stream_type {
	const char *name;
	uint64_t (*next)(struct stream *s);
};

static inline uint64_t stream_random(struct stream *s)
{
	uint64_t z = s->random += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static inline uint64_t stream_below(struct stream *s, uint64_t n)
{
	return (uint64_t)((unsigned __int128)stream_random(s) * n >> 64);
}

/* A value that comes only once, like an address on a heap. */
static inline uint64_t stream_noise(struct stream *s)
{
	return 0x7f0000000000 + s->i * 16;
}

static uint64_t constant(struct stream *s)
{
	(void)s;
	return 42;
}

static uint64_t biased_coin(struct stream *s)
{
	return stream_below(s, 10) < 3;
}

static uint64_t four_values(struct stream *s)
{
	return stream_below(s, 4);
}

static uint64_t nine_values(struct stream *s)
{
	return stream_below(s, 9);
}

enum { ZIPF_VALUES = 1000 };

/* Value k with a probability in proportion to k^-power, by halving the table of sums. */
static inline uint64_t zipf(struct stream *s, double *sums, double power)
{
	double u = (double)(stream_random(s) >> 11) * 0x1p-53;
	unsigned low = 0, high = ZIPF_VALUES - 1;

	for (unsigned k = 0; !sums[ZIPF_VALUES - 1] && k < ZIPF_VALUES; k++)
		sums[k] = (k ? sums[k - 1] : 0) + pow(k + 1, -power);
	u *= sums[ZIPF_VALUES - 1];
	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (sums[middle] < u)
			low = middle + 1;
		else
			high = middle;
	}
	return low + 1;
}

static uint64_t zipf_1(struct stream *s)
{
	static double sums[ZIPF_VALUES];

	return zipf(s, sums, 1);
}

static uint64_t zipf_1_5(struct stream *s)
{
	static double sums[ZIPF_VALUES];

	return zipf(s, sums, 1.5);
}

/* 15% zero, the rest never twice. */
static uint64_t null_or_pointer(struct stream *s)
{
	return stream_below(s, 100) < 15 ? 0 : stream_noise(s);
}

static uint64_t mostly_one(struct stream *s)
{
	return stream_below(s, 100) < 90 ? 1 : stream_noise(s);
}

static uint64_t uniform(struct stream *s)
{
	return stream_random(s);
}

/* A walk over an array of 1,000 elements; every eighth time its header. */
static uint64_t stride(struct stream *s)
{
	return s->i % 8 ? 0x601000 + s->i % 1000 * 8 : 0x600ff0;
}

/* Four times, another value is the one that matters. */
static uint64_t phases(struct stream *s)
{
	return stream_below(s, 100) < 60 ? s->i * 4 / s->n : stream_noise(s);
}

/* Eight values, one after the other. */
static uint64_t sorted(struct stream *s)
{
	return s->i * 8 / s->n;
}

/* 12% that all come at the start, or at the end. */
static uint64_t early(struct stream *s)
{
	return s->i * 100 / s->n < 12 ? 1 : stream_noise(s);
}

static uint64_t late(struct stream *s)
{
	return s->i * 100 / s->n >= 88 ? 1 : stream_noise(s);
}

/* 5.5% at the start and at the end: just enough noise in between to be forgotten. */
static uint64_t comes_back(struct stream *s)
{
	uint64_t permille = s->i * 1000 / s->n;

	return permille < 55 || permille >= 945 ? 1 : stream_noise(s);
}

/* Noise that comes in pairs wins against a value that is spread out, 11%. */
static uint64_t pairs(struct stream *s)
{
	return s->i % 9 ? 0x7f0000000000 + s->i / 2 * 16 : 1;
}

/* Three values of 11% each; more others than a list can hold, round and round. */
static uint64_t rotation(struct stream *s)
{
	return s->i % 9 < 3 ? s->i % 9 : 100 + s->i % 29;
}

/* Each value comes again when it has just been forgotten. */
static uint64_t carousel(struct stream *s)
{
	return s->i % 17;
}

static const struct stream_type stream_types[] = {
	{"constant", constant},
	{"two values, 70 and 30%", biased_coin},
	{"four values", four_values},
	{"nine values", nine_values},
	{"Zipf, 1", zipf_1},
	{"Zipf, 1.5", zipf_1_5},
	{"uniform, 64 bits", uniform},
	{"15% null, else new pointers", null_or_pointer},
	{"90% one, else new", mostly_one},
	{"a walk and its header", stride},
	{"four phases", phases},
	{"sorted", sorted},
	{"12% at the start", early},
	{"12% at the end", late},
	{"5.5% at either end", comes_back},
	{"11%, noise in pairs", pairs},
	{"3 of 11%, others in rotation", rotation},
	{"17 in rotation", carousel},
};

#endif
