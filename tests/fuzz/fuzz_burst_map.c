/* Maps of bursts from any bytes: what can be read is written the same again. */
#include "burst/map.h"
#include "fuzz/blob_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct burst_map map, again;
	struct buf out = {0};

	if (burst_map_read(&map, data, size))
		return 0;
	burst_map_put(&map, &out);
	require(!burst_map_read(&again, out.p, out.n));
	require(again.sites.n == map.sites.n && again.first == map.first);
	require(!strcmp(burst_map_path(out.p, out.n), map.path));
	for (size_t i = 0; i < map.sites.n; i++)
		require(again.sites.p[i].at == map.sites.p[i].at &&
			again.sites.p[i].procedure == map.sites.p[i].procedure);
	burst_map_deinit(&map);
	burst_map_deinit(&again);
	buf_deinit(&out);
	return 0;
}
