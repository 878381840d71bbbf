/* Totals from any bytes: what decodes survives packing again, and summing loses no samples. */
#include "store/store_internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

typedef VEC(struct store_total) total_rows;

static int keep(void *arg, const struct store_total *row)
{
	require(row->comm && row->thread && row->cgroup);
	*vec_add((total_rows *)arg) = *row;
	return 0;
}

static uint64_t samples(const struct store_total *rows, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		if (__builtin_add_overflow(sum, rows[i].samples, &sum))
			return UINT64_MAX;
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	total_rows rows = {0}, again = {0};
	const struct store_total *summed;
	struct buf raw = {0}, twice = {0};
	struct totals_sum *sum;
	size_t n;

	if (!totals_decode(data, size, keep, &rows)) {
		/* Packing sorts, so the bytes are the same from the second time on. */
		totals_encode(rows.p, rows.n, &raw);
		require(!totals_decode(raw.p, raw.n, keep, &again) && again.n == rows.n);
		totals_encode(again.p, again.n, &twice);
		require(raw.n == twice.n && !memcmp(raw.p, twice.p, raw.n));

		sum = totals_sum_create();
		require(!totals_sum_add(sum, raw.p, raw.n));
		n = totals_sum_rows(sum, &summed);
		require(n <= rows.n && samples(summed, n) == samples(rows.p, rows.n));
		totals_sum_destroy(sum);
	}
	vec_deinit(&rows);
	vec_deinit(&again);
	buf_deinit(&raw);
	buf_deinit(&twice);
	return 0;
}
