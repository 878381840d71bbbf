#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"

static char dir[] = "/tmp/culprit-test-io-XXXXXX";

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int drop_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

static char *in_dir(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static void test_write_and_read(void **state)
{
	(void)state;
	_cleanup_free_ char *path = in_dir("f");
	struct buf b = {0};
	struct stat st;

	assert_int_equal(io_write_file(path, "one"), 0);
	assert_int_equal(io_write_file(path, "second\nline"), 0);
	buf_printf(&b, "before ");
	assert_int_equal(io_read_file(AT_FDCWD, path, 11, &b), 0);
	assert_string_equal(buf_cstr(&b), "before second\nline");
	assert_int_equal(io_read_file(AT_FDCWD, path, 10, &b), -EFBIG);
	assert_string_equal(buf_cstr(&b), "before second\nline");
	assert_int_equal(io_read_file(AT_FDCWD, path, SIZE_MAX, &b), 0);
	assert_int_equal(b.n, 7 + 11 + 11);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0700, 0600);
	buf_deinit(&b);
	unlink(path);
}

/* More than one step of reading, and a file of /proc, which has no size. */
static void test_read_long_and_sizeless(void **state)
{
	(void)state;
	_cleanup_free_ char *path = in_dir("g");
	_cleanup_free_ char *text = xmalloc(300001);
	struct buf b = {0};
	memset(text, 'x', 300000);
	text[300000] = 0;
	assert_int_equal(io_write_file(path, text), 0);
	assert_int_equal(io_read_file(AT_FDCWD, path, 300000, &b), 0);
	assert_int_equal(b.n, 300000);
	unlink(path);
	b.n = 0;
	assert_int_equal(io_read_file(AT_FDCWD, "/proc/self/maps", 1 << 24, &b), 0);
	assert_true(b.n > 100);
	buf_deinit(&b);
}

static void test_absent(void **state)
{
	(void)state;
	_cleanup_free_ char *absent = in_dir("absent"), *deep = in_dir("absent/f");
	struct buf b = {0};
	char line[8] = "kept";
	long v = 5;
	assert_int_equal(io_read_file(AT_FDCWD, absent, 10, &b), -ENOENT);
	assert_int_equal(io_read_line(AT_FDCWD, absent, line, sizeof line), -ENOENT);
	assert_string_equal(line, "kept");
	assert_int_equal(io_read_long(absent, &v), -ENOENT);
	assert_int_equal(v, 5);
	assert_int_equal(io_write_file(deep, "x"), -ENOENT);
	assert_int_equal(io_read_file(AT_FDCWD, dir, 10, &b), -EISDIR);
	buf_deinit(&b);
}

static void test_lines_and_numbers(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int r;
		long v;
	} cases[] = {{"42\n", 0, 42}, {"-7", 0, -7}, {"8 \n", 0, 8}, {"max\n", -EBADMSG, 0},
		{"12x\n", -EBADMSG, 0}, {"", -EBADMSG, 0}, {"99999999999999999999", -ERANGE, 0}};
	_cleanup_free_ char *path = in_dir("n");
	char line[6];
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		long v = 0;
		assert_int_equal(io_write_file(path, cases[i].text), 0);
		assert_int_equal(io_read_long(path, &v), cases[i].r);
		assert_int_equal(v, cases[i].v);
	}
	int fd = open(dir, O_RDONLY | O_DIRECTORY);
	io_write_file(path, "abc\ndef\n");
	assert_int_equal(io_read_line(fd, "n", line, sizeof line), 0);
	assert_string_equal(line, "abc");
	io_write_file(path, "abcdefgh\n");
	assert_int_equal(io_read_line(fd, "n", line, sizeof line), 0);
	assert_string_equal(line, "abcde");
	close(fd);
	unlink(path);
}

static void test_pread(void **state)
{
	(void)state;
	_cleanup_free_ char *path = in_dir("p");
	char bytes[4] = "";
	io_write_file(path, "0123456789");
	_cleanup_close_ int fd = open(path, O_RDONLY);
	assert_int_equal(io_pread_full(fd, bytes, 4, 6), 0);
	assert_memory_equal(bytes, "6789", 4);
	assert_int_equal(io_pread_full(fd, bytes, 4, 7), -EBADMSG);
	assert_int_equal(io_pread_full(fd, bytes, 0, 700), 0);
	assert_int_equal(io_pread_full(fd, bytes, 4, UINT64_MAX), -EINVAL);
	assert_int_equal(io_pread_full(-1, bytes, 4, 0), -EBADF);
	unlink(path);
}

static void test_clock(void **state)
{
	(void)state;
	uint64_t a = io_clock_ns(CLOCK_MONOTONIC), b = io_clock_ns(CLOCK_MONOTONIC);
	assert_true(a > 0 && b >= a);
	assert_true(io_clock_ns(CLOCK_REALTIME) > 1600000000ull * 1000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write_and_read),
		cmocka_unit_test(test_read_long_and_sizeless),
		cmocka_unit_test(test_absent),
		cmocka_unit_test(test_lines_and_numbers),
		cmocka_unit_test(test_pread),
		cmocka_unit_test(test_clock),
	};
	return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
