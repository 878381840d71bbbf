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

static size_t run_deep(int fd, int depth, int n)
{
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	for (int i = 0; i < n; i++)
		deep(depth);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	drain();
	return seen.nstacks;
}

static void test_stacks_of_what_is_new(void **state)
{
	int fd;

	(void)state;
	need_bpf();
	fd = open_faults(0, false);
	drain();
	assert_int_equal(run_deep(fd, 5, 1), 1);
	assert_false(seen.stacks[0].judge);
	for (size_t i = 0; i < seen.nstacks; i++) {
		const struct driver_stack *s = &seen.stacks[i];

		assert_int_equal(s->base - s->r[4], 8 * (s->context.where & WHERE_HEIGHT));
		assert_true(s->size == s->base - s->r[4] || s->size >= DRIVER_SHORT);
		assert_int_equal(s->context.user, 0);
		/* It returns into the procedure that ran it. */
		assert_true(seen.word[i] - (uint64_t)deep < 4096 ||
			    (uint64_t)deep - seen.word[i] < 4096);
	}
	driver_answer(driver, &seen.stacks[0], NULL, 0);
	/* Some to judge by, 3 of 400 in the mean. */
	assert_true(run_deep(fd, 5, 400) < 30);
	close(fd);
}

/* Stacks of a context are copied until somebody has said what it should tell. */
static void test_stacks_until_answered(void **state)
{
	uint64_t caller;
	int fd;

	(void)state;
	need_bpf();
	fd = open_faults(0, false);
	drain();
	assert_true(run_deep(fd, 11, 20) == 20);
	/* Nothing: then only some are looked at. */
	driver_answer(driver, &seen.stacks[0], NULL, 0);
	assert_true(run_deep(fd, 11, 20) < 10);
	/* Something that no sample has told: one more. */
	assert_true(run_deep(fd, 12, 1) == 1);
	driver_ask(driver, &(struct sample){.where = seen.stacks[0].context.where}, 1);
	assert_true(run_deep(fd, 12, 1) == 1);
	caller = CALLER_ADDRESS(seen.stacks[0].context.caller[0]);
	assert_true(caller - (uint64_t)deep < 4096 || (uint64_t)deep - caller < 4096);
	assert_true(run_deep(fd, 12, 20) < 10);
	/* What the stack shows has been told. */
	assert_true(run_deep(fd, 13, 1) == 1);
	driver_answer(driver, &seen.stacks[0], (const uint8_t *)&seen.word[0], 1);
	assert_true(run_deep(fd, 13, 20) < 10);
	close(fd);
}

static void teach(const struct stack_step *step, unsigned times)
{
	while (times--)
		driver_teach(driver, &seen.stacks[0], step);
}

/* Where all return addresses are known, they are told instead of a copy. */
static void test_trails(void **state)
{
	struct stack_step first = {.words = 1, .what = STEP_EXACT, .fixed = true};
	struct stack_step last = {.words = 5, .what = STEP_RETURN, .root = true};
	int fd;

	(void)state;
	need_bpf();
	fd = open_faults(0, false);
	drain();
	assert_int_equal(run_deep(fd, 20, 1), 1);
	first.address = first.row = seen.stacks[0].rip;
	last.address = seen.word[0];
	last.row = last.address - 1;
	teach(&first, 1);
	/* Not all frames need have one size: it is believed when it was so often enough, */
	teach(&last, STEP_ENOUGH - 1);
	seen.stacks[0].program++;
	teach(&last, 1); /* in the same program. */
	assert_int_equal(run_deep(fd, 21, 1), 1);
	assert_int_equal(seen.stacks[0].trail, 0);
	teach(&last, 1);
	assert_int_equal(run_deep(fd, 22, 1), 1);
	assert_int_equal(seen.stacks[0].trail, 1);
	assert_int_equal(seen.stacks[0].size, 16);
	assert_int_equal(seen.word[0], last.address);
	last.words++;
	last.fixed = true;
	teach(&last, 1);
	assert_int_equal(run_deep(fd, 23, 1), 1);
	assert_int_equal(seen.stacks[0].trail, 0);
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
	assert_int_equal(first.caller[0], 0);
	driver_ask(driver, &first, 1);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	deep(7);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	drain();
	assert_int_equal(seen.n, 1);
	assert_int_equal(WHERE_CONTEXT(seen.at[0].where), WHERE_CONTEXT(first.where));
	/* The code of the fault is called by what is near. */
	caller = CALLER_ADDRESS(seen.at[0].caller[0]);
	assert_true(caller - (uint64_t)deep < 4096 || (uint64_t)deep - caller < 4096);
	assert_int_equal(seen.at[0].caller[0] >> CALLER_SHIFT, 1);
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
		cmocka_unit_test(test_stacks_until_answered),
		cmocka_unit_test(test_trails),
		cmocka_unit_test(test_callers),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_stacks_of_signals),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
