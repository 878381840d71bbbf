#include "collect/procfs.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static char line[512];
static struct procfs_map map;

static int parse(const char *text)
{
	snprintf(line, sizeof line, "%s", text);
	memset(&map, 0xaa, sizeof map);
	return procfs_map_parse(line, &map);
}

static void test_map_of_a_file(void **state)
{
	(void)state;
	assert_int_equal(parse("55d0c0a02000-55d0c0a0b000 r-xp 00002000 fe:01 1234567   "
			       "                /usr/bin/a b  c"),
		0);
	assert_int_equal(map.start, 0x55d0c0a02000);
	assert_int_equal(map.size, 0x9000);
	assert_int_equal(map.offset, 0x2000);
	assert_int_equal(map.inode, 1234567);
	assert_int_equal(map.major, 0xfe);
	assert_int_equal(map.minor, 1);
	assert_true(map.executable);
	assert_string_equal(map.path, "/usr/bin/a b  c");
}

static void test_map_without_name(void **state)
{
	(void)state;
	assert_int_equal(parse("7f0000000000-7f0000001000 rw-p 00000000 00:00 0 "), 0);
	assert_false(map.executable);
	assert_string_equal(map.path, "");
	assert_int_equal(parse("7f0000000000-7f0000001000 rwxp 00000000 00:00 0"), 0);
	assert_true(map.executable);
	assert_string_equal(map.path, "");
	assert_int_equal(
		parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]"), 0);
	assert_int_equal(map.start, 0xffffffffff600000);
	assert_string_equal(map.path, "[vsyscall]");
}

static void test_map_with_newlines(void **state)
{
	(void)state;
	assert_int_equal(parse("1000-2000 r-xp 00000000 08:01 7 /a\\012b\\012 (deleted)"), 0);
	assert_string_equal(map.path, "/a\nb\n (deleted)");
	assert_int_equal(parse("1000-2000 r-xp 00000000 08:01 7 /a\\\\0123\\01"), 0);
	assert_string_equal(map.path, "/a\\\n3\\01");
}

static void test_maps_that_are_none(void **state)
{
	static const char *const bad[] = {"", "1000", "1000-", "1000-2000",
		"2000-1000 r-xp 0 0:0 0", "1000-1000 r-xp 0 0:0 0", "-1000-2000 r-xp 0 0:0 0",
		"1000-2000 r-x 0 0:0 0", "1000-2000 r-xp 0 0:0", "1000-2000 r-xp 0 00 0",
		"1000-2000 r-xp 0 0:0 x", "1000-2000 r-xp 0 0:0 1x",
		"1000-20000000000000000 r-xp 0 0:0 0", "1000-2000 r-xp 0 0:0 99999999999999999999",
		"1000-2000 r-xp 0 100000000:0 0"};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (parse(bad[i]) != -EBADMSG)
			fail_msg("\"%s\" was taken", bad[i]);
	}
}

struct search {
	uint64_t pc;
	bool found;
	size_t n;
};

static void look_for(void *arg, const struct procfs_map *m)
{
	struct search *s = arg;

	assert_true(m->executable);
	s->n++;
	if (s->pc - m->start < m->size && m->path[0] == '/')
		s->found = true;
}

static void test_maps_of_this_process(void **state)
{
	struct search s = {.pc = (uint64_t)(uintptr_t)&test_maps_of_this_process};

	(void)state;
	assert_int_equal(procfs_maps(getpid(), look_for, &s), 0);
	assert_true(s.found);
	assert_true(s.n >= 3);
	assert_int_equal(procfs_maps(5000000, look_for, &s), -ESRCH);
}

static void test_stat(void **state)
{
	struct procfs_stat s;

	(void)state;
	assert_int_equal(procfs_stat_parse("42 (a) b (c) S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 "
					   "0 12 0 987654 100 200 18446744073709551615\n",
				 &s),
		0);
	assert_string_equal(s.comm, "a) b (c");
	assert_int_equal(s.parent, 7);
	assert_int_equal(s.threads, 12);
	assert_int_equal(s.started, 987654);
	assert_int_equal(
		procfs_stat_parse("42 (kworker/0:1-events_long) I 2 0 0 0 -1 0 0 0 0 0 0 0 0 "
				  "0 20 0 1 0 3\n",
			&s),
		0);
	assert_string_equal(s.comm, "kworker/0:1-eve");
	assert_int_equal(procfs_stat_parse("42 (a", &s), -EBADMSG);
	assert_int_equal(procfs_stat_parse("42 )a( S 1 2", &s), -EBADMSG);
	assert_int_equal(procfs_stat_parse("42 (a) S 1 2", &s), -EBADMSG);
	assert_int_equal(procfs_stat(getpid(), &s), 0);
	assert_int_equal(s.parent, getppid());
	assert_int_equal(procfs_stat(5000000, &s), -ESRCH);
	assert_int_equal(procfs_leader(gettid()), getpid());
	assert_int_equal(procfs_leader(5000000), 5000000);
}

static void look_for_self(void *arg, pid_t number)
{
	assert_true(number > 0);
	*(bool *)arg |= number == getpid();
}

static void test_each(void **state)
{
	bool found = false;

	(void)state;
	assert_int_equal(procfs_each("/proc", look_for_self, &found), 0);
	assert_true(found);
	assert_int_equal(procfs_each("/proc/5000000/task", look_for_self, &found), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map_of_a_file),
		cmocka_unit_test(test_map_without_name),
		cmocka_unit_test(test_map_with_newlines),
		cmocka_unit_test(test_maps_that_are_none),
		cmocka_unit_test(test_maps_of_this_process),
		cmocka_unit_test(test_stat),
		cmocka_unit_test(test_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
