/* Which edited copies go when they take too much room. */
#include "edit/cache_trim.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { NOW = 1000000, BYTES = 64 << 10 };

static char root[] = "/tmp/culprit-test-trim-XXXXXX";

/* A copy that was used so many seconds ago. */
static void add(const char *build, const char *name, int ago)
{
	static const char zeros[BYTES];
	char path[256];
	struct timespec used[2] = {{.tv_sec = NOW - ago}, {.tv_sec = NOW - ago}};
	int fd;

	snprintf(path, sizeof path, "%s/%s", root, build);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/%s/%s", root, build, name);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/%s/%s/image", root, build, name);
	fd = open(path, O_WRONLY | O_CREAT, 0700);
	assert_int_equal(write(fd, zeros, BYTES), BYTES);
	close(fd);
	*strrchr(path, '/') = 0;
	assert_int_equal(utimensat(AT_FDCWD, path, used, 0), 0);
}

static bool is_there(const char *name)
{
	char path[256];

	snprintf(path, sizeof path, "%s/%s", root, name);
	return !access(path, F_OK);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(root + strlen(root) - 6, "XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	cache_remove(root);
	return access(root, F_OK) ? 0 : -1;
}

static void those_go_that_were_not_used_for_the_longest(void **state)
{
	(void)state;
	add("new", "a", 4000);
	add("new", "b", 90000);
	add("old", "c", 50000);
	add("old", "d", 100000);
	cache_trim(root, 4 * BYTES, NOW);
	assert_true(is_there("old/d"));
	cache_trim(root, 2 * BYTES, NOW);
	assert_true(is_there("new/a/image") && is_there("old/c/image"));
	assert_false(is_there("new/b") || is_there("old/d"));
	cache_trim(root, BYTES, NOW);
	assert_true(is_there("new/a"));
	assert_false(is_there("old"));
}

static void what_was_used_lately_stays(void **state)
{
	(void)state;
	add("new", "a", 10);
	add("new", "b", CACHE_TRIM_SPARES - 1);
	add("new", "c", CACHE_TRIM_SPARES + 1);
	cache_trim(root, 0, NOW);
	assert_true(is_there("new/a") && is_there("new/b"));
	assert_false(is_there("new/c"));
}

static void an_absent_folder_is_no_error(void **state)
{
	(void)state;
	cache_trim("/tmp/culprit-test-absent", 0, NOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(those_go_that_were_not_used_for_the_longest),
		TEST(what_was_used_lately_stays),
		TEST(an_absent_folder_is_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
