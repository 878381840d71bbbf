/*
 * Profiles of walks from any bytes: what decodes is sorted, survives packing again, and merging
 * keeps the sum of the weights and the bound.
 */
#include "base/mem.h"
#include "base/vec.h"
#include "fuzz/blob_rig.h"
#include "store/walks.h"

struct walk_list {
	VEC(struct walk) list;
	struct arena steps;
};

static bool read_walks(const uint8_t *p, size_t n, struct walk_list *out)
{
	static struct walk_reader r;
	struct walk w;
	int got = walk_reader_init(&r, p, n);

	while (!got && (got = walk_reader_next(&r, &w)) > 0) {
		size_t bytes = w.nsteps * sizeof *w.steps;

		require(w.weight && w.nsteps <= WALK_STEPS && (w.nsteps || w.instructions));
		w.steps = memcpy(arena_alloc(&out->steps, bytes + 1), w.steps, bytes);
		require(!out->list.n || walk_compare(&out->list.p[out->list.n - 1], &w) < 0);
		*vec_add(&out->list) = w;
		got = 0;
	}
	require(!got == !blob_walk.check(p, n));
	require(out->list.n <= WALKS_MOST);
	return !got;
}

static void walk_list_deinit(struct walk_list *l)
{
	vec_deinit(&l->list);
	arena_deinit(&l->steps);
}

/* Reads a profile and packs it again; false when it is none. */
static bool repack(const uint8_t *p, size_t n, struct buf *again)
{
	struct walk_list list = {0}, back = {0};
	bool good = read_walks(p, n, &list);

	if (good) {
		walks_pack(list.list.p, list.list.n, again);
		require(read_walks(again->p, again->n, &back) && back.list.n == list.list.n);
		for (size_t i = 0; i < list.list.n; i++)
			require(!walk_compare(&list.list.p[i], &back.list.p[i]) &&
				list.list.p[i].weight == back.list.p[i].weight);
	}
	walk_list_deinit(&list);
	walk_list_deinit(&back);
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_two(&blob_walk, repack, data, size);
}
