/*
 * Fingerprints of any bytes: sorted, no larger than they may be, and the likeness of two is between
 * 0 and 1 and the same both ways.
 */
#include "analyze/fingerprint.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct fingerprint *f, size_t size)
{
	if (f->n > FINGERPRINT_SIZE || f->n > f->insns || f->insns > size || (!f->n && f->insns))
		abort();
	for (uint32_t i = 1; i < f->n; i++)
		if (f->hashes[i] <= f->hashes[i - 1])
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fingerprint whole, half;
	double alike;

	fingerprint_make(data, size, &whole);
	fingerprint_make(data, size / 2, &half);
	check(&whole, size);
	check(&half, size / 2);
	alike = fingerprint_likeness(&whole, &half);
	if (!(alike >= 0 && alike <= 1) || alike != fingerprint_likeness(&half, &whole))
		abort();
	if (whole.n && fingerprint_likeness(&whole, &whole) != 1)
		abort();
	return 0;
}
