/* Objects from any bytes: what is read is written and read the same again. */
#include "fuzz/blob_rig.h"
#include "store/object_index.h"
#include "store/objects.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct object_set s = {0}, again = {0};
	struct buf one = {0}, twice = {0};
	uint64_t weight, both;
	bool good = !object_set_add(&s, data, size);

	require(good == !blob_objects.check(data, size));
	require(good == !blob_objects.merge(data, size, data, size, &twice));
	if (good) {
		struct object_index *x = object_index_create(&s);

		vec_each (o, &s.objects)
			object_index_find(x, o->process, o->born, o->address);
		object_index_destroy(x);
		require(!blob_objects.weight(data, size, &weight));
		require(!blob_objects.weight(twice.p, twice.n, &both) && both == 2 * weight);
		object_set_put(&s, &one);
		require(!object_set_add(&again, one.p, one.n));
		require(again.objects.n == s.objects.n && again.paths.n == s.paths.n);
	}
	buf_deinit(&one);
	buf_deinit(&twice);
	object_set_deinit(&s);
	object_set_deinit(&again);
	return 0;
}
