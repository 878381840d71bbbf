/*
 * Profiles of stays from any bytes: what decodes ascends, survives packing again, and merging adds
 * up.
 */
#include "base/vec.h"
#include "fuzz/blob_rig.h"
#include "store/stays.h"

typedef VEC(struct stay) stay_list;

static bool ascends(const struct stay *a, const struct stay *b)
{
	return a->offset < b->offset || (a->offset == b->offset && a->is_code < b->is_code);
}

static bool read_stays(const uint8_t *p, size_t n, stay_list *out)
{
	struct stay_reader r;
	struct stay stay;
	int got = stay_reader_init(&r, p, n);

	while (!got && (got = stay_reader_next(&r, &stay)) > 0) {
		require(stay.kept || stay.gone);
		require(stay.is_code <= 1 && !(stay.offset >> 63));
		require(!out->n || ascends(&out->p[out->n - 1], &stay));
		*vec_add(out) = stay;
		got = 0;
	}
	require(!got == !blob_stay.check(p, n));
	return !got;
}

/* Reads a profile and packs it again; false when it is none. */
static bool repack(const uint8_t *p, size_t n, struct buf *again)
{
	stay_list list = {0}, back = {0};
	bool good = read_stays(p, n, &list);

	if (good) {
		stays_pack(list.p, list.n, again);
		require(read_stays(again->p, again->n, &back) && back.n == list.n);
		require(!list.n || !memcmp(list.p, back.p, list.n * sizeof *list.p));
	}
	vec_deinit(&list);
	vec_deinit(&back);
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_two(&blob_stay, repack, data, size);
}
