/*
 * Which memory the interpreter in the interrupt reads: RAM of the program, however it is mapped,
 * and what it finds there is right; never what a device or the kernel lends, which it calls unknown
 * and goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "collect/shadow_rig.h"

enum { LOADS = 100, PAGE = 4096, HUGE_PAGE = 2 << 20 };
#define WORD 0x1122334455667788ull

/* One word, and what the interpreter said of it. */
struct look {
	const volatile void *word;
	uint64_t loads, known, other;   /* other: not the value, or not from there */
	uint64_t bursts, wrong, stayed; /* stayed: bursts that ended at the load */
};

static struct rig rig;
static struct look look;
static int kernel_log = -1;

static void take_step(void *arg, const struct interp *m)
{
	const struct interp_effect *e = &m->effect;
	struct look *l = arg;
	uint64_t there;

	if (!rig_at(e->ip, reader_load))
		return;
	memcpy(&there, (const void *)l->word, sizeof there);
	l->loads++;
	l->known += (e->has & INTERP_HAS_VALUE) != 0;
	l->other += e->address != (uintptr_t)l->word ||
		    (e->has & INTERP_HAS_VALUE && e->value != there);
}

static void take_burst(void *arg, const struct shadow_burst *b, const uint64_t *words)
{
	struct look *l = arg;

	if (!b->inputs || !rig_inside(words[16], reader_load, reader_end))
		return;
	l->bursts++;
	l->wrong += !burst_replay(b, words, &rig.machine, take_step, l);
	l->stayed +=
		b->stop != INTERP_DONE && b->stop != INTERP_TIME && rig_at(b->end, reader_load);
}

static int open_rig(void **state)
{
	(void)state;
	const struct shadow_options o = {
		.values = true, .steps = 60, .skip = 8, .share = 0.5, .user = true};

	kernel_log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (kernel_log >= 0)
		lseek(kernel_log, 0, SEEK_END);
	if (!rig_open(&rig, &o, 1, take_burst, &look))
		rig.s = NULL;
	return rig.s || geteuid() != 0 ? 0 : -1;
}

static int close_rig(void **state)
{
	(void)state;
	struct sampler_statistics s;

	if (rig.s)
		rig_close(&rig, &s);
	if (kernel_log >= 0)
		close(kernel_log);
	return 0;
}

static void need_rig(void)
{
	if (!rig.s) {
		print_message("needs root: the interpreter cannot be had\n");
		skip();
	}
	rig.opened = io_clock_ns(CLOCK_MONOTONIC);
}

/* The interpreter looks at the loads of a word until it saw enough. */
static void look_at(const volatile void *word)
{
	sampler_drain(rig.s, &rig.sink); /* what is left of the last test */
	look = (struct look){.word = word};
	while (look.loads < LOADS && rig_patient(&rig)) {
		reader_run(word, 20000000);
		sampler_drain(rig.s, &rig.sink);
	}
	assert_true(look.loads >= LOADS);
	assert_int_equal(look.wrong, 0);
	assert_int_equal(look.other, 0);
	assert_int_equal(look.stayed, 0);
}

static void expect_known(const volatile void *word)
{
	look_at(word);
	assert_int_equal(look.known, look.loads);
}

static void expect_unknown(const volatile void *word)
{
	look_at(word);
	assert_int_equal(look.known, 0);
}

static void *map(size_t size, int flags, int fd)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* ---- what may be read ---- */

