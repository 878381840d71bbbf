#include "base/err.h"
#include "cmd/value_format.h"
#include "values/values.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The shipped plug-in, built beside the tests; its path in PATH_MAX bytes, or the test is skipped.
 */
static void find_built(const char *name, char *path)
{
	static const char *const up[] = {"../../plugins", "../../../plugins"};
	char exe[PATH_MAX / 2] = "";

	assert_true(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
	dirname(exe);
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, PATH_MAX, "%s/%s/%s.so", exe, up[i], name);
		if (!access(path, R_OK))
			return;
	}
	skip();
}

static void numbers_without_plugins(void **state)
{
	struct value_formats *f = value_formats_create();
	char text[64];

	(void)state;
	assert_false(value_formats_put(f, VALUE_RESULT, 5, text, sizeof text));
	assert_null(value_formats_name(f, VALUE_PLUGIN0 + 5));
	/* None is installed beside this test: no error, and no second try. */
	assert_false(value_formats_put(f, VALUE_CONFLICT, 5, text, sizeof text));
	assert_false(value_formats_put(f, VALUE_CONFLICT, 5, text, sizeof text));
	value_formats_destroy(f);
	value_formats_destroy(NULL);
}

static void what_is_no_plugin(void **state)
{
	struct value_formats *f = value_formats_create();
	struct err e = {0};

	(void)state;
	assert_int_equal(value_formats_add(f, "nothing", &e), -ENOENT);
	assert_non_null(strstr(e.text, "nothing"));
	assert_int_equal(value_formats_add(f, "/etc/passwd", &e), -ENOEXEC);
	assert_null(strchr(e.text, '\n'));
	value_formats_destroy(f);
}

static void a_plugin_prints(void **state)
{
	char path[PATH_MAX], text[64];
	struct value_formats *f;
	struct err e = {0};

	(void)state;
	find_built("latency", path);
	f = value_formats_create();
	assert_int_equal(value_formats_add(f, path, &e), 0);
	assert_string_equal(value_formats_name(f, VALUE_LATENCY), "latency");
	assert_true(value_formats_put(f, VALUE_LATENCY, 200 | 4, text, sizeof text));
	assert_non_null(strstr(text, "memory"));
	assert_false(value_formats_put(f, VALUE_RESULT, 200 | 4, text, sizeof text));
	value_formats_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_without_plugins),
		cmocka_unit_test(what_is_no_plugin),
		cmocka_unit_test(a_plugin_prints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
