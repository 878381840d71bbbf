/*
 * Profiles of anchors from any bytes: what decodes is sorted, survives packing again, and merging
 * keeps the sum of the weights and the bound.
 */
#include "base/vec.h"
#include "fuzz/blob_rig.h"
#include "store/anchors.h"

typedef VEC(struct anchor) anchor_list;

static bool read_anchors(const uint8_t *p, size_t n, anchor_list *out)
{
	struct anchor_reader r;
	struct anchor a;
	int got = anchor_reader_init(&r, p, n);

	while (!got && (got = anchor_reader_next(&r, &a)) > 0) {
		require(a.weight && !(a.known & ~a.changed));
		require(!out->n || anchor_compare(&out->p[out->n - 1], &a) <= 0);
		*vec_add(out) = a;
		got = 0;
	}
	require(!got == !blob_anchor.check(p, n));
	require(out->n <= ANCHORS_MOST);
	return !got;
}

/* Reads a profile and packs it again; false when it is none. */
static bool repack(const uint8_t *p, size_t n, struct buf *again)
{
	anchor_list list = {0}, back = {0};
	bool good = read_anchors(p, n, &list);

	if (good) {
		anchors_pack(list.p, list.n, again);
		require(read_anchors(again->p, again->n, &back) && back.n == list.n);
		require(!list.n || !memcmp(list.p, back.p, list.n * sizeof *list.p));
	}
	vec_deinit(&list);
	vec_deinit(&back);
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_two(&blob_anchor, repack, data, size);
}
