#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/vec.h"
#include "collect/driver.h"
#include "collect/driver_rig.h"
#include "collect/sampler.h"

enum { PLACES = 100, RDI = 7, RCX = 1, R11 = 11 };

typedef VEC(struct driver_pair) pair_list;

static void take(void *arg, const struct driver_pair *p)
{
	pair_list *list = arg;

	if (p->pid == (uint32_t)getpid())
		*vec_add(list) = *p;
}

static void drain(pair_list *list)
{
	driver_pairs(driver, UINT64_MAX, take, list);
}

static struct sampler_statistics statistics(void)
{
	struct sampler_statistics s = {0};

	driver_statistics(driver, &s);
	return s;
}

/* The code goes from fault to fault, ten bytes and a page further each time. */
static void test_differences(void **state)
{
	(void)state;
	need_bpf();
	pair_list list = {0};
	int fd = open_faults(0, false);
	uint64_t start, last = 0;

	driver_set_pairs(driver, 1);
	drain(&list);
	list.n = 0;
	start = io_clock_ns(CLOCK_MONOTONIC);
	run_counted(fd);
	drain(&list);
	/* Another thread may have taken this one's place on the CPU, or it moved: seldom. */
	assert_in_range(list.n, PLACES / 2, PLACES);
	vec_each (p, &list) {
		if (faults_place(&faults, p->pc) < 0 || faults_place(&faults, p->last) < 0)
			continue;
		assert_int_equal(p->pc - p->last, FAULT_STEP);
		assert_int_equal(p->changed, 1 << RDI);
		for (unsigned i = 0; i < 16; i++)
			assert_int_equal(p->difference[i], i == RDI ? 4096 : 0);
		assert_int_equal(p->tid, gettid());
		assert_int_equal(p->kernel, 0);
		assert_true(p->time >= start && p->time > last);
		assert_true(p->between > 0 && p->between < p->time - start);
		last = p->time;
	}
	assert_true(last > 0);
	list.n = 0;
	drain(&list);
	assert_int_equal(list.n, 0);
	vec_deinit(&list);
	close(fd);
}

static void test_only_the_first_event(void **state)
{
	(void)state;
	need_bpf();
	struct sampler_statistics before, after;
	int fd = open_faults(1, false);

	driver_set_pairs(driver, 1);
	before = statistics();
	run_counted(fd);
	after = statistics();
	assert_true(after.samples - before.samples >= PLACES);
	assert_int_equal(after.pairs_begun, before.pairs_begun);
	assert_int_equal(after.pairs, before.pairs);
	close(fd);
}

/* Nobody empties the buffers: what finds no room is counted, and each beginning has an end. */
static void test_accounts(void **state)
{
	(void)state;
	need_bpf();
	struct sampler_statistics s;
	pair_list list = {0};
	int fd = open_faults(0, false);
	uint64_t ended;

	driver_set_pairs(driver, 1);
	for (int i = 0; i < 4 * DRIVER_PAIRS * sysconf(_SC_NPROCESSORS_CONF) / PLACES; i++)
		run_counted(fd);
	s = statistics();
	assert_true(s.pairs_dropped > 0);
	ended = s.pairs + s.pairs_apart + s.pairs_lapsed + s.pairs_dropped;
	assert_in_range(s.pairs_begun - ended, 0, sysconf(_SC_NPROCESSORS_CONF));
	drain(&list);
	assert_true(list.n >= DRIVER_PAIRS);
	/* Emptied, there is room again. */
	run_counted(fd);
	assert_true(statistics().pairs > s.pairs);
	drain(&list);
	vec_deinit(&list);
	close(fd);
}

/* One in ten in the mean, and none of them in step. */
static void test_share(void **state)
{
	(void)state;
	need_bpf();
	struct sampler_statistics before, after;
	pair_list list = {0};
	int fd = open_faults(0, false);
	bool seen[10] = {0};
	unsigned kinds = 0;

	driver_set_pairs(driver, 10);
	drain(&list);
	list.n = 0;
	before = statistics();
	for (int i = 0; i < 100; i++) {
		run_counted(fd);
		drain(&list);
	}
	after = statistics();
	assert_in_range(after.pairs_begun - before.pairs_begun, 800, 1200);
	vec_each (p, &list)
		if (faults_place(&faults, p->pc) >= 0)
			seen[faults_place(&faults, p->pc) % 10] = true;
	for (unsigned i = 0; i < 10; i++)
		kinds += seen[i];
	assert_int_equal(kinds, 10);
	vec_deinit(&list);
	close(fd);
}

/* ---- activations ---- */

static volatile char *fresh_pages(void)
{
	madvise(faults.pages, PLACES * 4096, MADV_DONTNEED);
	return (volatile char *)faults.pages;
}

/* Only these touch memory that is not there yet: not what a sanitizer keeps about it. */
#define PLAIN __attribute__((noinline, no_sanitize_address, no_sanitize_undefined))

