#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "collect/counter.h"
#include "collect/faults.h"
#include "collect/record.h"
#include "collect/ring.h"
#include "collect/sampler.h"
#include "collect/sampler_places.h"

enum { PLACES = 2000 };

/* ---- the books, with events that are not there ---- */

static struct counter_reading fake_now;
static uint64_t fake_period;

static int fake_read(int fd, struct counter_reading *out)
{
	(void)fd;
	*out = fake_now;
	return 0;
}

static int fake_set_period(int fd, uint64_t period)
{
	(void)fd;
	fake_period = period;
	return 0;
}

static const struct counter_source fake = {NULL, fake_read, fake_set_period};

static struct counter fake_counter(uint64_t mean)
{
	struct counter c = {.fd = 1, .copies = 1, .mean = mean, .period = mean};

	fake_now = (struct counter_reading){.id = 9};
	assert_int_equal(counter_begin(&c, &fake), 0);
	assert_int_equal(c.id, 9);
	return c;
}

static void advance(uint64_t count, uint64_t enabled, uint64_t running)
{
	fake_now.count += count;
	fake_now.enabled += enabled;
	fake_now.running += running;
}

/* Four events on two counters: each runs half the time, and what it counted stands for twice it. */
static void test_multiplexing(void **state)
{
	(void)state;
	struct counter c[4];
	struct counter_reading stand[4];
	struct counter_books books[4] = {0};

	for (int i = 0; i < 4; i++)
		c[i] = fake_counter(1000 * (i + 1));
	for (int i = 0; i < 4; i++)
		stand[i] = c[i].last;
	for (int slice = 0; slice < 100; slice++) {
		for (int i = 0; i < 4; i++) {
			bool runs = (slice + i) % 4 < 2;
			fake_now = stand[i];
			advance(runs ? 12000 : 0, 1000000, runs ? 1000000 : 0);
			stand[i] = fake_now;
			counter_update(&c[i], &fake, &books[i]);
		}
	}
	for (int i = 0; i < 4; i++) {
		struct sampler_account a;
		uint64_t truth = 100 * 12000; /* without multiplexing */
		counter_account(&books[i], &c[i], 600000 / c[i].mean, &a);
		assert_float_equal(a.scale, 2, 1e-9);
		assert_float_equal(a.expected, 600000 / c[i].mean, 1e-9);
		assert_float_equal(a.period, c[i].mean, 1e-9);
		assert_float_equal(a.samples * a.period * a.scale, truth, 1e-6);
	}
}

/* An event on each of four CPUs that follow one task: not running elsewhere is no multiplexing. */
static void test_copies_are_not_multiplexing(void **state)
{
	(void)state;
	struct counter_books books = {0};
	struct sampler_account a;
	struct counter c = fake_counter(1000);

	c.copies = 4;
	for (int i = 0; i < 4; i++) {
		struct counter one = fake_counter(1000);
		advance(i ? 0 : 5000, 700, i ? 0 : 700);
		counter_update(&one, &fake, &books);
	}
	counter_account(&books, &c, 5, &a);
	assert_float_equal(a.scale, 1, 1e-9);
	assert_float_equal(a.expected, 5, 1e-9);
}

/* Setting a period restarts the interval: what was on its way to the next sample is gone. */
static void test_redraw(void **state)
{
	(void)state;
	struct counter c = fake_counter(1600);
	struct counter_books books = {0};
	struct period_source draw = {7};
	struct sampler_account a;
	uint64_t samples = 0, counted = 0, draws = 0, before;

	for (int i = 0; i < 1000; i++) {
		uint64_t stretch = 300000 + i * 37; /* 128 samples and a half at least */
		before = c.period;
		samples += stretch / c.period;
		counted += stretch;
		advance(stretch / 3, 10, 10);
		counter_redraw(&c, &fake, &draw, &books);
		assert_int_equal(c.period, before); /* too early */
		advance(stretch - stretch / 3, 10, 10);
		counter_redraw(&c, &fake, &draw, &books);
		assert_int_equal(c.period, fake_period);
		assert_in_range(c.period, 1500, 1700);
		draws += c.period != before;
	}
	assert_true(draws > 950);
	counter_account(&books, &c, samples, &a);
	assert_float_equal(a.expected, samples, 1e-6);
	assert_float_equal(a.period, (double)counted / samples, 1e-6);
	assert_float_equal(a.scale, 1, 1e-9);
}

