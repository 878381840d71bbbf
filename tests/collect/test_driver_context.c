/* Samples that tell the height of the stack, and copies of stacks, of faults at known depths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "calls/map.h"
#include "collect/driver.h"
#include "collect/driver_rig.h"
#include "collect/ring.h"
#include "collect/sampler.h"

enum { MOST = 64 };

struct seen {
	size_t n;
	struct sample at[MOST];
	size_t nstacks;
	struct driver_stack stacks[MOST];
	uint64_t word[MOST]; /* the first of the copy: where the fault's code returns to */
};
static struct seen seen;
static struct faults one;

static void see(void *arg, const struct sample *s)
{
	(void)arg;
	if (s->pid == getpid() && faults_place(&one, s->pc) == 0 && seen.n < MOST)
		seen.at[seen.n++] = *s;
}

static void see_stack(void *arg, const struct driver_stack *s, const uint8_t *bytes)
{
	(void)arg;
	if ((pid_t)s->pid != getpid() || faults_place(&one, s->rip) != 0 || seen.nstacks == MOST)
		return;
	seen.stacks[seen.nstacks] = *s;
	memcpy(&seen.word[seen.nstacks++], bytes, sizeof(uint64_t));
}

static void drain(void)
{
	driver_swap(driver);
	ring_settle();
	memset(&seen, 0, sizeof seen);
	driver_collect(driver, UINT64_MAX, see, NULL);
	driver_stacks(driver, UINT64_MAX, see_stack, NULL);
}

static uint64_t height(const struct sample *s)
{
	return s->where & WHERE_HEIGHT;
}

static unsigned kind(const struct sample *s)
{
	return s->where >> WHERE_KIND_SHIFT & WHERE_KIND;
}

__attribute__((noinline)) static void deep(int n)
{
	volatile char frame[512];

	frame[n] = 0;
	if (n)
		deep(n - 1);
	else
		faults_run(&one);
	frame[n]++;
}

static void test_heights(void **state)
{
	int fd;

	(void)state;
	need_bpf();
	fd = open_faults(0, false);
	drain();
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	for (int i = 0; i < 10; i++) {
		deep(0);
		deep(3);
	}
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	drain();
	/* On each CPU that we ran on there are the two. */
	assert_true(seen.n >= 2 && seen.n % 2 == 0);
	for (size_t i = 0; i < seen.n; i++) {
		uint64_t apart = height(&seen.at[i]) - height(&seen.at[0]);

		assert_int_equal(kind(&seen.at[i]), STACK_MAIN);
		if ((int64_t)apart < 0)
			apart = -apart;
		assert_true(apart == 0 || (apart > 3 * 512 / 8 && apart < 3 * 1024 / 8 * 2));
		assert_true(height(&seen.at[i]) * 8 < 64 << 10);
	}
	close(fd);
}

static void test_stacks_of_what_is_new(void **state)
{
	size_t before;
	int fd;

	(void)state;
	need_bpf();
	fd = open_faults(0, false);
	drain();
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	for (int i = 0; i < 400; i++)
		deep(5);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	drain();
	/* One because it is new; some to judge by, 3 of 400 in the mean. */
	before = 0;
	for (size_t i = 0; i < seen.nstacks; i++)
		before += !seen.stacks[i].judge;
	assert_true(before <= 1 && seen.nstacks >= 1 && seen.nstacks < 30);
	for (size_t i = 0; i < seen.nstacks; i++) {
		const struct driver_stack *s = &seen.stacks[i];

		assert_int_equal(s->base - s->r[4], 8 * (s->context.where & WHERE_HEIGHT));
		assert_true(s->size == s->base - s->r[4] || s->size >= DRIVER_SHORT);
		assert_int_equal(s->context.user, 0);
		/* It returns into the procedure that ran it. */
		assert_true(seen.word[i] - (uint64_t)deep < 4096 ||
			    (uint64_t)deep - seen.word[i] < 4096);
	}
	close(fd);
}

/* What user space asks for: where the frame returns to. */
static void test_callers(void **state)
{
	struct sample first;
	uint64_t caller;
	int fd;

	(void)state;
	need_bpf();
	fd = open_faults(0, false);
	drain();
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	deep(7);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	drain();
	assert_int_equal(seen.n, 1);
	first = seen.at[0];
	assert_int_equal(first.caller, 0);
	driver_ask(driver, &first, 8 * height(&first));
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	deep(7);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	drain();
	assert_int_equal(seen.n, 1);
	assert_int_equal(WHERE_CONTEXT(seen.at[0].where), WHERE_CONTEXT(first.where));
	/* The code of the fault is called by what is near. */
	caller = CALLER_ADDRESS(seen.at[0].caller);
	assert_true(caller - (uint64_t)deep < 4096 || (uint64_t)deep - caller < 4096);
	assert_int_equal(seen.at[0].caller >> CALLER_SHIFT, height(&first) & 0xffff);
	close(fd);
}

static void *on_thread(void *arg)
{
	(void)arg;
	deep(1);
	return NULL;
}

static void on_signal(int signal)
{
	(void)signal;
	deep(2);
}

static void expect_kind(enum stack_kind expected)
{
	drain();
	assert_true(seen.n >= 1);
	for (size_t i = 0; i < seen.n; i++) {
		assert_int_equal(kind(&seen.at[i]), expected);
		assert_true(height(&seen.at[i]) > 0 && height(&seen.at[i]) * 8 < 64 << 10);
	}
}

static void test_threads(void **state)
{
	pthread_t t;
	int fd;

	(void)state;
	need_bpf();
	fd = open_faults(0, true);
	drain();
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	pthread_create(&t, NULL, on_thread, NULL);
	pthread_join(t, NULL);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	expect_kind(STACK_THREAD);
	close(fd);
}

static void test_stacks_of_signals(void **state)
{
	struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	stack_t own = {.ss_size = 64 << 10}, none = {.ss_flags = SS_DISABLE};
	int fd;

	(void)state;
	need_bpf();
	own.ss_sp = malloc(own.ss_size);
	sigaltstack(&own, NULL);
	sigaction(SIGUSR1, &a, NULL);
	fd = open_faults(0, false);
	drain();
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	raise(SIGUSR1);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	expect_kind(STACK_SIGNAL);
	sigaltstack(&none, NULL);
	free(own.ss_sp);
	close(fd);
}

static int set_up(void **state)
{
	(void)state;
	assert_true(faults_init(&one, 1));
	driver_create(
		&(struct driver_options){
			.nevents = 1, .cpus = sysconf(_SC_NPROCESSORS_CONF), .paths = DRIVER_INFER},
		&driver, &why_not);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	driver_destroy(driver);
	faults_deinit(&one);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heights),
		cmocka_unit_test(test_stacks_of_what_is_new),
		cmocka_unit_test(test_callers),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_stacks_of_signals),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
