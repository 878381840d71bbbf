#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/near.h"
#include "collect/cgroup.h"
#include "collect/image_cache.h"
#include "collect/only.h"
#include "collect/process.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/records.h"

/* What the names are of. */
__attribute__((noinline, noclone)) int only_test_wanted(int x);
__attribute__((noinline, noclone)) int only_test_other(int x);
int only_test_wanted(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3;
}

int only_test_other(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 5;
}

static struct cgroups *cgroups;
static struct process_table *processes;
static struct image_cache *images;
static struct only *only;
static struct process *self;
static uint64_t now;

static int set_up(void **state)
{
	(void)state;
	cgroups = cgroups_create(NULL);
	processes = process_table_create(cgroups, false);
	images = image_cache_create("", false);
	process_table_scan(processes, getpid());
	now = io_clock_ns(CLOCK_MONOTONIC);
	self = process_at(processes, getpid(), now);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	only_destroy(only);
	only = NULL;
	image_cache_destroy(images);
	process_table_destroy(processes);
	cgroups_destroy(cgroups);
	return 0;
}

static void ask(const char *first, const char *second)
{
	static const char *names[2];

	names[0] = first;
	names[1] = second;
	only_destroy(only);
	only = only_create(names, second ? 2 : 1, images, processes);
	assert_non_null(only);
}

static uint32_t place(const void *code, uint64_t *offset)
{
	uint64_t pc = (uintptr_t)code;
	const struct mapping *m = process_mapping(processes, self, pc, now);

	assert_non_null(m);
	*offset = pc - m->start + m->offset;
	return image_cache_of_file(images, processes, m->file);
}

static bool keeps(const void *code)
{
	uint64_t offset;
	uint32_t image = place(code, &offset);

	return only_keeps(only, image, offset);
}

static const void *wanted(void)
{
	return (const void *)(uintptr_t)&only_test_wanted;
}

static const void *other(void)
{
	return (const void *)(uintptr_t)&only_test_other;
}

/* In the C library, and in no sanitizer. */
static const void *foreign(void)
{
	return (const void *)(uintptr_t)&twalk;
}

static void assert_keeps(const char *name, bool of_wanted, bool of_other, bool of_foreign)
{
	ask(name, NULL);
	if (keeps(wanted()) != of_wanted || keeps(other()) != of_other ||
		keeps(foreign()) != of_foreign)
		fail_msg("--only %s", name);
}

/* ---- names ---- */

static void test_none(void **state)
{
	(void)state;
	assert_null(only_create(NULL, 0, images, processes));
	only_flushed(NULL);
}

static void test_check(void **state)
{
	struct err e = {0};

	(void)state;
	assert_int_equal(only_check("deflate", &e), 0);
	assert_int_equal(only_check("gzip!0x4330", &e), 0);
	assert_int_equal(only_check("", &e), -EINVAL);
	assert_int_equal(only_check("0x4330", &e), -EINVAL);
	assert_non_null(strstr(e.text, "0x4330"));
}

static void test_procedure(void **state)
{
	(void)state;
	assert_keeps("only_test_wanted", true, false, false);
	assert_true(keeps((const char *)wanted() + 1));
	assert_keeps("only_test_want", false, false, false);
	assert_keeps("only_test_*", true, true, false);
	assert_keeps("only_test_[vw]*", true, false, false);
	assert_keeps("nosuch", false, false, false);
}

static void test_image(void **state)
{
	_cleanup_free_ char *path = realpath("/proc/self/exe", NULL);
	_cleanup_free_ char *link = xasprintf("/tmp/culprit-only-%d", getpid());

	(void)state;
	assert_keeps("test_only", true, true, false);
	assert_keeps(path, true, true, false);
	assert_keeps("libc.so.6", false, false, true);
	assert_keeps("libc.so*", false, false, true);
	assert_int_equal(symlink(path, link), 0);
	ask(link, NULL);
	unlink(link);
	assert_true(keeps(wanted()));
}

static void test_pair(void **state)
{
	(void)state;
	assert_keeps("test_only!only_test_other", false, true, false);
	assert_keeps("test_*!only_test_*", true, true, false);
	assert_keeps("libc.so.6!only_test_other", false, false, false);
	assert_keeps("libc.so.6!*twalk", false, false, true);
	assert_keeps("test_only!", false, false, false);
	assert_keeps("!only_test_other", false, false, false);
}

static void test_address(void **state)
{
	const struct cached_image *img;
	uint64_t offset, vaddr;
	uint32_t image = place(wanted(), &offset);
	char name[64];

	(void)state;
	img = image_cache_get(images, image);
	assert_true(cached_image_address(img, offset, &vaddr));
	snprintf(name, sizeof name, "test_only!0x%llx", (unsigned long long)vaddr + 1);
	assert_keeps(name, true, false, false);
	/* By address and by name: it is one range. */
	ask(name, "only_test_wanted");
	assert_true(keeps(wanted()));
	for (size_t i = 0; i < 2; i++) {
		struct only_result r;

		only_result(only, i, &r);
		assert_true(r.found && r.seen);
	}
	snprintf(name, sizeof name, "libc.so.6!0x%llx", (unsigned long long)vaddr);
	assert_keeps(name, false, false, false);
}