static void test_anonymous(void **state)
{
	(void)state;
	need_rig();
	uint64_t *p = map(PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	p[5] = WORD;
	expect_known(p + 5);
	mprotect(p, PAGE, PROT_READ);
	expect_known(p + 5);
	munmap(p, PAGE);
}

/* The kernel gives out a large page or does not; both are read, far from its beginning too. */
static void test_large_pages(void **state)
{
	(void)state;
	need_rig();
	char *p = map(2 * HUGE_PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	char *start = (char *)(((uintptr_t)p + HUGE_PAGE - 1) & -(uintptr_t)HUGE_PAGE);
	uint64_t *last = (uint64_t *)(start + HUGE_PAGE - 8);

	madvise(start, HUGE_PAGE, MADV_HUGEPAGE);
	for (size_t i = 0; i < HUGE_PAGE; i += 8)
		*(uint64_t *)(start + i) = WORD + i;
	expect_known(start + 5 * PAGE + 16);
	expect_known(last);
	munmap(p, 2 * HUGE_PAGE);
}

static void test_files(void **state)
{
	(void)state;
	need_rig();
	int fd = memfd_create("words", MFD_CLOEXEC);
	uint64_t words[2] = {1, WORD};

	assert_int_equal(write(fd, words, sizeof words), sizeof words);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	uint64_t *shared = map(PAGE, MAP_SHARED, fd), *private = map(PAGE, MAP_PRIVATE, fd);
	expect_known(shared + 1);
	private[1] = 42; /* a copy of the page */
	expect_known(private + 1);
	assert_int_equal(shared[1], WORD);
	munmap(shared, PAGE);
	munmap(private, PAGE);
	close(fd);
}

/* Pages are remembered from burst to burst, but not when others have come in their place. */
static void test_changed(void **state)
{
	(void)state;
	need_rig();
	int fd = memfd_create("words", MFD_CLOEXEC);
	uint64_t word = WORD;

	assert_int_equal(write(fd, &word, sizeof word), sizeof word);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	uint64_t *p = map(PAGE, MAP_PRIVATE, fd);
	expect_known(p);
	*p = 42; /* a copy of the page */
	expect_known(p);
	assert_ptr_equal(mmap(p, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0), p);
	expect_known(p);
	assert_int_equal(*p, WORD);
	munmap(p, PAGE);
	close(fd);
}

/* Code, constants, the stack. */
static void test_program(void **state)
{
	(void)state;
	need_rig();
	static const uint64_t constant = WORD;
	volatile uint64_t local = WORD + 1;

	expect_known(&constant);
	expect_known(&local);
	expect_known((const void *)((uintptr_t)reader_end & ~7ul));
}

/* After a fork pages are shared until somebody writes. */
static void test_forked(void **state)
{
	(void)state;
	need_rig();
	uint64_t *p = map(PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	pid_t child;

	*p = WORD;
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	expect_known(p);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	munmap(p, PAGE);
}

/* Across the end of a page: what is behind it is there, or all of it is unknown. */
static void test_across_pages(void **state)
{
	(void)state;
	need_rig();
	char *p = map(2 * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	uint64_t word = WORD;

	memcpy(p + PAGE - 3, &word, sizeof word);
	expect_known(p + PAGE - 3);
	munmap(p, 2 * PAGE);
}

/* The one page of zeros that all share is special to the kernel: unknown, or what it is. */
static void test_zeros(void **state)
{
	(void)state;
	need_rig();
	uint64_t *p = map(PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	look_at(p);
	munmap(p, PAGE);
}

static void test_map_of_bpf(void **state)
{
	(void)state;
	need_rig();
	LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "words", 4, PAGE, 1, &o);

	assert_true(fd >= 0);
	uint64_t *p = map(PAGE, MAP_SHARED, fd);
	p[0] = WORD;
	look_at(p);
	munmap(p, PAGE);
	close(fd);
}

/* ---- what may not ---- */

/* The ring of a perf event is lent by the kernel, page frame by page frame. */
static void test_perf_ring(void **state)
{
	(void)state;
	need_rig();
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof attr,
		.disabled = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	assert_true(fd >= 0);
	char *p = map(2 * PAGE, MAP_SHARED, fd);
	expect_unknown(p);
	expect_unknown(p + PAGE + 64);
	munmap(p, 2 * PAGE);
	close(fd);
}

/* The kernel's clock data. */
static void test_vvar(void **state)
{
	(void)state;
	need_rig();
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t start = 0;
	char line[512];

	while (!start && fgets(line, sizeof line, maps)) {
		if (strstr(line, "[vvar]"))
			start = strtoull(line, NULL, 16);
	}
	fclose(maps);
	if (!start) {
		print_message("this kernel shows no [vvar]\n");
		skip();
	}
	expect_unknown((const void *)(uintptr_t)start);
}

/* Firmware through /dev/mem: read by nobody but who maps it. */
static void test_dev_mem(void **state)
{
	(void)state;
	need_rig();
	int fd = open("/dev/mem", O_RDONLY | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0xf0000);

	if (p == MAP_FAILED) {
		print_message("/dev/mem cannot be mapped here: %s\n", strerror(errno));
		if (fd >= 0)
			close(fd);
		skip();
	}
	expect_unknown(p);
	munmap(p, PAGE);
	close(fd);
}

/* After all of the above. */
static void test_kernel_log(void **state)
{
	(void)state;
	static const char *const bad[] = {"BUG", "Oops", "WARNING:", "general protection",
		"unable to handle", "Bad page", "hung"};
	char text[8192];
	ssize_t n;

	need_rig();
	if (kernel_log < 0) {
		print_message("the kernel's log cannot be read\n");
		skip();
	}
	for (;;) {
		n = read(kernel_log, text, sizeof text - 1);
		if (n < 0 && errno == EPIPE)
			continue; /* some of it is gone already */
		if (n <= 0)
			break;
		text[n] = 0;
		for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
			if (strstr(text, bad[i]))
				fail_msg("the kernel complains: %s", text);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_anonymous),
		cmocka_unit_test(test_large_pages),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_program),
		cmocka_unit_test(test_forked),
		cmocka_unit_test(test_across_pages),
		cmocka_unit_test(test_zeros),
		cmocka_unit_test(test_map_of_bpf),
		cmocka_unit_test(test_perf_ring),
		cmocka_unit_test(test_vvar),
		cmocka_unit_test(test_dev_mem),
		cmocka_unit_test(test_kernel_log),
	};

	return cmocka_run_group_tests(tests, open_rig, close_rig);
}