/* Two faults in one activation, and a sleep between them that is a system call of our own. */
static PLAIN void sleep_between(volatile char *p, const struct timespec *t)
{
	register long number asm("rax") = SYS_nanosleep;
	register const struct timespec *time asm("rdi") = t;
	register void *rest asm("rsi") = NULL;

	p[0] = 1;
	asm volatile("syscall" : "+r"(number) : "r"(time), "r"(rest) : "rcx", "r11", "memory");
	p[4096] = 1;
}

static void test_switched_out(void **state)
{
	(void)state;
	need_bpf();
	struct timespec t = {.tv_nsec = 50000000};
	pair_list list = {0};
	volatile char *p = fresh_pages();
	int fd = open_faults(0, false);
	cpu_set_t all, one;

	sched_getaffinity(0, sizeof all, &all);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof one, &one);
	driver_set_pairs(driver, 1);
	drain(&list);
	list.n = 0;
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	sleep_between(p, &t);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	drain(&list);
	sched_setaffinity(0, sizeof all, &all);
	assert_int_equal(list.n, 1);
	assert_true(list.p[0].switched);
	assert_in_range(list.p[0].between, 1, 25000000);
	/* The kernel leaves the address after the system call in rcx. */
	assert_true(list.p[0].changed >> RCX & 1 || list.p[0].changed >> R11 & 1);
	vec_deinit(&list);
	close(fd);
}

static PLAIN void deeper(volatile char *p, int depth)
{
	*p = 1;
	if (depth)
		deeper(p + 4096, depth - 1);
	asm volatile("" ::: "memory"); /* no tail call */
}

static void test_recursion_is_apart(void **state)
{
	(void)state;
	need_bpf();
	struct sampler_statistics before, after;
	pair_list list = {0};
	volatile char *p = fresh_pages();
	int fd = open_faults(0, false);

	driver_set_pairs(driver, 1);
	drain(&list);
	list.n = 0;
	before = statistics();
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	deeper(p, 40);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	after = statistics();
	drain(&list);
	assert_true(after.pairs_begun - before.pairs_begun >= 40);
	assert_true(after.pairs_apart - before.pairs_apart >= 30);
	assert_int_equal(list.n, 0);
	vec_deinit(&list);
	close(fd);
}

struct turns {
	pthread_barrier_t barrier;
	volatile char *pages;
};

static PLAIN void *take_turns(void *arg)
{
	struct turns *t = arg;

	for (int i = 0; i < 20; i++) {
		pthread_barrier_wait(&t->barrier);
		t->pages[(2 * i + 1) * 4096] = 1;
		pthread_barrier_wait(&t->barrier);
	}
	return NULL;
}

/* Two threads in turns on one CPU: with every sample chosen, neither is waited for long enough. */
static void test_other_threads_lapse(void **state)
{
	(void)state;
	need_bpf();
	struct turns t = {.pages = fresh_pages()};
	struct sampler_statistics before, after;
	int fd = open_faults(0, true);
	cpu_set_t all, one;
	pthread_t other;

	sched_getaffinity(0, sizeof all, &all);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof one, &one);
	driver_set_pairs(driver, 1);
	pthread_barrier_init(&t.barrier, NULL, 2);
	assert_int_equal(pthread_create(&other, NULL, take_turns, &t), 0);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	before = statistics();
	for (int i = 0; i < 20; i++) {
		t.pages[2 * i * 4096] = 1;
		pthread_barrier_wait(&t.barrier);
		pthread_barrier_wait(&t.barrier);
	}
	after = statistics();
	pthread_join(other, NULL);
	assert_true(after.pairs_lapsed - before.pairs_lapsed >= 30);
	pthread_barrier_destroy(&t.barrier);
	sched_setaffinity(0, sizeof all, &all);
	close(fd);
}

static void test_off(void **state)
{
	(void)state;
	need_bpf();
	struct driver *quiet = NULL, *kept = driver;
	struct err e = {0};
	int fd;

	assert_int_equal(driver_create(&(struct driver_options){.nevents = 1,
					       .cpus = sysconf(_SC_NPROCESSORS_CONF)},
				 &quiet, &e),
		0);
	driver = quiet;
	fd = open_faults(0, false);
	run_counted(fd);
	assert_true(statistics().samples >= PLACES);
	assert_int_equal(statistics().pairs_begun, 0);
	close(fd);
	driver_destroy(quiet);
	driver = kept;
}

static int set_up(void **state)
{
	(void)state;
	assert_true(faults_init(&faults, PLACES));
	driver_create(&(struct driver_options){.nevents = 2, .cpus = sysconf(_SC_NPROCESSORS_CONF)},
		&driver, &why_not);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	driver_destroy(driver);
	faults_deinit(&faults);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_differences),
		cmocka_unit_test(test_only_the_first_event),
		cmocka_unit_test(test_accounts),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_switched_out),
		cmocka_unit_test(test_recursion_is_apart),
		cmocka_unit_test(test_other_threads_lapse),
		cmocka_unit_test(test_off),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
