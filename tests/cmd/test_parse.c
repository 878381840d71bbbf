#include "cmd/cmd.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define SECOND 1000000ll

static void whole_numbers(void **state)
{
	static const char *const bad[] = {
		"", "x", "-1", "+1", " 1", "1 ", "1x", "0x10", "1.0", "18446744073709551616", "11"};
	uint64_t v = 77;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(parse_uint(bad[i], 0, 10, &v), -EINVAL);
		assert_int_equal(v, 77);
	}
	assert_int_equal(parse_uint("0", 1, 10, &v), -EINVAL);
	assert_int_equal(parse_uint("10", 1, 10, &v), 0);
	assert_int_equal(v, 10);
	assert_int_equal(parse_uint("18446744073709551615", 0, UINT64_MAX, &v), 0);
	assert_true(v == UINT64_MAX);
}

static void real_numbers(void **state)
{
	static const char *const bad[] = {
		"", ".", "nan", "inf", "0x10", "1e", "1,5", "1 ", "--1", "1e400", "11"};
	double v = 77;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(parse_real(bad[i], 0, 10, &v), -EINVAL);
	assert_true(v == 77);
	assert_int_equal(parse_real("1.5", 0, 10, &v), 0);
	assert_true(v == 1.5);
	assert_int_equal(parse_real("1e1", 0, 10, &v), 0);
	assert_true(v == 10);
	assert_int_equal(parse_real(".5", 0, 10, &v), 0);
	assert_true(v == .5);
}

static void shares(void **state)
{
	double v = 0;

	(void)state;
	assert_int_equal(parse_share("5%", &v), 0);
	assert_true(v > 0.0499 && v < 0.0501);
	assert_int_equal(parse_share("0.05", &v), 0);
	assert_true(v > 0.0499 && v < 0.0501);
	assert_int_equal(parse_share("5", &v), -EINVAL);
	assert_int_equal(parse_share("101%", &v), -EINVAL);
	assert_int_equal(parse_share("-1%", &v), -EINVAL);
	assert_int_equal(parse_share("5%%", &v), -EINVAL);
	assert_int_equal(parse_share("%", &v), -EINVAL);
}

static void sizes(void **state)
{
	uint64_t v = 0;

	(void)state;
	assert_int_equal(parse_size("123", &v), 0);
	assert_int_equal(v, 123);
	assert_int_equal(parse_size("2K", &v), 0);
	assert_int_equal(v, 2048);
	assert_int_equal(parse_size("1.5m", &v), 0);
	assert_int_equal(v, 3 << 19);
	assert_int_equal(parse_size("3G", &v), 0);
	assert_true(v == 3ull << 30);
	assert_int_equal(parse_size("1KB", &v), -EINVAL);
	assert_int_equal(parse_size("K", &v), -EINVAL);
	assert_int_equal(parse_size("-1", &v), -EINVAL);
	assert_int_equal(parse_size("99999999999T", &v), -EINVAL);
}

static void points_in_time(void **state)
{
	const int64_t now = 1714568705 * SECOND; /* 2024-05-01 13:05:05 UTC */
	int64_t t = 0;

	(void)state;
	assert_int_equal(parse_time("1000", now, &t), 0);
	assert_true(t == 1000 * SECOND);
	assert_int_equal(parse_time("1000.25", now, &t), 0);
	assert_true(t == 1000250000);
	assert_int_equal(parse_time("2024-05-01", now, &t), 0);
	assert_true(t == 1714521600 * SECOND);
	assert_int_equal(parse_time("2024-05-01 13:05", now, &t), 0);
	assert_true(t == 1714568700 * SECOND);
	assert_int_equal(parse_time("2024-05-01T13:05:05", now, &t), 0);
	assert_true(t == now);
	assert_int_equal(parse_time("13:05", now, &t), 0);
	assert_true(t == 1714568700 * SECOND);
	assert_int_equal(parse_time("-90s", now, &t), 0);
	assert_true(t == now - 90 * SECOND);
	assert_int_equal(parse_time("-10m", now, &t), 0);
	assert_true(t == now - 600 * SECOND);
	assert_int_equal(parse_time("-2h", now, &t), 0);
	assert_true(t == now - 7200 * SECOND);
	assert_int_equal(parse_time("-0.5d", now, &t), 0);
	assert_true(t == now - 43200 * SECOND);
	assert_int_equal(parse_time("yesterday", now, &t), -EINVAL);
	assert_int_equal(parse_time("-10x", now, &t), -EINVAL);
	assert_int_equal(parse_time("25:00", now, &t), -EINVAL);
	assert_int_equal(parse_time("", now, &t), -EINVAL);
}

static void stretches_of_time(void **state)
{
	const int64_t now = 1714568705 * SECOND;
	int64_t t0 = 0, t1 = 0;

	(void)state;
	assert_int_equal(parse_time_range("10,20", now, &t0, &t1), 0);
	assert_true(t0 == 10 * SECOND && t1 == 20 * SECOND);
	assert_int_equal(parse_time_range("-10m,", now, &t0, &t1), 0);
	assert_true(t0 == now - 600 * SECOND && t1 == INT64_MAX);
	assert_int_equal(parse_time_range(",20", now, &t0, &t1), 0);
	assert_true(t0 == 0 && t1 == 20 * SECOND);
	assert_int_equal(parse_time_range(",", now, &t0, &t1), -EINVAL);
	assert_int_equal(parse_time_range("10", now, &t0, &t1), -EINVAL);
	assert_int_equal(parse_time_range("20,10", now, &t0, &t1), -EINVAL);
	assert_int_equal(parse_time_range("10,20,30", now, &t0, &t1), -EINVAL);
	assert_int_equal(parse_time_range("10,x", now, &t0, &t1), -EINVAL);
}

static void lists_of_epochs(void **state)
{
	static const char *const bad[] = {
		"", ",", "1,", "x", "0", "3-2", "1-", "-2", "1--2", "1-99999999", "lastt", "1-2-3"};
	epoch_list l = {0};

	(void)state;
	assert_int_equal(parse_epochs("7,2-4,last", &l), 0);
	assert_int_equal(l.n, 5);
	assert_int_equal(l.p[0], 7);
	assert_int_equal(l.p[1], 2);
	assert_int_equal(l.p[3], 4);
	assert_int_equal(l.p[4], EPOCH_LAST);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(parse_epochs(bad[i], &l), -EINVAL);
	vec_deinit(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_numbers),
		cmocka_unit_test(real_numbers),
		cmocka_unit_test(shares),
		cmocka_unit_test(sizes),
		cmocka_unit_test(points_in_time),
		cmocka_unit_test(stretches_of_time),
		cmocka_unit_test(lists_of_epochs),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
