/*
 * Calling contexts as a program may have left them: any bytes behind the fixed part of the file,
 * with a root near their beginning. What is read is a tree that can be packed. An odd number of
 * bytes comes from procedures that also count paths.
 */
#include "calls/tree.h"
#include "context/arena.h"
#include "fuzz/blob_rig.h"
#include "rt/context.h"
#include "store/contexts.h"

enum { PROCEDURES = 24, LEAVES = 6, COUNTS = 3, SLOTS = 5, FIRST = 1000 };

/* As tests/context/test_arena.c has it, where the seeds come from. */
static void make_map(struct context_map *map, bool paths)
{
	*map = (struct context_map){
		.id = {.size = 4, .bytes = "test"}, .first = FIRST, .stride = paths ? 2 : 0};
	map->path = xstrdup("/test");
	for (unsigned i = 0; i < PROCEDURES; i++) {
		struct context_procedure p = {
			.start = 0x1000 * (i + 1), .site = (uint32_t)map->sites.n};

		for (unsigned k = 0; i >= LEAVES && k < COUNTS + SLOTS; k++)
			*vec_add(&map->sites) = (struct context_site){
				p.start + 8 * k, k < COUNTS ? (i + k) % LEAVES : 0};
		p.counts = i >= LEAVES ? COUNTS : 0;
		p.slots = i >= LEAVES ? SLOTS : 0;
		p.tree = paths && i == LEAVES + 1;
		p.paths = p.tree ? 1 : paths && i == LEAVES + 2 ? 6 : 0;
		*vec_add(&map->procedures) = p;
	}
}

static void take(void *arg, const struct context_ran *ran)
{
	uint64_t *sum = arg;

	require(ran->count && ran->procedure < PROCEDURES);
	*sum += ran->number + ran->count + (ran->sums ? ran->sums[0] : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file = xcalloc(1, CONTEXT_FIRST + size);
	struct call_tree *tree = call_tree_create(NULL);
	struct context_summary sum;
	struct context_map map;
	struct buf packed = {0};
	uint64_t ran = 0;
	struct context_sink sink = {take, &ran};

	*(struct context_arena *)file = (struct context_arena){.magic = CONTEXT_MAGIC,
		.used = CONTEXT_FIRST + size,
		.there = CONTEXT_FIRST + size,
		.roots = CONTEXT_ARENA + CONTEXT_FIRST + CONTEXT_ALIGN};
	if (size)
		memcpy(file + CONTEXT_FIRST, data, size);
	make_map(&map, size & 1);
	if (!context_arena_read(file, CONTEXT_FIRST + size, &map, 1, tree, &sink, &sum)) {
		call_tree_pack(tree, &packed);
		require(!blob_context.check(packed.p, packed.n));
	}
	buf_deinit(&packed);
	context_map_deinit(&map);
	call_tree_destroy(tree);
	free(file);
	return 0;
}