/* ---- what came of them ---- */

static void test_results(void **state)
{
	struct only_result r;

	(void)state;
	ask("only_test_wanted", "only_test_othr");
	assert_false(keeps(other()));
	only_result(only, 0, &r);
	assert_string_equal(r.name, "only_test_wanted");
	assert_true(r.found);
	assert_false(r.seen);
	only_result(only, 1, &r);
	assert_false(r.found || r.seen);
	assert_string_equal(r.nearest, "only_test_other");
	assert_true(keeps(wanted()));
	only_result(only, 0, &r);
	assert_true(r.seen);
	/* Libraries have versions behind their names. */
	ask("libc.so", "nothing like this");
	assert_false(keeps(foreign()));
	only_result(only, 0, &r);
	assert_string_equal(r.nearest, "libc.so.6");
	only_result(only, 1, &r);
	assert_null(r.nearest);
}

static void test_flushed(void **state)
{
	(void)state;
	ask("only_test_wanted", NULL);
	for (int i = 0; i < 3; i++) {
		assert_true(keeps(wanted()));
		assert_false(keeps(other()));
		image_cache_flushed(images, processes);
		only_flushed(only);
	}
}

static void test_distance(void **state)
{
	char word[100];

	(void)state;
	assert_int_equal(edit_distance("", ""), 0);
	assert_int_equal(edit_distance("deflate", "deflate"), 0);
	assert_int_equal(edit_distance("deflat", "deflate"), 1);
	assert_int_equal(edit_distance("kitten", "sitting"), 3);
	assert_int_equal(edit_distance("", "abc"), 3);
	memset(word, 'x', sizeof word);
	word[99] = 0;
	assert_int_equal(edit_distance(word, word), NEAR_FAR);
}

/* ---- whom it concerns ---- */

static void tell(struct record r)
{
	process_table_record(processes, &r);
}

/* The process maps what this one has at `code`. */
static void tell_map(uint64_t us, pid_t pid, uint64_t start, const void *code)
{
	uint64_t offset;
	const struct cached_image *img = image_cache_get(images, place(code, &offset));
	struct record r = record_map(us, pid, start, 0x100000, 0, img->path);

	r.mmap.build_id = img->id;
	tell(r);
}

static void test_processes(void **state)
{
	struct process *p;
	uint64_t us = now / US;

	(void)state;
	tell(record_exec(us, PID(1), "one"));
	p = process_at(processes, PID(1), now + 10 * US);
	ask("only_test_wanted", NULL);
	assert_true(only_concerns_process(only, self));
	assert_true(only_concerns_process(only, p)); /* nobody knows what it has */
	tell_map(us + 1, PID(1), 0x400000, foreign());
	assert_false(only_concerns_process(only, p));
	/* It may load what is wanted later; so may its child. */
	tell(record_fork(us + 2, PID(1), PID(2)));
	tell_map(us + 3, PID(2), 0x900000, wanted());
	assert_false(only_concerns_process(only, p));
	assert_true(only_concerns_process(only, process_at(processes, PID(2), now + 10 * US)));
	/* Memory without a file may hold any code. */
	tell(record_map(us + 4, PID(1), 0xa00000, 0x1000, 0, "//anon"));
	assert_true(only_concerns_process(only, p));
}

static void test_jit(void **state)
{
	char path[64];
	FILE *f;
	uint32_t n;

	(void)state;
	snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("7000000 20 jit_hot\n7000020 20 jit_cold\n", f);
	fclose(f);
	n = image_cache_of_memory(images, self, 0x7000010);
	unlink(path);
	ask("jit_hot", NULL);
	assert_true(only_keeps(only, n, 0x7000010));
	assert_false(only_keeps(only, n, 0x7000030));
	ask("perf-*.map", NULL);
	assert_true(only_keeps(only, n, 0x7000030));
}

static void test_kernel(void **state)
{
	uint64_t offset;
	uint32_t n;

	(void)state;
	ask("nosuch", NULL);
	assert_true(only_concerns_kernel(only)); /* its symbols are not read */
	image_cache_destroy(images);
	images = image_cache_create("", true);
	if (image_cache_kernel_hidden(images))
		skip();
	ask("nosuch", NULL);
	assert_false(only_concerns_kernel(only));
	ask("schedule", NULL);
	assert_true(only_concerns_kernel(only));
	ask("[kernel]", NULL);
	assert_true(only_concerns_kernel(only));
	n = image_cache_of_kernel(images, 0xffffffff81000010, &offset);
	assert_true(only_keeps(only, n, offset));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_none, set_up, tear_down),
		cmocka_unit_test(test_check),
		cmocka_unit_test_setup_teardown(test_procedure, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_image, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pair, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_address, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_results, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_flushed, set_up, tear_down),
		cmocka_unit_test(test_distance),
		cmocka_unit_test_setup_teardown(test_processes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_jit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kernel, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
