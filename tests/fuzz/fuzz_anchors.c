/*
 * Profiles of anchors from any bytes: what decodes is sorted, survives packing again, and merging
 * keeps the sum of the weights and the bound.
 */
#include "base/buf.h"
#include "base/vec.h"
#include "store/anchors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef VEC(struct anchor) anchor_list;

static void require(bool condition)
{
	if (!condition)
		abort();
}

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

static void merge_both_ways(const struct buf *a, const struct buf *b)
{
	struct buf ab = {0}, ba = {0};
	uint64_t wa = 0, wb = 0, sum = 0, both;

	require(!blob_anchor.merge(a->p, a->n, b->p, b->n, &ab));
	require(!blob_anchor.merge(b->p, b->n, a->p, a->n, &ba));
	require(ab.n == ba.n && !memcmp(ab.p, ba.p, ab.n));
	require(!blob_anchor.weight(a->p, a->n, &wa) && !blob_anchor.weight(b->p, b->n, &wb) &&
		!blob_anchor.weight(ab.p, ab.n, &sum));
	if (__builtin_add_overflow(wa, wb, &both))
		both = UINT64_MAX;
	require(sum == both);
	buf_deinit(&ab);
	buf_deinit(&ba);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf a = {0}, b = {0};
	size_t half;

	if (!size)
		return 0;
	half = 1 + (size - 1) * data[0] / 255;
	if (repack(data + 1, half - 1, &a) && repack(data + half, size - half, &b))
		merge_both_ways(&a, &b);
	buf_deinit(&a);
	buf_deinit(&b);
	return 0;
}
