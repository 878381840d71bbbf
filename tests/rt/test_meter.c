/*
 * Events that threads read: from a page that changes while it is read, and software counters for
 * real, in threads, children, and where the program closes files that it does not know.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt/meter.c"
#include "rt/process.c"

#define TEXT(x)    #x
#define TEXT_OF(x) TEXT(x)

/* The header that the code above has in front of it when it is part of a program, and what
 * lies behind it. */
__asm__(".data\n.globl rt_header\n.globl test_header\n.balign 8\n"
	"rt_header:\ntest_header:\n.fill " TEXT_OF(RT_HEADER) ", 1, 0\n.fill 128, 1, 0\n.text\n");
extern struct test_image {
	struct rt_header header;
	struct rt_metrics metrics;
} test_header;
_Static_assert(sizeof test_header <= RT_HEADER + 128, "as much as above");

static unsigned complaints;

void rt_complain_of_event(long error)
{
	assert_true(error < 0);
	complaints++;
}

/* ---- a page ---- */

static struct perf_event_mmap_page page;
static uint64_t counter_value;
static unsigned changes;

/* The kernel takes the event off its counter and puts it on another, while we read. */
static uint64_t changing_counter(uint32_t index)
{
	uint64_t value = counter_value;

	assert_int_equal(index, page.index - 1);
	if (changes) {
		changes--;
		page.lock++;
		page.index++;
		page.offset += 1000;
		counter_value = 7;
	}
	return value;
}

static void set_page(int64_t offset, uint64_t value, uint16_t width)
{
	memset(&page, 0, sizeof page);
	page.cap_user_rdpmc = 1;
	page.index = 3;
	page.offset = offset;
	page.pmc_width = width;
	counter_value = value;
}

static void test_page(void **state)
{
	uint64_t count = 0;

	(void)state;
	set_page(500, 42, 48);
	assert_true(meter_read_page(&page, changing_counter, &count));
	assert_int_equal(count, 542);
	set_page(100, ((uint64_t)1 << 48) - 30, 48); /* counters count up to zero */
	assert_true(meter_read_page(&page, changing_counter, &count));
	assert_int_equal(count, 70);
	set_page(0, UINT64_MAX - 4, 64);
	assert_true(meter_read_page(&page, changing_counter, &count));
	assert_int_equal(count, UINT64_MAX - 4);
}

static void test_page_changes(void **state)
{
	uint64_t count = 0;

	(void)state;
	set_page(500, 42, 48);
	changes = 3;
	assert_true(meter_read_page(&page, changing_counter, &count));
	assert_int_equal(changes, 0);
	assert_int_equal(count, 3507);
}

static void test_page_without_counter(void **state)
{
	uint64_t count = 0;

	(void)state;
	set_page(500, 42, 48);
	page.index = 0;
	assert_false(meter_read_page(&page, changing_counter, &count));
	page.index = 1;
	page.cap_user_rdpmc = 0;
	assert_false(meter_read_page(&page, changing_counter, &count));
}

/* ---- software counters ---- */

enum { PAGES = 20 };

static void touch_pages(void)
{
	volatile char *p = mmap(NULL, (size_t)PAGES * 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	madvise((void *)p, (size_t)PAGES * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < PAGES; i++)
		p[i * 4096] = 1;
	munmap((void *)p, (size_t)PAGES * 4096);
}

/* Faults of this thread while it touches pages; its own stack and the like may add a few. */
static uint64_t measure(void)
{
	uint64_t before = rt_metric(0);

	touch_pages();
	return rt_metric(0) - before;
}

#define assert_measured(faults) assert_in_range(faults, PAGES, PAGES + 5)

static int set_up(void **state)
{
	(void)state;
	test_header.header.metrics = offsetof(struct test_image, metrics);
	test_header.metrics = (struct rt_metrics){.key = 5,
		.events = 1,
		.event[0] = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS}};
	return 0;
}

static void test_faults(void **state)
{
	(void)state;
	assert_measured(measure());
	assert_measured(measure());
	assert_int_equal(complaints, 0);
}

static void test_closed(void **state)
{
	struct rt_meter *m;
	uint64_t before = rt_metric(0), id;
	int other;

	(void)state;
	m = (struct rt_meter *)thread_word();
	id = m->event[0].id;
	assert_int_equal(close((int)m->event[0].fd), 0);
	assert_measured(measure());
	assert_true(rt_metric(0) >= before);
	assert_true(m->event[0].id != id);
	/* The number is somebody else's now, whose file must stay open and unread. */
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "0123456789abcdef!", 17), 17);
	other = dup2(ends[0], (int)m->event[0].fd);
	assert_measured(measure());
	char text[17];
	assert_int_equal(read(other, text, sizeof text), 17);
	close(other);
	close(ends[0]);
	close(ends[1]);
}

static void *measure_in_thread(void *arg)
{
	(void)arg;
	uint64_t first = measure();
	return (void *)(first >= PAGES && first <= PAGES + 5 ? measure() : 0);
}

/* Each measures itself; those that come later have the meters of those that ended. */
static void test_threads(void **state)
{
	pthread_t threads[8];
	uint64_t used;

	(void)state;
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < 8; i++)
			assert_int_equal(
				pthread_create(&threads[i], NULL, measure_in_thread, NULL), 0);
		for (int i = 0; i < 8; i++) {
			void *faults;

			pthread_join(threads[i], &faults);
			assert_measured((uint64_t)faults);
		}
	}
	used = meters()->used;
	assert_in_range(used, 1, 160);
}

static void test_fork(void **state)
{
	uint64_t before = rt_metric(0);
	struct rt_meter *m = (struct rt_meter *)thread_word();
	uint64_t id = m->event[0].id;
	int status;
	pid_t child = fork();

	(void)state;
	if (!child) {
		uint64_t now = rt_metric(0);
		bool good = now >= before && m->event[0].id != id &&
			    m->thread == (uint32_t)getpid() && measure() >= PAGES;
		_exit(good ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(m->event[0].id, id);
	assert_measured(measure());
}

/* Two files of a process that measure different things do not disturb each other. */
static void test_two_kinds(void **state)
{
	struct rt_metrics faults = test_header.metrics, minor = faults;

	(void)state;
	minor.key = 6;
	minor.event[0].config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
	for (int i = 0; i < 4; i++) {
		test_header.metrics = i & 1 ? minor : faults;
		assert_measured(measure());
	}
	test_header.metrics = faults;
}

/* Last: the thread has no meter afterwards. */
static void test_refused(void **state)
{
	(void)state;
	test_header.metrics.key = 7;
	test_header.metrics.event[0].type = UINT32_MAX;
	assert_int_equal(rt_metric(0), 0);
	assert_int_equal(rt_metric(0), 0);
	assert_int_equal(complaints, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_page_changes),
		cmocka_unit_test(test_page_without_counter),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_two_kinds),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, set_up, NULL);
}
