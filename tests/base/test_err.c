#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/err.h"

static void test_set(void **state)
{
	(void)state;
	struct err e = {0};
	assert_int_equal(err_set(&e, -EINVAL, "%s: bad %d", "x.db", 7), -EINVAL);
	assert_int_equal(e.code, -EINVAL);
	assert_string_equal(e.text, "x.db: bad 7");
	assert_int_equal(err_set(NULL, -EPERM, "unheard"), -EPERM);
}

static void test_errno(void **state)
{
	(void)state;
	struct err e = {0};
	assert_int_equal(err_errno(&e, -ENOENT, "open %s", "/x"), -ENOENT);
	assert_int_equal(e.code, -ENOENT);
	assert_string_equal(e.text, "open /x: No such file or directory");
	assert_int_equal(err_errno(NULL, -ENOENT, "unheard"), -ENOENT);
}

static void test_one_line_and_bounded(void **state)
{
	(void)state;
	struct err e;
	char longer[1000];
	err_set(&e, -EIO, "two\nlines\r");
	assert_string_equal(e.text, "two lines ");
	memset(longer, 'x', sizeof longer - 1);
	longer[sizeof longer - 1] = 0;
	err_errno(&e, -EIO, "%s", longer);
	assert_int_equal(strlen(e.text), sizeof e.text - 1);
}

static void test_exit_codes(void **state)
{
	(void)state;
	static const int usage[] = {
		-EINVAL, -ENOENT, -ENOTDIR, -EISDIR, -ESRCH, -EEXIST, -EBADMSG, -EPROTO, -ENOEXEC};
	static const int machine[] = {-EPERM, -EACCES, -ENOSPC, -ENOMEM, -ENOSYS, -EIO};
	assert_int_equal(err_exit_code(0), EXIT_DONE);
	for (size_t i = 0; i < sizeof usage / sizeof *usage; i++)
		assert_int_equal(err_exit_code(usage[i]), EXIT_USAGE);
	for (size_t i = 0; i < sizeof machine / sizeof *machine; i++)
		assert_int_equal(err_exit_code(machine[i]), EXIT_MACHINE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_errno),
		cmocka_unit_test(test_one_line_and_bounded),
		cmocka_unit_test(test_exit_codes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
