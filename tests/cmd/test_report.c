#include "base/err.h"
#include "cmd/cmd.h"
#include "fixtures/fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/report.XXXXXX";
static char database[64];

static int make_database(void **state)
{
	struct err e = {0};

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(database, sizeof database, "%s/db", dir);
	return fixture_small(database, &e);
}

static int remove_database(void **state)
{
	(void)state;
	unlink(database);
	return rmdir(dir);
}

static void options_become_a_filter(void **state)
{
	struct report r = {0};
	struct err e = {0};

	(void)state;
	assert_int_equal(report_option(&r, 'i', "x.db", &e), 0);
	assert_int_equal(report_option(&r, 'e', "cycles,cpu-clock:u", &e), 0);
	assert_int_equal(report_option(&r, 'p', "42", &e), 0);
	assert_int_equal(report_option(&r, REPORT_COMM, "gzip", &e), 0);
	assert_int_equal(report_option(&r, REPORT_IMAGE, "lib*", &e), 0);
	assert_int_equal(report_option(&r, REPORT_PROC, "deflate", &e), 0);
	assert_int_equal(report_option(&r, REPORT_TIME, "10,20", &e), 0);
	assert_int_equal(report_option(&r, REPORT_JSON, NULL, &e), 0);
	assert_int_equal(report_option(&r, 'Z', NULL, &e), 1);
	assert_string_equal(r.input, "x.db");
	assert_int_equal(r.events.n, 2);
	assert_string_equal(r.events.p[1], "cpu-clock:u");
	assert_int_equal(r.filter.pid, 42);
	assert_string_equal(r.filter.comm, "gzip");
	assert_string_equal(r.filter.image, "lib*");
	assert_string_equal(r.procedure, "deflate");
	assert_true(r.filter.t0 == 10000000 && r.filter.t1 == 20000000);
	assert_true(r.json);
	report_deinit(&r);
}

static void bad_values_are_named(void **state)
{
	static const struct {
		int option;
		const char *value;
	} cases[] = {{'p', "0"}, {'p', "12x"}, {'p', "99999999999"}, {'e', ""}, {'e', ",,"},
		{REPORT_TIME, "10"}, {REPORT_EPOCH, "x"}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct report r = {0};
		struct err e = {0};

		assert_int_equal(report_option(&r, cases[i].option, cases[i].value, &e), -EINVAL);
		assert_true(strlen(e.text) > 10);
		assert_null(strchr(e.text, '\n'));
		report_deinit(&r);
	}
}

static void epochs_are_checked(void **state)
{
	struct report r = {.input = database};
	struct store *s = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(report_option(&r, REPORT_EPOCH, "last", &e), 0);
	assert_int_equal(report_open(&r, &s, &e), 0);
	assert_int_equal(r.filter.nepochs, 1);
	assert_int_equal(r.filter.epochs[0], 2);
	store_close(s);
	report_deinit(&r);

	r = (struct report){.input = database};
	assert_int_equal(report_option(&r, REPORT_EPOCH, "1,9", &e), 0);
	assert_int_equal(report_open(&r, &s, &e), -ENOENT);
	assert_non_null(strstr(e.text, "epoch 9"));
	report_deinit(&r);
}

static void absent_database(void **state)
{
	struct report r = {.input = "/nonexistent/culprit.db"};
	struct store *s = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(report_open(&r, &s, &e), -ENOENT);
	assert_non_null(strstr(e.text, "/nonexistent/culprit.db"));
	report_deinit(&r);
}

static void control_characters_stay_out(void **state)
{
	char text[64] = "";
	FILE *out = fmemopen(text, sizeof text, "w");

	(void)state;
	cmd_put(out, "a\033[31mb\nc\td\xff\xc3\xa9\xc2\x9b");
	fclose(out);
	assert_string_equal(text, "a?[31mb?c\td?\xc3\xa9?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_become_a_filter),
		cmocka_unit_test(bad_values_are_named),
		cmocka_unit_test(epochs_are_checked),
		cmocka_unit_test(absent_database),
		cmocka_unit_test(control_characters_stay_out),
	};

	return cmocka_run_group_tests(tests, make_database, remove_database);
}
