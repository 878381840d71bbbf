/*
 * Maps of paths by context from any bytes, and what records counted from the rest: what is read of
 * them becomes a tree that can be packed.
 */
#include "calls/tree.h"
#include "context/path_read.h"
#include "fuzz/blob_rig.h"
#include "store/contexts.h"

static void read_paths(const struct path_words_map *map, const uint8_t *data, size_t size)
{
	struct path_read read = {.maps = map, .nmaps = 1};
	struct context_sink sink = path_read_sink(&read);
	struct call_tree *tree = call_tree_create(&map->context.metrics);
	static const uint64_t sums[RT_METRICS] = {7, 5};
	struct buf packed = {0};

	for (size_t i = 0; i < map->context.procedures.n && i < 64; i++) {
		const struct context_procedure *p = &map->context.procedures.p[i];
		size_t n = p->paths && !p->tree ? p->paths / map->context.stride : 8;
		struct call_place at = {.image = 1, .procedure = p->start};
		struct context_ran ran = {
			.procedure = i, .node = call_tree_child(tree, CALL_NONE, &at)};

		for (size_t k = 0; k < n; k++) {
			ran.number = p->tree ? data[(i + 5 * k) % size] : k;
			ran.count = data[(i + k) % size];
			ran.sums = k & 1 && p->paths ? sums : NULL;
			if (data[(i + 7 * k) % size] & 4)
				sink.take(sink.arg, &ran);
		}
	}
	if (!path_read_add(&read, tree)) {
		call_tree_pack(tree, &packed);
		require(!blob_context.check(packed.p, packed.n));
	}
	buf_deinit(&packed);
	call_tree_destroy(tree);
	path_read_deinit(&read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct path_words_map map;

	if (path_words_read(&map, data, size))
		return 0;
	require(path_words_original(data, size) != NULL);
	read_paths(&map, data, size);
	context_map_deinit(&map.context);
	return 0;
}
