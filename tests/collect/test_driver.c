#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "collect/driver.h"
#include "collect/driver_rig.h"
#include "collect/ring.h"
#include "collect/sampler.h"

enum { PLACES = 5000, EVENTS = 2 };

/* Everything that a drain delivers about the faults of this process. */
struct seen {
	uint32_t counts[PLACES];
	uint64_t total, others, first, last;
	uint8_t event;
	pid_t pid;
};

static void see(void *arg, const struct sample *s)
{
	struct seen *seen = arg;
	long place = faults_place(&faults, s->pc);

	if (s->pid != seen->pid || s->event != seen->event) {
		seen->others += s->count;
		return;
	}
	if (place >= 0) {
		seen->counts[place] += s->count;
		seen->total += s->count;
		assert_false(s->kernel);
	}
	seen->first = s->time < seen->first ? s->time : seen->first;
	seen->last = s->time > seen->last ? s->time : seen->last;
}

static void drain(struct seen *seen)
{
	uint8_t event = seen->event;

	*seen = (struct seen){.first = UINT64_MAX, .pid = getpid(), .event = event};
	driver_swap(driver);
	ring_settle();
	driver_collect(driver, UINT64_MAX, see, seen);
}

/* Ten times as many places as a table holds: most entries pass through the overflow buffer. */
static void test_every_sample_arrives(void **state)
{
	(void)state;
	need_bpf();
	static struct seen seen;
	struct sampler_statistics before = {0}, after = {0};
	int fd = open_faults(0, false);
	uint64_t start = io_clock_ns(CLOCK_MONOTONIC), end;

	drain(&seen);
	driver_statistics(driver, &before);
	for (int i = 0; i < 3; i++)
		run_counted(fd);
	end = io_clock_ns(CLOCK_MONOTONIC);
	drain(&seen);
	driver_statistics(driver, &after);
	assert_int_equal(seen.total, 3 * PLACES);
	for (int i = 0; i < PLACES; i++)
		assert_int_equal(seen.counts[i], 3);
	assert_true(after.samples - before.samples >= 3 * PLACES);
	assert_true(after.evictions - before.evictions > 2 * PLACES);
	assert_int_equal(after.dropped, before.dropped);
	assert_int_equal(driver_dropped(driver, 0), 0);
	/* Times are those of first sight, a unit of 256 ns aside. */
	assert_true(seen.first + 256 >= start);
	assert_true(seen.last <= end);
	drain(&seen);
	assert_int_equal(seen.total, 0);
	close(fd);
}

static void test_hits_are_summed(void **state)
{
	(void)state;
	need_bpf();
	static struct seen seen;
	struct faults few;
	struct sampler_statistics before = {0}, after = {0};
	int fd = open_faults(0, false);

	assert_true(faults_init(&few, 1));
	drain(&seen);
	driver_statistics(driver, &before);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	for (int i = 0; i < 1000; i++)
		faults_run(&few);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	driver_statistics(driver, &after);
	/* All but the first on each CPU, and those that others evicted. */
	assert_true(after.hits - before.hits > 900);
	faults_deinit(&few);
	close(fd);
}

/* More evictions than the overflow buffer holds, and nobody empties it: each drop is counted. */
static void test_drops_are_counted(void **state)
{
	(void)state;
	need_bpf();
	static struct seen seen;
	int fd = open_faults(1, false), rounds = 2 * DRIVER_OVERFLOW / PLACES + 8;
	cpu_set_t all, one;
	uint64_t dropped;
	static struct seen served;

	sched_getaffinity(0, sizeof all, &all);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof one, &one);
	seen.event = 1;
	drain(&seen);
	driver_dropped(driver, 1);
	for (int i = 0; i < rounds; i++)
		run_counted(fd);
	drain(&seen);
	dropped = driver_dropped(driver, 1);
	assert_true(dropped > 0);
	assert_true(seen.total > DRIVER_OVERFLOW);
	assert_int_equal(seen.total + dropped, (uint64_t)rounds * PLACES);
	assert_int_equal(driver_dropped(driver, 0), 0);
	assert_int_equal(driver_dropped(driver, 1), 0);

	/* Emptied now and then, the same is no trouble. */
	served = (struct seen){.first = UINT64_MAX, .pid = getpid(), .event = 1};
	for (int i = 0; i < rounds; i++) {
		run_counted(fd);
		driver_service(driver, UINT64_MAX, see, &served);
	}
	drain(&seen);
	assert_int_equal(served.total + seen.total, (uint64_t)rounds * PLACES);
	assert_int_equal(driver_dropped(driver, 1), 0);
	sched_setaffinity(0, sizeof all, &all);
	close(fd);
}

