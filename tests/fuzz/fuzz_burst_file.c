/* Bursts as a program may have left them: any bytes behind the first page of the file. */
#include <errno.h>

#include "burst/file.h"
#include "fuzz/blob_rig.h"
#include "rt/burst.h"
#include "store/traces.h"

#define POINTS 16

/* Points with 0 to 4 words; the numbers are small, so that inputs find them. */
static void make_map(struct burst_map *map)
{
	*map = (struct burst_map){.id = {.size = 4, .bytes = "test"}, .path = xstrdup("/test")};
	map->first = 0x100;
	for (unsigned i = 0; i < POINTS; i++) {
		unsigned words = i % (BURST_WORDS + 1);

		*vec_add(&map->points) = (struct burst_point){
			0x1000, (uint32_t)map->events.n, 1 + i % 3, (uint8_t)words};
		for (unsigned k = 0; k < 1 + i % 3; k++)
			*vec_add(&map->events) = (struct burst_event){.at = 0x1000 + i + k,
				.kind = (uint8_t)(1 + i % (TRACE_KINDS - 1)),
				.word = words ? (uint8_t)(k % words) : BURST_NO_WORD,
				.thread = k == 1,
				.by = (int64_t)k - 1,
				.size = (uint16_t)(1 + i)};
	}
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
	require(weight == sum.events);
	require(burst_file_parse(file, BURST_PAGE - 1, &map, 1, &packed, &sum) == -EBADMSG);
	buf_deinit(&packed);
	burst_map_deinit(&map);
	free(file);
	return 0;
}