/* With children the fraction counts too, and draws stay close to the mean. */
static void test_shared(void **state)
{
	(void)state;
	struct counter c = fake_counter(64000);
	struct counter_books books = {0};
	struct period_source draw = {7};

	c.shared = true;
	advance(96000, 10, 10);
	counter_redraw(&c, &fake, &draw, &books);
	assert_float_equal(books.expected, 1.5, 1e-9);
	for (int i = 0; i < 100; i++) {
		advance(64000 * 130, 10, 10);
		counter_redraw(&c, &fake, &draw, &books);
		assert_in_range(c.period, 63000, 65000);
	}
}

/* A clock stands still while throttled, its running time does not. */
static void test_throttled_clock(void **state)
{
	(void)state;
	struct counter c = fake_counter(100000);
	struct counter_books books = {0};
	struct sampler_account a;

	c.is_clock = c.software = true;
	counter_throttle(&c, 5000000);
	counter_throttle(&c, 5500000);                /* it already was */
	counter_throttled_until(&c, 7000000, &books); /* a drain in between */
	counter_unthrottle(&c, 9000000, &books);
	counter_unthrottle(&c, 9500000, &books);
	advance(6000000, 10000000, 10000000);
	counter_update(&c, &fake, &books);
	counter_account(&books, &c, 60, &a);
	assert_int_equal(a.throttled, 40);
	assert_float_equal(a.expected, 100, 1e-9);
	assert_int_equal(a.samples + a.throttled, 100);
	assert_float_equal(a.period, 100000, 1e-9);
}

/* Another event is taken to have gone on as it did before. */
static void test_throttled_event(void **state)
{
	(void)state;
	struct counter c = fake_counter(10);
	struct counter_books books = {0};
	struct sampler_account a;

	advance(1000, 1000000, 1000000);
	counter_update(&c, &fake, &books);
	counter_throttle(&c, 1000000);
	counter_unthrottle(&c, 1500000, &books);
	counter_account(&books, &c, 100, &a);
	assert_int_equal(a.throttled, 50);
	assert_float_equal(a.expected, 150, 1e-9);
	assert_float_equal(a.period, 10, 1e-9);
}

/* The kernel holds a rate itself: the mean period comes from the count. */
static void test_adaptive(void **state)
{
	(void)state;
	struct counter c = fake_counter(4000);
	struct counter_books books = {0};
	struct period_source draw = {7};
	struct sampler_account a;

	c.adaptive = true;
	fake_period = 0;
	advance(1000000, 1000000, 1000000);
	fake_now.lost = 50;
	counter_redraw(&c, &fake, &draw, &books);
	assert_int_equal(fake_period, 0);
	counter_account(&books, &c, 200, &a);
	assert_float_equal(a.period, 4000, 1e-9);
	assert_float_equal(a.expected, 250, 1e-9);
	assert_int_equal(a.lost, 50);
	counter_account(&(struct counter_books){0}, &c, 0, &a);
	assert_float_equal(a.period, 0, 1e-9);
}

/* ---- small parts ---- */

static void test_cpu_lists(void **state)
{
	(void)state;
	static const char *const bad[] = {"", "x", "1-", "3-1", "1,,2", "0-99999999", "1;2", "-1"};
	struct sampler_places p = {.cgroup = -1};
	static const int expected[] = {0, 1, 2, 5, 7, 8};

	assert_int_equal(sampler_parse_cpus("0-2,5,7-8", &p), 0);
	assert_int_equal(p.cpus.n, 6);
	assert_memory_equal(p.cpus.p, expected, sizeof expected);
	sampler_places_deinit(&p);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(sampler_parse_cpus(bad[i], &p), -EINVAL);
		sampler_places_deinit(&p);
	}
}

