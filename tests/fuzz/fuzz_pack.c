/*
 * Packed blobs and PC profiles from any bytes: what decodes is sorted, survives packing again, and
 * merging adds.
 */
#include "base/buf.h"
#include "store/pack.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* Reads a profile; false when it is none. */
static bool read_pcs(const uint8_t *p, size_t n, struct buf *again)
{
	VEC(struct pc_count) list = {0};
	struct pc_reader r;
	struct pc_count pc;
	int got = pc_reader_init(&r, p, n);

	while (!got && (got = pc_reader_next(&r, &pc)) > 0) {
		require(pc.count && (!list.n || pc.offset > list.p[list.n - 1].offset));
		*vec_add(&list) = pc;
		got = 0;
	}
	require(!got == !blob_pc.check(p, n));
	if (!got)
		pack_pcs(list.p, list.n, again);
	vec_deinit(&list);
	return !got;
}

static void merge_both_ways(const struct buf *a, const struct buf *b)
{
	struct buf ab = {0}, ba = {0};
	uint64_t wa = 0, wb = 0, sum = 0, both;

	require(!blob_pc.merge(a->p, a->n, b->p, b->n, &ab));
	require(!blob_pc.merge(b->p, b->n, a->p, a->n, &ba));
	require(ab.n == ba.n && !memcmp(ab.p, ba.p, ab.n));
	require(!blob_pc.weight(a->p, a->n, &wa) && !blob_pc.weight(b->p, b->n, &wb) &&
		!blob_pc.weight(ab.p, ab.n, &sum));
	if (__builtin_add_overflow(wa, wb, &both))
		both = UINT64_MAX;
	require(sum == both);
	buf_deinit(&ab);
	buf_deinit(&ba);
}

/* What was packed comes back. */
static void round_trip(const uint8_t *data, size_t size)
{
	struct buf packed = {0}, back = {0};

	require(!pack_compress(data, size, &packed));
	require(!pack_expand(packed.p, packed.n, &back));
	require(back.n == size && (!size || !memcmp(back.p, data, size)));
	buf_deinit(&packed);
	buf_deinit(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf raw = {0}, a = {0}, b = {0};
	size_t half;

	if (!size)
		return 0;
	pack_expand(data + 1, size - 1, &raw);
	buf_deinit(&raw);
	round_trip(data, size);

	half = 1 + (size - 1) * data[0] / 255;
	if (read_pcs(data + 1, half - 1, &a) && read_pcs(data + half, size - half, &b))
		merge_both_ways(&a, &b);
	buf_deinit(&a);
	buf_deinit(&b);
	return 0;
}
