/* What copies of stacks may cost, who shares it, what becomes of samples without, and wakeups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "collect/driver.h"
#include "collect/driver_rig.h"
#include "collect/ring.h"
#include "collect/sampler.h"

/* Of the first event's samples at the place that faults: with their stacks, and in vain. */
struct taken {
	uint64_t stacks, held, samples;
	uint64_t near, caller; /* with their nearest callers; one of those */
};
static struct taken taken;

static void see(void *arg, const struct sample *s)
{
	(void)arg;
	if (s->pid != getpid() || faults_place(&faults, s->pc) != 0)
		return;
	taken.samples += s->count;
	taken.held += s->where & WHERE_HELD ? s->count : 0;
	taken.near += s->where & WHERE_NEAR ? s->count : 0;
	if (s->where & WHERE_NEAR)
		taken.caller = s->caller[0];
}

static void see_stack(void *arg, const struct driver_stack *s, const uint8_t *bytes)
{
	(void)arg, (void)bytes;
	taken.stacks += (pid_t)s->pid == getpid() && faults_place(&faults, s->rip) == 0;
}

/* What was taken is handed over, and what is left is given out again. */
static void drain(void)
{
	driver_swap(driver);
	ring_settle();
	taken = (struct taken){0};
	driver_collect(driver, UINT64_MAX, see, NULL);
	driver_stacks(driver, UINT64_MAX, see_stack, NULL);
}

static bool run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof set, &set) == 0;
}

__attribute__((noinline)) static void deep(int n)
{
	volatile char frame[64];

	frame[n % 64] = 0;
	if (n)
		deep(n - 1);
	else
		faults_run(&faults);
	frame[n % 64]++;
}

/* So many contexts that nobody has seen, from a depth on. */
static void run_new(int fd, int from, int n)
{
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	for (int i = 0; i < n; i++)
		deep(from + i);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
}

static void create(unsigned paths, uint32_t saved)
{
	struct driver_options o = {.nevents = 1,
		.cpus = (unsigned)sysconf(_SC_NPROCESSORS_CONF),
		.paths = paths,
		.rate = 1e9, /* so that hardly any is looked at at random */
		.budgeted = true,
		.stacks_saved = saved};

	driver_destroy(driver);
	driver = NULL;
	driver_create(&o, &driver, &why_not);
	need_bpf();
}

/* Nothing but what is new is taken, with this much left on a CPU. */
static uint32_t room_for(unsigned copies)
{
	return DRIVER_RESERVE + copies * DRIVER_COPY_COST;
}

static void keep_stack(void *arg, const struct driver_stack *s, const uint8_t *bytes)
{
	(void)bytes;
	if ((pid_t)s->pid == getpid() && faults_place(&faults, s->rip) == 0)
		*(struct driver_stack *)arg = *s;
}

static void test_held(void **state)
{
	int fd;

	(void)state;
	create(DRIVER_INFER, room_for(3));
	assert_true(run_on(0));
	fd = open_faults(0, false);
	run_new(fd, 10, 5);
	drain();
	assert_int_equal(taken.samples, 5);
	assert_int_equal(taken.stacks, 3);
	assert_int_equal(taken.held, 2);
	close(fd);
}

/* One that is held tells who called it, as far as the kernel knows how large frames are. */
static void test_held_tell_their_callers(void **state)
{
	struct stack_step step = {.words = 1, .what = STEP_EXACT, .fixed = true};
	struct driver_stack s = {0};
	uint64_t caller;
	int fd;

	(void)state;
	create(DRIVER_INFER, room_for(1));
	assert_true(run_on(0));
	fd = open_faults(0, false);
	run_new(fd, 10, 1);
	taken = (struct taken){0};
	driver_stacks(driver, UINT64_MAX, keep_stack, &s);
	run_new(fd, 20, 1);
	drain();
	assert_int_equal(taken.held, 1);
	assert_int_equal(taken.near, 0);
	step.address = step.row = s.rip;
	driver_teach(driver, &s, &step);
	run_new(fd, 30, 1);
	drain();
	assert_int_equal(taken.held, 1);
	assert_int_equal(taken.near, 1);
	caller = CALLER_ADDRESS(taken.caller);
	assert_true(caller - (uint64_t)deep < 4096 || (uint64_t)deep - caller < 4096);
	assert_int_equal(taken.caller >> CALLER_SHIFT, 1);
	close(fd);
}

