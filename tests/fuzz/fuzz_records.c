/*
 * Parses the input as the contents of a perf ring buffer, record after record, as the queue does:
 * sizes stay within the input, strings end inside their record, and what was queued comes out.
 */
#include <stdlib.h>
#include <string.h>

#include "collect/record.h"
#include "collect/record_queue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_string(const char *s, const uint8_t *record, size_t size)
{
	const char *start = (const char *)record;

	/* "" may stand elsewhere. */
	if (*s && (s < start || s + strlen(s) >= start + size))
		abort();
}

static void check_record(const struct record *r, const uint8_t *record, size_t size)
{
	if (r->kind == RECORD_MMAP)
		check_string(r->mmap.path, record, size);
	if (r->kind == RECORD_MMAP && r->mmap.build_id.size > sizeof r->mmap.build_id.bytes)
		abort();
	if (r->kind == RECORD_COMM)
		check_string(r->comm.name, record, size);
	if (r->kind == RECORD_CGROUP)
		check_string(r->cgroup.path, record, size);
}

struct seen {
	uint64_t time;
	size_t n;
};

static void see(void *arg, const struct record *r)
{
	struct seen *s = arg;

	if (r->time < s->time || r->kind == RECORD_OTHER)
		abort();
	s->time = r->time;
	s->n++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct record_queue q = {.build_ids = n % 2};
	struct seen seen = {0};
	size_t added = 0;

	for (size_t at = 0, size; at < n; at += size) {
		struct record r;
		int ok = record_parse(data + at, n - at, q.build_ids, &r, &size);

		if (size > n - at || (ok == 0 && !size))
			abort();
		if (!size)
			break;
		if (ok == 0) {
			check_record(&r, data + at, size);
			added += r.kind != RECORD_OTHER;
		}
		record_queue_add(&q, data + at, size);
	}
	record_queue_deliver(&q, UINT64_MAX / 2, see, &seen);
	record_queue_deliver(&q, UINT64_MAX, see, &seen);
	if (seen.n != added)
		abort();
	record_queue_deinit(&q);
	return 0;
}
