/* Takes the input as a stored path map: it is refused, or can be asked, packed and read again. */
#include "base/buf.h"
#include "calls/pathmap.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct path_map *m = path_map_create(), *again = path_map_create();
	struct path_frame f = {100, 256, 16};
	struct buf packed = {0};
	uint32_t others;

	if (!path_map_add(m, data, n)) {
		path_map_find(m, STACK_MAIN, &f, &others);
		path_map_learn(m, STACK_MAIN, &f, 1, true);
		path_map_pack(m, &packed);
		if (path_map_add(again, packed.p, packed.n) ||
			path_map_size(again) != path_map_size(m))
			abort();
	}
	buf_deinit(&packed);
	path_map_destroy(m);
	path_map_destroy(again);
	return 0;
}