/* ---- with the kernel ---- */

static struct faults faults;

struct seen {
	uint32_t counts[PLACES];
	uint64_t total, samples, last_record, last_sample, disorder, late;
	pid_t pid;
	size_t mmaps, execs, forks, exits;
	uint64_t exec_time;
	uint64_t lo, hi; /* samples in this range of addresses are told apart by the exec */
	size_t before_exec, after_exec;
};

static void see_record(void *arg, const struct record *r)
{
	struct seen *s = arg;

	s->disorder += r->time < s->last_record;
	s->last_record = r->time;
	s->late += r->time < s->last_sample;
	s->mmaps += r->kind == RECORD_MMAP && r->pid == s->pid;
	if (r->kind == RECORD_COMM && r->comm.exec && r->pid == s->pid) {
		s->execs++;
		s->exec_time = r->time;
	}
	s->forks += r->kind == RECORD_FORK;
	s->exits += r->kind == RECORD_EXIT && r->tid == s->pid;
}

static void see_sample(void *arg, const struct sample *s)
{
	struct seen *seen = arg;
	long place = faults_place(&faults, s->pc);

	if (s->time > seen->last_sample)
		seen->last_sample = s->time;
	if (s->pid != seen->pid)
		return;
	seen->samples += s->count;
	if (place >= 0) {
		seen->counts[place] += s->count;
		seen->total += s->count;
	}
	if (s->pc < seen->lo || s->pc >= seen->hi)
		return;
	if (!seen->exec_time || s->time < seen->exec_time)
		seen->before_exec += s->count;
	else
		seen->after_exec += s->count;
}

static void drain(struct sampler *s, struct seen *seen)
{
	struct sampler_sink sink = {.record = see_record, .sample = see_sample, .arg = seen};

	sampler_drain(s, &sink);
	assert_int_equal(seen->disorder, 0);
	assert_int_equal(seen->late, 0);
}

/* Every page fault of some process is a sample; NULL and a message where that cannot be. */
static struct sampler *sample_faults(enum sampler_how how, pid_t pid)
{
	static struct event ev;
	struct sampler_options o = {
		.target = {.pids = &pid, .npids = 1, .inherit = true},
		.events = &ev,
		.nevents = 1,
		.period = 1,
		.how = how,
	};
	struct sampler *s = NULL;
	struct err e = {0};

	ev = faults_event();
	if (sampler_create(&o, &s, &e) < 0) {
		assert_true(*e.text);
		print_message("skipped: %s\n", e.text);
		skip();
	}
	assert_int_equal(sampler_uses_bpf(s), how == SAMPLER_BPF);
	assert_int_equal(!*sampler_why_not_bpf(s), how == SAMPLER_BPF);
	return s;
}

static void check_all_arrive(enum sampler_how how)
{
	static struct seen seen;
	struct sampler *s = sample_faults(how, getpid());
	struct sampler_sink sink = {.record = see_record, .sample = see_sample, .arg = &seen};
	struct sampler_account a;

	seen = (struct seen){.pid = getpid()};
	assert_int_equal(sampler_enable(s, NULL), 0);
	for (int i = 0; i < 4; i++) {
		faults_run(&faults);
		sampler_service(s, &sink);
	}
	drain(s, &seen);
	faults_run(&faults);
	sampler_disable(s);
	drain(s, &seen);
	assert_int_equal(seen.total, 5 * PLACES);
	for (int i = 0; i < PLACES; i++)
		assert_int_equal(seen.counts[i], 5);
	sampler_account(s, 0, &a);
	assert_int_equal(a.samples, seen.samples);
	assert_int_equal(a.lost, 0);
	assert_int_equal(a.throttled, 0);
	assert_float_equal(a.expected, a.samples, 1e-9);
	assert_float_equal(a.period, 1, 1e-9);
	assert_float_equal(a.scale, 1, 1e-9);
	sampler_account(s, 0, &a); /* since the last call */
	assert_int_equal(a.samples, 0);
	assert_float_equal(a.expected, 0, 1e-9);
	sampler_destroy(s);
}

