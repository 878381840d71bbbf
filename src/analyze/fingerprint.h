/*
 * How alike two pieces of code are, whatever their addresses, constants and registers.
 *
 * An instruction counts by its mnemonic and the kinds of its operands; code is the set of its runs
 * of three instructions, hashed. Of large sets only the smallest hashes are kept: a uniform sample
 * of the set, the same sample wherever a run occurs (Broder 1997), so that two of them tell how
 * much the sets have in common. Small sets are kept whole and compared exactly.
 */
#ifndef CULPRIT_ANALYZE_FINGERPRINT_H
#define CULPRIT_ANALYZE_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

enum { FINGERPRINT_SIZE = 128 };

struct fingerprint {
	uint32_t insns; /* 0: no code */
	uint32_t n;
	uint64_t hashes[FINGERPRINT_SIZE]; /* ascending */
};

void fingerprint_make(const void *code, size_t size, struct fingerprint *out);

/* Share of the runs of both that both have, 0 to 1. */
double fingerprint_likeness(const struct fingerprint *a, const struct fingerprint *b);

#endif
