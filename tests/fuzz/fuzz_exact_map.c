/*
 * Maps of counters from any bytes, the counters from the rest: what comes out can be packed.
 */
#include "edit/books.h"
#include "fuzz/blob_rig.h"

#define COUNTERS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct books_source s = {.n = COUNTERS};
	uint64_t counters[COUNTERS];
	struct books_summary sum;
	exact_rows rows = {0};
	struct buf packed = {0};

	if (size < 2)
		return 0;
	s.killed = data[0] & 1;
	s.shared = data[0] & 2;
	for (size_t i = 0; i < COUNTERS; i++)
		counters[i] = data[i % size] & 4 ? data[(i * 7 + 1) % size] : 0;
	s.map = data + 1;
	s.size = size - 1;
	s.counters = counters;
	if (!books_close(&s, &rows, &sum)) {
		exact_pack(rows.p, rows.n, &packed);
		require(!blob_exact.check(packed.p, packed.n));
		require(sum.exact <= sum.procedures);
	}
	buf_deinit(&packed);
	vec_deinit(&rows);
	return 0;
}
