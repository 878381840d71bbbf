#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collect/perf_bytes.h"
#include "collect/record.h"
#include "collect/ring.h"

/* A memory file stands in for a perf event: the test writes what the kernel would. */
struct fake {
	int fd;
	struct perf_event_mmap_page *page;
	uint8_t *data;
	struct ring ring;
};

enum { SIZE = 4096 };

static int set_up(void **state)
{
	static struct fake f;
	size_t page = sysconf(_SC_PAGESIZE);

	f = (struct fake){.fd = memfd_create("ring", 0)};
	assert_true(f.fd >= 0 && ftruncate(f.fd, page + SIZE) == 0);
	f.page = mmap(NULL, page + SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, 0);
	assert_ptr_not_equal(f.page, MAP_FAILED);
	f.data = (uint8_t *)f.page + page;
	assert_int_equal(ring_open(&f.ring, f.fd, SIZE), 0);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fake *f = *state;

	ring_close(&f->ring);
	munmap(f->page, sysconf(_SC_PAGESIZE) + SIZE);
	close(f->fd);
	return 0;
}

/* False when there is no room, as the kernel sees it. */
static bool put_comm(struct fake *f, uint32_t pid, const char *name)
{
	struct buf b = {0};
	bool fits;

	perf_comm(&b, pid, name, pid, false);
	fits = f->page->data_head + b.n - f->page->data_tail <= SIZE;
	for (size_t i = 0; fits && i < b.n; i++)
		f->data[(f->page->data_head + i) % SIZE] = b.p[i];
	if (fits)
		f->page->data_head += b.n;
	buf_deinit(&b);
	return fits;
}

static void check_comm(const void *p, size_t n, uint32_t pid, const char *name)
{
	struct record r;
	size_t size;

	assert_int_equal(record_parse(p, n, true, &r, &size), 0);
	assert_int_equal(size, n);
	assert_int_equal(r.pid, pid);
	assert_string_equal(r.comm.name, name);
}

static void test_empty(void **state)
{
	struct fake *f = *state;
	size_t size;

	assert_null(ring_next(&f->ring, &size));
	ring_done(&f->ring);
	assert_int_equal(f->page->data_tail, 0);
}

/* Names of many lengths, so that records wrap around at many places. */
static void test_many_rounds(void **state)
{
	struct fake *f = *state;
	char name[200];
	uint32_t written = 0, read = 0;

	while (read < 5000) {
		const void *p;
		size_t size;

		do {
			memset(name, 'a', sizeof name);
			name[written % 199] = 0;
		} while (put_comm(f, written, name) && ++written % 23);
		while ((p = ring_next(&f->ring, &size))) {
			memset(name, 'a', sizeof name);
			name[read % 199] = 0;
			check_comm(p, size, read++, name);
		}
		ring_done(&f->ring);
		assert_int_equal(f->page->data_tail, f->page->data_head);
		assert_int_equal(read, written);
	}
	assert_non_null(f->ring.piece); /* at least one was put together */
}

static void test_room_returns_only_when_done(void **state)
{
	struct fake *f = *state;
	size_t size;

	put_comm(f, 1, "x");
	assert_non_null(ring_next(&f->ring, &size));
	assert_int_equal(f->page->data_tail, 0);
	ring_done(&f->ring);
	assert_int_equal(f->page->data_tail, size);
}

static void test_rubbish_is_skipped(void **state)
{
	static const uint16_t sizes[] = {0, 4, 12, 5000};
	struct fake *f = *state;
	const void *p;
	size_t size;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct perf_event_header h = {.size = sizes[i]};

		memcpy(f->data + f->page->data_head, &h, sizeof h);
		f->page->data_head += 64;
		assert_null(ring_next(&f->ring, &size));
		ring_done(&f->ring);
		assert_int_equal(f->page->data_tail, f->page->data_head);
		assert_true(put_comm(f, 9, "after"));
		p = ring_next(&f->ring, &size);
		check_comm(p, size, 9, "after");
		ring_done(&f->ring);
	}
}

static void test_no_event(void **state)
{
	(void)state;
	struct ring r;

	assert_int_equal(ring_open(&r, -1, SIZE), -EBADF);
	ring_settle();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_empty, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_rounds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_room_returns_only_when_done, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rubbish_is_skipped, set_up, tear_down),
		cmocka_unit_test(test_no_event),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