/* Words of the frame of the code that faults, from the base. */
static uint32_t height_of(const struct driver_stack *s)
{
	return (uint32_t)((s->base - s->r[4]) / 8 - 1);
}

static void teach_calls(
	const struct driver_stack *s, uint64_t caller, uint32_t height, uint32_t apart, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		driver_teach(driver, s,
			&(struct stack_step){.address = caller,
				.words = height + i * apart,
				.what = STEP_CALLED});
}

static uint64_t first_word;
static void keep_word(void *arg, const struct driver_stack *s, const uint8_t *bytes)
{
	keep_stack(arg, s, bytes);
	if ((pid_t)s->pid == getpid() && faults_place(&faults, s->rip) == 0)
		memcpy(&first_word, bytes, sizeof first_word);
}

/* Where little is left, those give way whose caller was seen to call at their height. */
static void test_give_way(void **state)
{
	struct stack_step step = {.words = 1, .what = STEP_EXACT, .fixed = true};
	struct driver_stack a = {0}, b = {0};
	int fd;

	(void)state;
	create(DRIVER_INFER, room_for(150));
	assert_true(run_on(0));
	fd = open_faults(0, false);
	run_new(fd, 10, 1);
	driver_stacks(driver, UINT64_MAX, keep_stack, &a);
	run_new(fd, 11, 1);
	driver_stacks(driver, UINT64_MAX, keep_word, &b);
	step.address = step.row = a.rip;
	driver_teach(driver, &a, &step);
	teach_calls(&a, first_word, height_of(&a) + 10 * (height_of(&b) - height_of(&a)),
		height_of(&b) - height_of(&a), 64);
	drain();
	run_new(fd, 20, 64);
	drain();
	assert_int_equal(taken.samples, 64);
	assert_int_equal(taken.stacks + taken.held, 64);
	assert_int_equal(taken.near, taken.held);
	/* One in DRIVER_INSISTS is taken. */
	assert_in_range(taken.held, 32, 63);
	run_new(fd, 100, 16);
	drain();
	assert_int_equal(taken.stacks, 16);
	assert_int_equal(taken.held, 0);
	close(fd);
}

/* What is known is not held: nobody wanted its stack. */
static void test_known_are_not_held(void **state)
{
	int fd;

	(void)state;
	create(DRIVER_INFER, room_for(1));
	assert_true(run_on(0));
	fd = open_faults(0, false);
	run_new(fd, 10, 1);
	run_new(fd, 10, 1); /* nobody has answered, but that is another matter */
	drain();
	assert_int_equal(taken.samples, 2);
	assert_int_equal(taken.stacks, 1);
	assert_int_equal(taken.held, 0);
	close(fd);
}

/* Where all are looked at, those that would not have been say so. */
static uint64_t told_held;
static void see_judged(void *arg, const struct driver_stack *s, const uint8_t *bytes)
{
	see_stack(arg, s, bytes);
	if ((pid_t)s->pid == getpid() && faults_place(&faults, s->rip) == 0) {
		assert_int_equal(!!(s->context.where & WHERE_HELD), !s->learn);
		told_held += !s->learn;
	}
}

static void test_held_when_judged(void **state)
{
	int fd;

	(void)state;
	create(DRIVER_JUDGE, room_for(2));
	assert_true(run_on(0));
	fd = open_faults(0, false);
	run_new(fd, 10, 6);
	told_held = 0;
	taken = (struct taken){0};
	driver_stacks(driver, UINT64_MAX, see_judged, NULL);
	assert_int_equal(taken.stacks, 6);
	assert_int_equal(told_held, 4);
	close(fd);
}

