/* Bursts as a program may have left them: any bytes behind the first page of the file. */
#include <errno.h>

#include "burst/file.h"
#include "fuzz/blob_rig.h"
#include "rt/burst.h"
#include "store/traces.h"

#define SITES 16

static void make_map(struct burst_map *map)
{
	*map = (struct burst_map){.id = {.size = 4, .bytes = "test"}, .path = xstrdup("/test")};
	map->first = 0x100; /* small, so that inputs find it */
	for (unsigned i = 0; i < SITES; i++)
		*vec_add(&map->sites) =
			(struct burst_site){0x1000, 0x1000 + i, 1 + i % 3, (uint16_t)(1 + i)};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file = xcalloc(1, BURST_PAGE + size);
	struct burst_map map;
	struct burst_sum sum;
	struct buf packed = {0};
	uint64_t weight;

	*(struct burst_file *)file = (struct burst_file){.magic = BURST_MAGIC};
	if (size)
		memcpy(file + BURST_PAGE, data, size);
	make_map(&map);
	require(!burst_file_parse(file, BURST_PAGE + size, &map, 1, &packed, &sum));
	require(!blob_trace.weight(packed.p, packed.n, &weight));
	require(weight == sum.references);
	require(burst_file_parse(file, BURST_PAGE - 1, &map, 1, &packed, &sum) == -EBADMSG);
	buf_deinit(&packed);
	burst_map_deinit(&map);
	free(file);
	return 0;
}
