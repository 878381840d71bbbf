/*
 * Exact counts from any bytes: what decodes is sorted, survives packing again, and merging adds.
 */
#include "base/vec.h"
#include "fuzz/blob_rig.h"
#include "store/exact.h"

typedef VEC(struct exact_row) row_list;

static bool read_rows(const uint8_t *p, size_t n, row_list *out)
{
	struct exact_reader r;
	struct exact_row row;
	int got = exact_reader_init(&r, p, n);

	while (!got && (got = exact_reader_next(&r, &row)) > 0) {
		require(!out->n || exact_row_compare(&out->p[out->n - 1], &row) < 0);
		*vec_add(out) = row;
		got = 0;
	}
	require(!got == !blob_exact.check(p, n));
	return !got;
}

/* Reads a profile and packs it again; false when it is none. */
static bool repack(const uint8_t *p, size_t n, struct buf *again)
{
	row_list list = {0}, back = {0};
	bool good = read_rows(p, n, &list);

	if (good) {
		exact_pack(list.p, list.n, again);
		require(read_rows(again->p, again->n, &back) && back.n == list.n);
		for (size_t i = 0; i < list.n; i++)
			require(!exact_row_compare(&list.p[i], &back.p[i]) &&
				list.p[i].count == back.p[i].count);
	}
	vec_deinit(&list);
	vec_deinit(&back);
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_two(&blob_exact, repack, data, size);
}
