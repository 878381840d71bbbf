/* Maps of contexts from any bytes: what can be read is written the same again. */
#include "context/map.h"
#include "fuzz/blob_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct context_map map, again;
	struct buf out = {0};

	if (context_map_read(&map, data, size))
		return 0;
	context_map_put(&map, &out);
	require(!context_map_read(&again, out.p, out.n));
	require(again.procedures.n == map.procedures.n && again.sites.n == map.sites.n);
	require(!strcmp(context_map_path(out.p, out.n), map.path));
	vec_each (p, &map.procedures)
		require(map.procedures.p[context_map_find(&map, p->start)].start == p->start);
	context_map_deinit(&map);
	context_map_deinit(&again);
	buf_deinit(&out);
	return 0;
}
