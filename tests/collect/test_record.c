#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/mman.h>

#include "collect/perf_bytes.h"
#include "collect/record.h"
#include "collect/record_queue.h"

static struct record parsed(const struct buf *b)
{
	struct record r;
	size_t size;

	assert_int_equal(record_parse(b->p, b->n, true, &r, &size), 0);
	assert_int_equal(size, b->n);
	return r;
}

static void test_sample(void **state)
{
	(void)state;
	struct buf b = {0};
	perf_sample(&b, 77, 0xffffffff81000010, 12, 999, PERF_RECORD_MISC_KERNEL);
	struct record r = parsed(&b);
	assert_int_equal(r.kind, RECORD_SAMPLE);
	assert_int_equal(r.id, 77);
	assert_int_equal(r.sample.pc, 0xffffffff81000010);
	assert_int_equal(r.sample.misc, PERF_RECORD_MISC_KERNEL);
	assert_int_equal(r.pid, 12);
	assert_int_equal(r.tid, 13);
	assert_int_equal(r.time, 999);
	assert_int_equal(r.cpu, 3);
	buf_deinit(&b);
}

/* As above, with what `tail` has behind it. */
static void put_sample(struct buf *b, const uint64_t *tail, size_t n)
{
	uint16_t size;

	perf_sample(b, 77, 0x401000, 12, 999, PERF_RECORD_MISC_USER);
	for (size_t i = 0; i < n; i++)
		buf_u64(b, tail[i]);
	size = (uint16_t)b->n;
	memcpy(b->p + offsetof(struct perf_event_header, size), &size, sizeof size);
}

static void test_registers(void **state)
{
	const uint64_t few[] = {PERF_SAMPLE_REGS_ABI_64, 6, 7, 8}, none[] = {0};
	struct buf b = {0};
	struct record r;

	(void)state;
	put_sample(&b, few, 4);
	r = parsed(&b);
	assert_true(r.sample.has_user);
	assert_int_equal(r.sample.bp, 6);
	assert_int_equal(r.sample.sp, 7);
	assert_int_equal(r.sample.ip, 8);
	assert_null(r.sample.stack);
	b.n = 0;
	put_sample(&b, none, 1);
	assert_false(parsed(&b).sample.has_user);
	buf_deinit(&b);
}

static void test_stack(void **state)
{
	uint64_t all[1 + RECORD_REGISTERS + 4] = {PERF_SAMPLE_REGS_ABI_64};
	struct buf b = {0};
	struct record r;
	size_t size;

	(void)state;
	for (uint64_t i = 0; i < RECORD_REGISTERS; i++)
		all[1 + i] = i;
	all[18] = 16; /* room, two words, and how much of it is a stack */
	all[19] = 0x1234;
	all[21] = 8;
	put_sample(&b, all, 22);
	r = parsed(&b);
	assert_int_equal(r.sample.sp, 7);
	assert_int_equal(r.sample.stack_size, 8);
	assert_memory_equal(r.sample.stack, &all[19], 8);
	assert_memory_equal(r.sample.registers, &all[1], RECORD_REGISTERS * sizeof all[0]);
	/* More than there is room for, and room for more than there is. */
	all[21] = 24;
	b.n = 0;
	put_sample(&b, all, 22);
	assert_int_equal(record_parse(b.p, b.n, true, &r, &size), -EBADMSG);
	all[18] = 64;
	b.n = 0;
	put_sample(&b, all, 22);
	assert_int_equal(record_parse(b.p, b.n, true, &r, &size), -EBADMSG);
	buf_deinit(&b);
}

static void put_mmap(struct buf *b)
{
	buf_u32(b, 12);
	buf_u32(b, 13);
	buf_u64(b, 0x7f0000001000);
	buf_u64(b, 0x2000);
	buf_u64(b, 0x3000);
}

