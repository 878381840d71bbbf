/* Allocations as a program may have left them: any bytes behind the first page of the log. */
#include "burst/objects.h"
#include "fuzz/blob_rig.h"
#include "rt/objects.h"
#include "store/traces.h"

#include <errno.h>

/* One burst that touches an address of objects that inputs may have. */
static void make_trace(struct buf *out)
{
	struct trace_site site = {1, 0x1000, 0x1000, TRACE_LOAD, 8, NULL};
	struct trace_reference touched[] = {{0, 0x1000}, {0, 0x1010}, {0, 0x2000}};
	struct trace_writer w = {0};

	trace_writer_put(&w, &(struct trace_burst){1, 1, UINT64_MAX, touched, 3});
	trace_writer_end(&w, &site, 1, 0, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file = xcalloc(1, OBJECTS_PAGE + size);
	struct burst_image image = {.path = "/test", .key = 1};
	struct burst_objects_sum sum;
	struct object_set set = {0};
	struct buf traces = {0}, packed = {0};

	*(struct objects_file *)file = (struct objects_file){.magic = OBJECTS_MAGIC};
	if (size)
		memcpy(file + OBJECTS_PAGE, data, size);
	make_trace(&traces);
	require(!burst_objects_parse(file, OBJECTS_PAGE + size, &image, 1, &traces, &set, &sum));
	require(sum.touched == set.objects.n && sum.touched <= sum.objects);
	object_set_put(&set, &packed);
	require(!blob_objects.check(packed.p, packed.n));
	require(burst_objects_parse(file, OBJECTS_PAGE - 1, &image, 1, &traces, &set, &sum) ==
		-EBADMSG);
	object_set_deinit(&set);
	buf_deinit(&traces);
	buf_deinit(&packed);
	free(file);
	return 0;
}
