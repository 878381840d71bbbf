/*
 * Contexts from any bytes: a tree made of what decodes survives packing, and merging profiles is
 * the same as adding to a tree.
 */
#include "calls/tree.h"
#include "fuzz/blob_rig.h"
#include "store/contexts.h"

/* Reads a profile and packs it again; false when it is none. */
static bool repack(const uint8_t *p, size_t n, struct buf *again)
{
	struct call_tree *t = call_tree_create(NULL);
	bool good = !call_tree_add(t, p, n);
	struct buf merged = {0}, twice = {0};

	require(good == !blob_context.check(p, n));
	if (good) {
		call_tree_pack(t, again);
		require(!blob_context.check(again->p, again->n));
		require(!blob_context.merge(again->p, again->n, again->p, again->n, &merged));
		require(!call_tree_add(t, again->p, again->n));
		call_tree_pack(t, &twice);
		require(merged.n == twice.n && !memcmp(merged.p, twice.p, twice.n));
	}
	buf_deinit(&merged);
	buf_deinit(&twice);
	call_tree_destroy(t);
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_two(&blob_context, repack, data, size);
}
