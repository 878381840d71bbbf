/*
 * Maps of paths from any bytes, the counters from the rest: what comes out can be packed.
 */
#include "fuzz/blob_rig.h"
#include "paths/read.h"

#define WORDS 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t words[WORDS];
	struct paths_source s = {.words = words, .n = WORDS};
	struct paths_read_summary sum;
	struct path_rows rows = {0};
	struct buf packed = {0};

	if (size < 2)
		return 0;
	for (size_t i = 0; i < WORDS; i++)
		words[i] = data[i % size] & 4 ? data[(i * 7 + 1) % size] : 0;
	s.shared = data[0] & 1;
	s.map = data + 1;
	s.size = size - 1;
	if (!paths_read(&s, &rows, &sum)) {
		paths_pack(&(struct metric_names){0}, rows.list.p, rows.list.n, &packed);
		require(!blob_path.check(packed.p, packed.n));
	}
	buf_deinit(&packed);
	path_rows_deinit(&rows);
	return 0;
}