static void test_all_arrive_by_bpf(void **state)
{
	(void)state;
	check_all_arrive(SAMPLER_BPF);
}

static void test_all_arrive_by_ring(void **state)
{
	(void)state;
	check_all_arrive(SAMPLER_RING);
}

/* More samples than a ring holds, and nobody reads: delivered and lost make up the whole. */
static void test_lost_in_ring(void **state)
{
	(void)state;
	static struct seen seen;
	struct sampler *s = sample_faults(SAMPLER_RING, getpid());
	struct sampler_account a;
	struct pollfd p = {.fd = sampler_fd(s), .events = POLLIN};

	seen = (struct seen){.pid = getpid()};
	assert_int_equal(poll(&p, 1, 0), 0);
	sampler_enable(s, NULL);
	for (int i = 0; i < 40; i++)
		faults_run(&faults);
	assert_int_equal(poll(&p, 1, 0), 1); /* it did ask for service */
	sampler_disable(s);
	drain(s, &seen);
	sampler_account(s, 0, &a);
	assert_true(a.lost > 0);
	assert_true(a.samples > 0);
	assert_int_equal(a.samples + a.lost, (uint64_t)a.expected);
	assert_true(a.expected >= 40 * PLACES);
	sampler_destroy(s);
}

static volatile char page[3 * 4096];

static __attribute__((noinline)) void touch(void)
{
	char *p = (char *)(((uintptr_t)page + 4095) & ~4095ul);

	madvise(p, 4096, MADV_DONTNEED);
	*(volatile char *)p = 1;
}

/* A child that faults, executes itself and faults at the same place again, all within one drain. */
static void check_exec(enum sampler_how how)
{
	static struct seen seen;
	int go[2], status;
	struct sampler *s;
	struct err e = {0};
	pid_t child;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		char c;
		close(go[1]);
		if (read(go[0], &c, 1) != 1)
			_exit(2);
		touch();
		execl("/proc/self/exe", "test_sampler", "touch", NULL);
		_exit(1);
	}
	close(go[0]);
	s = sample_faults(how, child);
	assert_int_equal(sampler_enable(s, &e), 0);
	assert_int_equal(write(go[1], "x", 1), 1);
	close(go[1]);
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);

	seen = (struct seen){.pid = child, .lo = (uintptr_t)touch, .hi = (uintptr_t)touch + 256};
	drain(s, &seen);
	assert_int_equal(seen.execs, 1);
	assert_int_equal(seen.exits, 1);
	assert_true(seen.mmaps >= 2); /* the program and its interpreter at least */
	assert_true(seen.before_exec > 0);
	assert_true(seen.after_exec > 0);
	sampler_destroy(s);
}

static void test_exec_by_bpf(void **state)
{
	(void)state;
	check_exec(SAMPLER_BPF);
}

static void test_exec_by_ring(void **state)
{
	(void)state;
	check_exec(SAMPLER_RING);
}

/* Children inherit the event and the program with it; the parent's count includes theirs. */
static void check_children(enum sampler_how how)
{
	static struct seen seen;
	struct sampler *s = sample_faults(how, getpid());
	struct sampler_account a;
	uint64_t total = 0;

	sampler_enable(s, NULL);
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();
		if (child == 0) {
			faults_run(&faults);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		seen = (struct seen){.pid = child};
		drain(s, &seen);
		total += seen.total;
		assert_int_equal(seen.forks, 1);
	}
	sampler_disable(s);
	assert_int_equal(total, 3 * PLACES);
	drain(s, &seen);
	sampler_account(s, 0, &a);
	assert_int_equal(a.lost, 0);
	assert_float_equal(a.expected, a.samples, 0.5);
	sampler_destroy(s);
}