/* What is counted after the swap waits for the next drain. */
static void test_sides(void **state)
{
	(void)state;
	need_bpf();
	static struct seen seen;
	int fd = open_faults(0, false);
	uint64_t until;

	drain(&seen);
	run_counted(fd);
	driver_swap(driver);
	until = io_clock_ns(CLOCK_MONOTONIC);
	run_counted(fd);
	run_counted(fd);
	ring_settle();
	seen = (struct seen){.pid = getpid(), .first = UINT64_MAX};
	driver_collect(driver, until, see, &seen);
	assert_int_equal(seen.total, PLACES);
	drain(&seen);
	assert_int_equal(seen.total, 2 * PLACES);
	close(fd);
}

static void test_events_are_told_apart(void **state)
{
	(void)state;
	need_bpf();
	static struct seen seen;
	int a = open_faults(0, false), b = open_faults(1, false);

	drain(&seen);
	run_counted(a);
	run_counted(b);
	run_counted(b);
	seen.event = 1;
	drain(&seen);
	assert_int_equal(seen.total, 2 * PLACES);
	assert_int_equal(seen.others, PLACES);
	close(a);
	close(b);
}

/* ---- an exec ---- */

static volatile char page[3 * 4096];

/* Faults at the same address before and after an exec, when addresses are not randomised. */
static __attribute__((noinline)) void touch(void)
{
	madvise((void *)(((uintptr_t)page + 4095) & ~4095ul), 4096, MADV_DONTNEED);
	((volatile char *)(((uintptr_t)page + 4095) & ~4095ul))[0] = 1;
}

static bool in_touch(uint64_t pc)
{
	return pc >= (uintptr_t)touch && pc < (uintptr_t)touch + 256;
}

struct places {
	struct {
		uint64_t pc, time;
		uint32_t count;
	} at[16];
	size_t n;
	pid_t pid;
};

static void see_touch(void *arg, const struct sample *s)
{
	struct places *p = arg;

	if (s->pid != p->pid || !in_touch(s->pc) || p->n == 16)
		return;
	p->at[p->n].pc = s->pc;
	p->at[p->n].time = s->time;
	p->at[p->n++].count = s->count;
}

static void test_exec_generation(void **state)
{
	(void)state;
	need_bpf();
	struct places places = {0};
	int fd = open_faults(0, true), status;
	pid_t child;

	driver_swap(driver);
	ring_settle();
	driver_collect(driver, UINT64_MAX, see_touch, &places);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	child = fork();
	if (child == 0) {
		for (int i = 0; i < 3; i++)
			touch();
		execl("/proc/self/exe", "test_driver", "touch", NULL);
		_exit(1);
	}
	waitpid(child, &status, 0);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	assert_int_equal(status, 0);
	places.pid = child;
	driver_swap(driver);
	ring_settle();
	driver_collect(driver, UINT64_MAX, see_touch, &places);

	/* The child inherited the program, and its two lives are kept apart. */
	assert_int_equal(places.n, 2);
	assert_int_equal(places.at[0].pc, places.at[1].pc);
	size_t first = places.at[0].time > places.at[1].time;
	assert_int_equal(places.at[first].count, 3);
	assert_int_equal(places.at[!first].count, 5);
	close(fd);
}

static int set_up(void **state)
{
	(void)state;
	assert_true(faults_init(&faults, PLACES));
	driver_create(
		&(struct driver_options){.nevents = EVENTS, .cpus = sysconf(_SC_NPROCESSORS_CONF)},
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_sample_arrives),
		cmocka_unit_test(test_hits_are_summed),
		cmocka_unit_test(test_drops_are_counted),
		cmocka_unit_test(test_sides),
		cmocka_unit_test(test_events_are_told_apart),
		cmocka_unit_test(test_exec_generation),
	};
	if (argc > 1) {
		for (int i = 0; i < 5; i++)
			touch();
		return 0;
	}
	/* Once more without random addresses, so that an exec finds its code where it was. */
	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE) && personality(ADDR_NO_RANDOMIZE) >= 0)
		execv("/proc/self/exe", argv);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
