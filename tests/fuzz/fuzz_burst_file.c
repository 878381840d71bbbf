/* Bursts as a program may have left them: any bytes behind the first page of the file. */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "burst/reader.h"
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

/* Half of the inputs are read while a program seems to run: as a chunk that is full. */
static int make_file(const uint8_t *data, size_t size, char *path, size_t n)
{
	struct burst_file *file = xcalloc(1, BURST_PAGE);
	int fd = memfd_create("bursts", MFD_CLOEXEC);

	*file = (struct burst_file){
		.magic = BURST_MAGIC, .most = 1, .chunks = size & 2 ? 1 : 9, .given = 5};
	file->state[0] = size & 1 ? BURST_FULL : BURST_TAKEN;
	require(write(fd, file, BURST_PAGE) == BURST_PAGE);
	require(write(fd, data, size) == (ssize_t)size);
	free(file);
	snprintf(path, n, "/proc/self/fd/%d", fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct burst_reader *reader;
	struct burst_map map;
	struct burst_sum sum;
	struct buf packed = {0};
	uint64_t weight;
	char path[64];
	int fd = make_file(data, size, path, sizeof path);

	make_map(&map);
	require(!burst_reader_create(path, &map, 1, &reader, NULL));
	burst_reader_drain(reader);
	burst_reader_end(reader, &packed, &sum);
	require(!blob_trace.weight(packed.p, packed.n, &weight));
	require(weight == sum.events);
	burst_reader_destroy(reader);
	require(!ftruncate(fd, BURST_PAGE - 1));
	require(burst_reader_create(path, &map, 1, &reader, NULL) == -EBADMSG);
	buf_deinit(&packed);
	burst_map_deinit(&map);
	close(fd);
	return 0;
}
