#include "collect/idle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char text[] = "cpu  100 0 100 900 60 0 5 0 0 0\n"
			   "cpu0 50 0 50 300 20 0 5 0 0 0\n"
			   "cpu1 50 0 50 600 40 0 0 0 0 0\n"
			   "intr 12 0 9\n"
			   "ctxt 42\n";

static void sums_idle_and_waiting(void **state)
{
	(void)state;
	assert_true(idle_parse(text, 100, NULL, 0) == 9.6);
	assert_true(idle_parse(text, 100, (int[]){1}, 1) == 6.4);
	assert_true(idle_parse(text, 100, (int[]){7}, 1) == 0);
	assert_true(idle_parse("", 100, NULL, 0) == 0);
}

static void time_only_grows(void **state)
{
	double before = idle_seconds(NULL, 0);

	(void)state;
	assert_true(before > 0);
	assert_true(idle_seconds(NULL, 0) >= before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_idle_and_waiting),
		cmocka_unit_test(time_only_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
