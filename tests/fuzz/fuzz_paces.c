/*
 * Profiles of paces from any bytes: what decodes ascends, survives packing again, and merging adds
 * up.
 */
#include "base/vec.h"
#include "fuzz/blob_rig.h"
#include "store/paces.h"

typedef VEC(struct pace) pace_list;

static bool read_paces(const uint8_t *p, size_t n, pace_list *out)
{
	struct pace_reader r;
	struct pace pace;
	int got = pace_reader_init(&r, p, n);

	while (!got && (got = pace_reader_next(&r, &pace)) > 0) {
		require(pace.seen);
		require(!out->n || out->p[out->n - 1].offset < pace.offset);
		*vec_add(out) = pace;
		got = 0;
	}
	require(!got == !blob_turns.check(p, n));
	return !got;
}

/* Reads a profile and packs it again; false when it is none. */
static bool repack(const uint8_t *p, size_t n, struct buf *again)
{
	pace_list list = {0}, back = {0};
	bool good = read_paces(p, n, &list);

	if (good) {
		paces_pack(list.p, list.n, again);
		require(read_paces(again->p, again->n, &back) && back.n == list.n);
		require(!list.n || !memcmp(list.p, back.p, list.n * sizeof *list.p));
	}
	vec_deinit(&list);
	vec_deinit(&back);
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_two(&blob_turns, repack, data, size);
}
