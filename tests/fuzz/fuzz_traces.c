/* Traces from any bytes: what is read is written and read the same again. */
#include "fuzz/blob_rig.h"
#include "store/traces.h"

static void copy_part(struct trace_reader *r, struct buf *out)
{
	struct trace_writer w = {0};
	struct trace_burst b;

	for (size_t i = 0; i < r->sites.n; i++)
		require(!r->sites.p[i].path ||
			(r->sites.p[i].kind == TRACE_PATH && r->sites.p[i].path->n));
	while (trace_reader_next(r, &b) > 0)
		trace_writer_put(&w, &b);
	trace_writer_end(&w, r->sites.p, (uint32_t)r->sites.n, r->lost, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t weight, sum = 0, part_weight;
	struct trace_reader r;
	struct buf twice = {0};
	bool good = !blob_trace.weight(data, size, &weight);

	require(good == !blob_trace.check(data, size));
	require(good == !blob_trace.merge(data, size, data, size, &twice));
	if (good) {
		require(!blob_trace.weight(twice.p, twice.n, &part_weight));
		require(part_weight == 2 * weight);
		require(!trace_reader_init(&r, data, size));
		while (trace_reader_part(&r) > 0) {
			struct buf part = {0};

			copy_part(&r, &part);
			require(!blob_trace.weight(part.p, part.n, &part_weight));
			sum += part_weight;
			buf_deinit(&part);
		}
		require(sum == weight);
		trace_reader_deinit(&r);
	}
	buf_deinit(&twice);
	return 0;
}
