/*
 * Edge profiles from any bytes: what decodes is sorted, survives packing again, and merging adds.
 */
#include "base/vec.h"
#include "fuzz/blob_rig.h"
#include "store/edges.h"

typedef VEC(struct edge) edge_list;

static bool read_edges(const uint8_t *p, size_t n, edge_list *out)
{
	struct edge_reader r;
	struct edge e;
	int got = edge_reader_init(&r, p, n);

	while (!got && (got = edge_reader_next(&r, &e)) > 0) {
		require(e.count && (!out->n || edge_compare(&out->p[out->n - 1], &e) < 0));
		*vec_add(out) = e;
		got = 0;
	}
	require(!got == !blob_edge.check(p, n));
	return !got;
}

/* Reads a profile and packs it again; false when it is none. */
static bool repack(const uint8_t *p, size_t n, struct buf *again)
{
	edge_list list = {0}, back = {0};
	bool good = read_edges(p, n, &list);

	if (good) {
		edges_pack(list.p, list.n, again);
		require(read_edges(again->p, again->n, &back) && back.n == list.n);
		require(!list.n || !memcmp(list.p, back.p, list.n * sizeof *list.p));
	}
	vec_deinit(&list);
	vec_deinit(&back);
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_two(&blob_edge, repack, data, size);
}