/* What the other CPUs have not used is for who needs it. */
static void test_shared(void **state)
{
	unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_CONF), all = 4 * cpus, more = 0;
	int fd;

	(void)state;
	create(DRIVER_INFER, room_for(4));
	if (cpus < 2 || !run_on(1) || !run_on(0)) {
		print_message("skipped: there is one CPU\n");
		skip();
	}
	fd = open_faults(0, false);
	run_new(fd, 2, 10);
	drain();
	assert_int_equal(taken.stacks, 4);
	assert_int_equal(taken.held, 6);
	more = (all - 4) / cpus;
	run_new(fd, 14, 10);
	drain();
	assert_int_equal(taken.stacks, more);
	/* The other one has lent it. */
	more = (all - 4 - more) / cpus;
	assert_true(run_on(1));
	run_new(fd, 26, 10);
	drain();
	assert_int_equal(taken.stacks, more);
	close(fd);
}

/* As time passes there is more; not more than may be saved up. */
static void test_given_out(void **state)
{
	struct driver_options o = {.nevents = 1,
		.cpus = (unsigned)sysconf(_SC_NPROCESSORS_CONF),
		.paths = DRIVER_INFER,
		.rate = 1e9,
		.budgeted = true,
		.stacks_saved = room_for(4),
		.stacks_a_second = 1000 * room_for(4)};
	int fd;

	(void)state;
	driver_destroy(driver);
	driver = NULL;
	driver_create(&o, &driver, &why_not);
	need_bpf();
	assert_true(run_on(0));
	fd = open_faults(0, false);
	for (int i = 0; i < 3; i++) {
		usleep(5000);
		drain();
		run_new(fd, 10 + 20 * i, 10);
		driver_swap(driver);
		ring_settle();
		taken = (struct taken){0};
		driver_collect(driver, UINT64_MAX, see, NULL);
		assert_int_equal(taken.held, 6);
	}
	close(fd);
}

static bool is_woken(void)
{
	struct pollfd p = {.fd = driver_fd(driver), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Copies of what was copied before are in vain: after some, user space is called to answer. */
static void test_wakeup(void **state)
{
	int fd;

	(void)state;
	create(DRIVER_INFER, DRIVER_AGAIN + 100 * DRIVER_COPY_COST);
	assert_true(run_on(0));
	fd = open_faults(0, false);
	drain();
	assert_false(is_woken());
	/* New ones can wait. */
	run_new(fd, 10, 2 * DRIVER_HURRY);
	assert_false(is_woken());
	for (int i = 1; i < DRIVER_HURRY; i++)
		run_new(fd, 10, 1);
	assert_false(is_woken());
	run_new(fd, 10, 1);
	assert_true(is_woken());
	drain();
	assert_int_equal(taken.stacks, 3 * DRIVER_HURRY);
	assert_false(is_woken());
	close(fd);
}

/* Stacks that are younger than what is asked for wait; who has some is in a hurry. */
static void test_young_stacks_hurry(void **state)
{
	int fd;

	(void)state;
	create(DRIVER_INFER, room_for(8));
	assert_true(run_on(0));
	fd = open_faults(0, false);
	run_new(fd, 10, 2);
	taken = (struct taken){0};
	driver_stacks(driver, 0, see_stack, NULL);
	assert_int_equal(taken.stacks, 0);
	assert_true(driver_hurries(driver));
	driver_stacks(driver, UINT64_MAX, see_stack, NULL);
	assert_int_equal(taken.stacks, 2);
	assert_false(driver_hurries(driver));
	close(fd);
}

static int set_up(void **state)
{
	(void)state;
	return faults_init(&faults, 1) ? 0 : -1;
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
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_held_tell_their_callers),
		cmocka_unit_test(test_give_way),
		cmocka_unit_test(test_known_are_not_held),
		cmocka_unit_test(test_held_when_judged),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_given_out),
		cmocka_unit_test(test_wakeup),
		cmocka_unit_test(test_young_stacks_hurry),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