static void test_children_by_bpf(void **state)
{
	(void)state;
	check_children(SAMPLER_BPF);
}

static void test_children_by_ring(void **state)
{
	(void)state;
	check_children(SAMPLER_RING);
}

/* ---- refusals ---- */

static int try_target(struct sampler_target target, struct err *e)
{
	struct event ev = faults_event();
	struct sampler_options o = {
		.target = target, .events = &ev, .nevents = 1, .period = 100, .how = SAMPLER_RING};
	struct sampler *s = NULL;
	int r = sampler_create(&o, &s, e);

	if (r == 0)
		sampler_destroy(s);
	else
		assert_null(s);
	return r;
}

static void test_refusals(void **state)
{
	(void)state;
	pid_t none = 0x3fffffff, self = getpid();
	int cpu = 60000;
	struct err e = {0};
	struct sampler_options empty = {.target = {.all = true}};
	struct sampler *s;

	assert_int_equal(
		try_target((struct sampler_target){.pids = &none, .npids = 1}, &e), -ESRCH);
	assert_non_null(strstr(e.text, "no such process"));
	assert_int_equal(
		try_target((struct sampler_target){.tids = &none, .ntids = 1}, &e), -ESRCH);
	assert_int_equal(try_target((struct sampler_target){0}, &e), -EINVAL);
	assert_int_equal(
		try_target((struct sampler_target){.cgroup = "no/such/cgroup"}, &e) < 0, 1);
	assert_non_null(strstr(e.text, "cgroup"));
	assert_int_equal(try_target(
				 (struct sampler_target){
					 .tids = &self, .ntids = 1, .cpus = &cpu, .ncpus = 1},
				 &e) < 0,
		1);
	assert_non_null(strstr(e.text, "CPU 60000"));
	assert_int_equal(sampler_create(&empty, &s, &e), -EINVAL);
}

/* What another profiler of this process sees of a mapping. */
static uint16_t see_mapping(struct ring *ring)
{
	int fd = open("/bin/sh", O_RDONLY | O_CLOEXEC);
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	const struct perf_event_header *h;
	uint16_t misc = 0;
	size_t size, n = 0;

	close(fd);
	assert_ptr_not_equal(code, MAP_FAILED);
	munmap(code, 4096);
	while ((h = ring_next(ring, &size)))
		if (h->type == PERF_RECORD_MMAP2) {
			misc = h->misc;
			n++;
		}
	ring_done(ring);
	assert_int_equal(n, 1);
	return misc;
}

/* An event that wants build-ids would spoil the records of others (sampler_open.c). */
static void test_others_are_left_alone(void **state)
{
	(void)state;
	struct perf_event_attr attr = {.size = sizeof attr,
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap2 = 1,
		.exclude_kernel = 1};
	struct event ev;
	const struct sampler_options o = {
		.target = {.all = true}, .events = &ev, .nevents = 1, .rate = 10};
	struct sampler *s = NULL;
	struct ring ring;
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	assert_int_equal(event_parse("cpu-clock", &ev, NULL), 0);
	if (fd < 0 || ring_open(&ring, fd, 65536) < 0)
		skip();
	if (see_mapping(&ring) & PERF_RECORD_MISC_MMAP_BUILD_ID ||
		sampler_create(&o, &s, NULL) < 0) {
		ring_close(&ring);
		close(fd);
		skip(); /* somebody else on this machine does it, or we may not */
	}
	assert_int_equal(see_mapping(&ring) & PERF_RECORD_MISC_MMAP_BUILD_ID, 0);
	sampler_destroy(s);
	ring_close(&ring);
	close(fd);
}

/* The exit status says what an ordinary user met: 0 as it should be, else the number of the step.
 */