static void test_mmap2_with_inode(void **state)
{
	(void)state;
	struct buf b = {0};
	size_t start = perf_begin(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
	put_mmap(&b);
	buf_u32(&b, 8);
	buf_u32(&b, 1);
	buf_u64(&b, 4242);
	buf_u64(&b, 7);
	buf_u32(&b, PROT_READ | PROT_EXEC);
	buf_u32(&b, MAP_PRIVATE);
	perf_str(&b, "/usr/lib/libx.so");
	perf_end(&b, start, 12, 13, 555, 5);
	struct record r = parsed(&b);
	assert_int_equal(r.kind, RECORD_MMAP);
	assert_int_equal(r.pid, 12);
	assert_int_equal(r.mmap.start, 0x7f0000001000);
	assert_int_equal(r.mmap.size, 0x2000);
	assert_int_equal(r.mmap.offset, 0x3000);
	assert_int_equal(r.mmap.major, 8);
	assert_int_equal(r.mmap.minor, 1);
	assert_int_equal(r.mmap.inode, 4242);
	assert_int_equal(r.mmap.inode_generation, 7);
	assert_int_equal(r.mmap.build_id.size, 0);
	assert_false(r.mmap.kernel);
	assert_string_equal(r.mmap.path, "/usr/lib/libx.so");
	assert_int_equal(r.time, 555);
	buf_deinit(&b);
}

static void put_build_id_mmap(struct buf *b, uint8_t size, uint32_t prot)
{
	size_t start = perf_begin(
		b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);
	put_mmap(b);
	buf_u32(b, size);
	for (uint8_t i = 0; i < 20; i++)
		buf_u8(b, i);
	buf_u32(b, prot);
	buf_u32(b, MAP_PRIVATE);
	perf_str(b, "/bin/x");
	perf_end(b, start, 12, 13, 1, 5);
}

static void test_mmap2_with_build_id(void **state)
{
	(void)state;
	struct buf b = {0};
	put_build_id_mmap(&b, 20, PROT_EXEC);
	struct record r = parsed(&b);
	assert_int_equal(r.kind, RECORD_MMAP);
	assert_int_equal(r.mmap.build_id.size, 20);
	assert_false(r.mmap.build_id.is_hash);
	assert_int_equal(r.mmap.build_id.bytes[19], 19);
	assert_int_equal(r.mmap.inode, 0);
	assert_string_equal(r.mmap.path, "/bin/x");
	buf_deinit(&b);

	struct buf data = {0};
	put_build_id_mmap(&data, 20, PROT_READ);
	assert_int_equal(parsed(&data).kind, RECORD_OTHER);
	buf_deinit(&data);

	struct buf bad = {0};
	size_t size;
	put_build_id_mmap(&bad, 21, PROT_EXEC);
	assert_int_equal(record_parse(bad.p, bad.n, true, &r, &size), -EBADMSG);
	assert_int_equal(size, bad.n);
	buf_deinit(&bad);
}

/* The kernel says so of another event's record: what is there is the inode. */
static void test_mmap2_of_an_event_without_build_ids(void **state)
{
	(void)state;
	struct buf b = {0};
	struct record r;
	size_t size;
	put_build_id_mmap(&b, 254, PROT_EXEC);
	assert_int_equal(record_parse(b.p, b.n, false, &r, &size), 0);
	assert_int_equal(r.kind, RECORD_MMAP);
	assert_int_equal(r.mmap.build_id.size, 0);
	assert_int_equal(r.mmap.major, 254);
	assert_int_equal(r.mmap.minor, 0x03020100);
	assert_int_equal(r.mmap.inode, 0x0b0a090807060504);
	assert_string_equal(r.mmap.path, "/bin/x");
	buf_deinit(&b);
}

static void test_comm(void **state)
{
	(void)state;
	struct buf b = {0};
	perf_comm(&b, 12, "gzip", 44, true);
	struct record r = parsed(&b);
	assert_int_equal(r.kind, RECORD_COMM);
	assert_true(r.comm.exec);
	assert_string_equal(r.comm.name, "gzip");
	assert_int_equal(r.id, 5);
	b.n = 0;
	perf_comm(&b, 12, "thread-1", 44, false);
	assert_false(parsed(&b).comm.exec);
	buf_deinit(&b);
}

static void test_fork_and_exit(void **state)
{
	(void)state;
	static const uint32_t types[] = {PERF_RECORD_FORK, PERF_RECORD_EXIT};
	static const enum record_kind kinds[] = {RECORD_FORK, RECORD_EXIT};
	for (int i = 0; i < 2; i++) {
		struct buf b = {0};
		size_t start = perf_begin(&b, types[i], 0);
		buf_u32(&b, 20);
		buf_u32(&b, 10);
		buf_u32(&b, 21);
		buf_u32(&b, 11);
		buf_u64(&b, 333);
		perf_end(&b, start, 10, 11, 334, 5);
		struct record r = parsed(&b);
		assert_int_equal(r.kind, kinds[i]);
		assert_int_equal(r.pid, 20);
		assert_int_equal(r.tid, 21);
		assert_int_equal(r.task.parent_pid, 10);
		assert_int_equal(r.task.parent_tid, 11);
		assert_int_equal(r.time, 333);
		buf_deinit(&b);
	}
}

static void test_lost_throttle_cgroup(void **state)
{
	(void)state;
	struct buf b = {0};
	size_t start = perf_begin(&b, PERF_RECORD_LOST, 0);
	buf_u64(&b, 9);
	buf_u64(&b, 1234);
	perf_end(&b, start, 1, 1, 10, 5);
	struct record r = parsed(&b);
	assert_int_equal(r.kind, RECORD_LOST);
	assert_int_equal(r.id, 9);
	assert_int_equal(r.lost.lost, 1234);

	b.n = 0;
	start = perf_begin(&b, PERF_RECORD_UNTHROTTLE, 0);
	buf_u64(&b, 888);
	buf_u64(&b, 6);
	buf_u64(&b, 7);
	perf_end(&b, start, 1, 1, 10, 5);
	r = parsed(&b);
	assert_int_equal(r.kind, RECORD_UNTHROTTLE);
	assert_int_equal(r.time, 888);
	assert_int_equal(r.id, 6);

	b.n = 0;
	start = perf_begin(&b, PERF_RECORD_CGROUP, 0);
	buf_u64(&b, 31);
	perf_str(&b, "/a/b");
	perf_end(&b, start, 1, 1, 10, 5);
	r = parsed(&b);
	assert_int_equal(r.kind, RECORD_CGROUP);
	assert_int_equal(r.cgroup.id, 31);
	assert_string_equal(r.cgroup.path, "/a/b");
	buf_deinit(&b);
}

static void test_malformed(void **state)
{
	(void)state;
	struct buf b = {0};
	struct record r = {.kind = RECORD_EXIT};
	size_t size;

	perf_comm(&b, 12, "gzip", 44, true);
	/* Cut off: not even the length can be trusted. */
	for (size_t n = 0; n < b.n; n++) {
		assert_int_equal(record_parse(b.p, n, true, &r, &size), -EBADMSG);
		assert_int_equal(size, 0);
	}
	/* A name that does not end before the trailer. */
	memset(b.p + 16, 'x', 8);
	assert_int_equal(record_parse(b.p, b.n, true, &r, &size), -EBADMSG);
	assert_int_equal(size, b.n);
	/* Too small for its trailer, and for its header. */
	b.p[6] = 32;
	assert_int_equal(record_parse(b.p, b.n, true, &r, &size), -EBADMSG);
	assert_int_equal(size, 32);
	b.p[6] = 4;
	assert_int_equal(record_parse(b.p, b.n, true, &r, &size), -EBADMSG);
	assert_int_equal(size, 0);
	assert_int_equal(r.kind, RECORD_EXIT); /* untouched on failure */
	buf_deinit(&b);
}

static void test_unknown_type(void **state)
{
	(void)state;
	struct buf b = {0};
	size_t start = perf_begin(&b, 200, 0);
	buf_u64(&b, 1);
	perf_end(&b, start, 1, 1, 10, 5);
	assert_int_equal(parsed(&b).kind, RECORD_OTHER);
	buf_deinit(&b);
}

/* ---- the queue ---- */

struct seen {
	uint64_t times[16];
	int32_t pids[16];
	size_t n;
};

static void see(void *arg, const struct record *r)
{
	struct seen *s = arg;

	assert_true(s->n < 16);
	s->times[s->n] = r->time;
	s->pids[s->n++] = r->pid;
}

static void add_comm(struct record_queue *q, uint32_t pid, uint64_t time)
{
	struct buf b = {0};

	perf_comm(&b, pid, pid % 2 ? "odd" : "an even one", time, false);
	record_queue_add(q, b.p, b.n);
	buf_deinit(&b);
}

static void test_queue_orders(void **state)
{
	(void)state;
	struct record_queue q = {0};
	struct seen s = {0};
	static const uint64_t times[] = {50, 10, 40, 20, 20, 60};

	for (uint32_t i = 0; i < 6; i++)
		add_comm(&q, i + 1, times[i]);
	record_queue_deliver(&q, 40, see, &s);
	assert_int_equal(s.n, 4);
	static const int32_t pids[] = {2, 4, 5, 3}; /* equal times in order of arrival */
	assert_memory_equal(s.pids, pids, sizeof pids);

	/* What was held stays whole and mixes with what comes later. */
	add_comm(&q, 7, 55);
	s.n = 0;
	record_queue_deliver(&q, 40, see, &s);
	assert_int_equal(s.n, 0);
	record_queue_deliver(&q, UINT64_MAX, see, &s);
	static const int32_t rest[] = {1, 7, 6};
	assert_int_equal(s.n, 3);
	assert_memory_equal(s.pids, rest, sizeof rest);
	assert_int_equal(q.bytes.n, 0);
	record_queue_deinit(&q);
}

static void test_queue_ignores_rubbish(void **state)
{
	(void)state;
	struct record_queue q = {0};
	struct seen s = {0};
	static const uint8_t rubbish[24] = {1, 2, 3};

	record_queue_add(&q, rubbish, sizeof rubbish);
	record_queue_deliver(&q, UINT64_MAX, see, &s);
	assert_int_equal(s.n, 0);
	record_queue_deinit(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_stack),
		cmocka_unit_test(test_mmap2_with_inode),
		cmocka_unit_test(test_mmap2_with_build_id),
		cmocka_unit_test(test_mmap2_of_an_event_without_build_ids),
		cmocka_unit_test(test_comm),
		cmocka_unit_test(test_fork_and_exit),
		cmocka_unit_test(test_lost_throttle_cgroup),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_unknown_type),
		cmocka_unit_test(test_queue_orders),
		cmocka_unit_test(test_queue_ignores_rubbish),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
