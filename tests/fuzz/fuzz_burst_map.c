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
	require(again.points.n == map.points.n && again.first == map.first);
	require(again.events.n == map.events.n && again.paths.n == map.paths.n);
	require(!map.paths.n || !memcmp(again.paths.p, map.paths.p, map.paths.n));
	require(!strcmp(burst_map_path(out.p, out.n), map.path));
	for (size_t i = 0; i < map.points.n; i++)
		require(again.points.p[i].procedure == map.points.p[i].procedure &&
			again.points.p[i].n == map.points.p[i].n);
	for (size_t i = 0; i < map.events.n; i++)
		require(again.events.p[i].at == map.events.p[i].at &&
			again.events.p[i].by == map.events.p[i].by);
	burst_map_deinit(&map);
	burst_map_deinit(&again);
	buf_deinit(&out);
	return 0;
}