static int as_nobody(long paranoid)
{
	pid_t self, other = getppid();
	struct err e = {0};

	if (setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0)
		return 1;
	self = getpid();
	if (paranoid > 0 &&
		(try_target((struct sampler_target){.all = true}, &e) != -EACCES ||
			!strstr(e.text, "perf_event_paranoid") || !strstr(e.text, "CAP_PERFMON")))
		return 2;
	if (try_target((struct sampler_target){.pids = &other, .npids = 1}, &e) != -EACCES)
		return 3;
	if (paranoid <= 2 && try_target((struct sampler_target){.pids = &self, .npids = 1}, &e) < 0)
		return 4;
	if (paranoid > 2 &&
		(try_target((struct sampler_target){.pids = &self, .npids = 1}, &e) != -EACCES ||
			!strstr(e.text, "perf_event_paranoid")))
		return 5;
	return 0;
}

static void test_ordinary_user(void **state)
{
	(void)state;
	long paranoid = 0;
	int status;
	pid_t child;

	if (geteuid() != 0) {
		print_message("skipped: becoming an ordinary user takes root\n");
		skip();
	}
	io_read_long("/proc/sys/kernel/perf_event_paranoid", &paranoid);
	child = fork();
	if (child == 0)
		_exit(as_nobody(paranoid));
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* With perf_event_paranoid at 2 kernel mode is left out, and the sampler says so. */
static int clock_as_nobody(void)
{
	struct event ev = {.name = "cpu-clock",
		.attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK},
		.is_clock = true};
	pid_t self;
	struct sampler_options o = {
		.target = {.pids = &self, .npids = 1}, .events = &ev, .nevents = 1, .rate = 1000};
	struct sampler *s;
	struct sampler_account a;
	struct sampler_sink sink = {
		.record = see_record, .sample = see_sample, .arg = calloc(1, sizeof(struct seen))};

	if (setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0)
		return 1;
	self = getpid();
	if (sampler_create(&o, &s, NULL) < 0)
		return 2;
	if (!sampler_excludes_kernel(s))
		return 3;
	sampler_enable(s, NULL);
	while (io_clock_ns(CLOCK_PROCESS_CPUTIME_ID) < 50000000)
		continue;
	sampler_disable(s);
	sampler_drain(s, &sink);
	sampler_account(s, 0, &a);
	sampler_destroy(s);
	free(sink.arg);
	if (a.expected != 0) /* the clock counts kernel time too, so nobody knows */
		return 4;
	return a.samples > 0 && a.period > 900000 && a.period < 1100000 ? 0 : 5;
}

static void test_user_mode_only(void **state)
{
	(void)state;
	long paranoid = 0;
	int status;
	pid_t child;

	io_read_long("/proc/sys/kernel/perf_event_paranoid", &paranoid);
	if (geteuid() != 0 || paranoid != 2) {
		print_message("skipped: takes root, and perf_event_paranoid at 2\n");
		skip();
	}
	child = fork();
	if (child == 0)
		_exit(clock_as_nobody());
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int set_up(void **state)
{
	(void)state;
	return !faults_init(&faults, PLACES);
}

static int tear_down(void **state)
{
	(void)state;
	faults_deinit(&faults);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_multiplexing),
		cmocka_unit_test(test_copies_are_not_multiplexing),
		cmocka_unit_test(test_redraw),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_throttled_clock),
		cmocka_unit_test(test_throttled_event),
		cmocka_unit_test(test_adaptive),
		cmocka_unit_test(test_cpu_lists),
		cmocka_unit_test(test_all_arrive_by_bpf),
		cmocka_unit_test(test_all_arrive_by_ring),
		cmocka_unit_test(test_lost_in_ring),
		cmocka_unit_test(test_exec_by_bpf),
		cmocka_unit_test(test_exec_by_ring),
		cmocka_unit_test(test_children_by_bpf),
		cmocka_unit_test(test_children_by_ring),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_others_are_left_alone),
		cmocka_unit_test(test_ordinary_user),
		cmocka_unit_test(test_user_mode_only),
	};
	if (argc > 1) {
		touch();
		return 0;
	}
	/* Once more without random addresses, so that an exec finds its code where it was. */
	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE) && personality(ADDR_NO_RANDOMIZE) >= 0)
		execv("/proc/self/exe", argv);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
