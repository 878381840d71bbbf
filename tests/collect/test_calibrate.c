#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "collect/calibrate.h"
#include "collect/calibrate_cache.h"
#include "collect/event.h"

static char dir[] = "/tmp/culprit-calibrate-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	return !mkdtemp(dir) || chmod(dir, 0777) < 0;
}

static int tear_down(void **state)
{
	(void)state;
	char command[80];
	snprintf(command, sizeof command, "rm -r %s", dir);
	return system(command);
}

static char *below(const char *name)
{
	static char path[120];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return path;
}

static void test_cache(void **state)
{
	(void)state;
	struct calibration c = {.cost = 5e-6, .spread = 1e-7, .rounds = 40}, got = {0};
	char *deep = below("a/b/c");

	assert_false(calibrate_cache_get(deep, "boot 6.1 cpu-clock bpf", &got));
	calibrate_cache_put(deep, "boot 6.1 cpu-clock bpf", &c);
	c.cost = 7e-6;
	calibrate_cache_put(deep, "boot 6.1 cpu-clock ring", &c);
	assert_true(calibrate_cache_get(deep, "boot 6.1 cpu-clock bpf", &got));
	assert_float_equal(got.cost, 5e-6, 1e-12);
	assert_float_equal(got.spread, 1e-7, 1e-12);
	assert_int_equal(got.rounds, 40);
	assert_true(calibrate_cache_get(deep, "boot 6.1 cpu-clock ring", &got));
	assert_float_equal(got.cost, 7e-6, 1e-12);
	assert_false(calibrate_cache_get(deep, "boot 6.1 cpu-clock", &got));

	/* A later value replaces the earlier, a later boot all of them. */
	c.cost = 9e-6;
	calibrate_cache_put(deep, "boot 6.1 cpu-clock bpf", &c);
	assert_true(calibrate_cache_get(deep, "boot 6.1 cpu-clock bpf", &got));
	assert_float_equal(got.cost, 9e-6, 1e-12);
	calibrate_cache_put(deep, "other 6.1 cpu-clock bpf", &c);
	assert_false(calibrate_cache_get(deep, "boot 6.1 cpu-clock bpf", &got));
	assert_true(calibrate_cache_get(deep, "other 6.1 cpu-clock bpf", &got));
}

static void test_damaged_cache(void **state)
{
	(void)state;
	static const char *const bad[] = {"k e 5e-6\n", "k e x y z\n", "k e -1 0 5\n",
		"k e 3 0 5\n", "k e 5e-6 nan 5\n", "k e inf 0 5\n", "k e 5e-6 0 0\n", "\n\nk e",
		"k e5e-6 0 5\n"};
	struct calibration got = {.rounds = -1};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(io_write_file(below("calibration"), bad[i]), 0);
		assert_false(calibrate_cache_get(dir, "k e", &got));
		assert_int_equal(got.rounds, -1);
	}
	assert_false(calibrate_cache_get("/nonexistent", "k e", &got));
	calibrate_cache_put("/proc/nonexistent", "k e", &got); /* silently nothing */
}

static void test_rate(void **state)
{
	(void)state;
	long limit = 100000;
	io_read_long("/proc/sys/kernel/perf_event_max_sample_rate", &limit);
	double most = limit * 0.9 < 20000 ? limit * 0.9 : 20000;

	if (most >= 1000)
		assert_float_equal(
			calibrate_rate(&(struct calibration){.cost = 1e-5}, 0.01), 900, 1e-9);
	assert_float_equal(calibrate_rate(&(struct calibration){.cost = 1e-9}, 0.01), most, 1e-6);
	assert_float_equal(calibrate_rate(&(struct calibration){.cost = 1}, 0.01), 10, 1e-9);
}

/* Measures as an ordinary user, who has a cache of his own. The exit status tells. */
static int measure(void)
{
	struct event ev;
	struct calibration a, b;
	struct err e = {0};
	int r;

	if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0))
		return 1;
	setenv("XDG_CACHE_HOME", dir, 1);
	if (event_parse("cpu-clock:u", &ev, &e) < 0)
		return 2;
	r = calibrate_cost(&ev, false, false, &a, &e);
	if (r == -EACCES || r == -EAGAIN) {
		print_message("skipped: %s\n", e.text);
		return 77;
	}
	if (r < 0 || !(a.cost > 0) || a.cost > 1e-2 || a.spread < 0 || a.rounds < 10)
		return 3;
	/* The second time it is the cache that answers, with the same. */
	if (calibrate_cost(&ev, false, false, &b, &e) < 0 || b.rounds != a.rounds ||
		b.cost < a.cost * 0.999 || b.cost > a.cost * 1.001)
		return 4;
	return access(below("culprit/calibration"), R_OK) < 0 ? 5 : 0;
}

static void test_measuring(void **state)
{
	(void)state;
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(measure());
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_damaged_cache),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_measuring),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
