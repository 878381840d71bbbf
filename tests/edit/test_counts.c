/* Files that edited programs counted into, sound and damaged. */
#include "edit/counts.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "rt/rt.h"

enum { PAGE = 4096, FIRST = PAGE + RT_DIRECTORY };

static char path[] = "/tmp/culprit-test-counts-XXXXXX";
static int fd;

static int set_up(void **state)
{
	(void)state;
	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	return fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(fd);
	return unlink(path);
}

static void put(off_t at, uint64_t value)
{
	assert_int_equal(pwrite(fd, &value, sizeof value, at), (ssize_t)sizeof value);
}

static void put_directory(uint32_t used, uint32_t short_of)
{
	struct rt_directory d = {.magic = RT_DIRECTORY_MAGIC, .used = used, .short_of = short_of};

	assert_int_equal(pwrite(fd, &d, sizeof d, PAGE), (ssize_t)sizeof d);
}

static void one_block(void **state)
{
	struct err e = {0};
	struct counts c;

	(void)state;
	put(8, 42);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	assert_int_equal(counts_map(path, PAGE, &c, &e), 0);
	assert_int_equal(c.p[1], 42);
	assert_false(c.by_thread);
	counts_unmap(&c);
}

static void blocks_are_added_up(void **state)
{
	struct err e = {0};
	struct counts c;

	(void)state;
	put(8, 1);
	put_directory(2, 3);
	put(FIRST + 8, 10);
	put(FIRST + PAGE + 8, 100);
	put(FIRST + 2 * PAGE + 8, 1000); /* nobody's */
	assert_int_equal(ftruncate(fd, FIRST + 3 * PAGE), 0);
	assert_int_equal(counts_map(path, PAGE, &c, &e), 0);
	assert_true(c.by_thread);
	assert_int_equal(c.blocks, 2);
	assert_int_equal(c.together, 3);
	assert_int_equal(c.p[1], 111);
	counts_unmap(&c);
}

/* More blocks than there are, half of the last one, another thing behind the counters. */
static void damaged(void **state)
{
	struct err e = {0};
	struct counts c;

	(void)state;
	put_directory(UINT32_MAX, 0);
	put(FIRST, 5);
	assert_int_equal(ftruncate(fd, FIRST + PAGE + PAGE / 2), 0);
	assert_int_equal(counts_map(path, PAGE, &c, &e), 0);
	assert_int_equal(c.blocks, 1);
	assert_int_equal(c.p[0], 5);
	counts_unmap(&c);
	put(PAGE, 7);
	assert_int_equal(counts_map(path, PAGE, &c, &e), 0);
	assert_false(c.by_thread);
	assert_int_equal(c.p[0], 0);
	counts_unmap(&c);
	assert_int_equal(counts_map(path, 16 * PAGE, &c, &e), -EBADMSG);
	assert_int_equal(counts_map(path, 0, &c, &e), -EBADMSG);
	assert_int_equal(counts_map("/tmp/culprit-test-absent", PAGE, &c, &e), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(one_block),
		TEST(blocks_are_added_up),
		TEST(damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
