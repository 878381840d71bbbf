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
#include "collect/calibrate_skid.h"
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

static int cached(const char *in, const char *key, struct figures *out)
{
	calibrate_cache_get(in, key, 1e-8, 1e-2, out);
	return out->n;
}

static void test_cache(void **state)
{
	(void)state;
	struct figures p = {.p = {5e-6, 6e-6}, .n = 2}, got = {0};
	char *deep = below("a/b/c");

	assert_int_equal(cached(deep, "boot 6.1 cpu-clock", &got), 0);
	calibrate_cache_put(deep, "boot 6.1 cpu-clock", &p);
	p = (struct figures){.p = {7e-6}, .n = 1};
	calibrate_cache_put(deep, "boot 6.1 cycles", &p);
	assert_int_equal(cached(deep, "boot 6.1 cpu-clock", &got), 2);
	assert_float_equal(got.p[0], 5e-6, 1e-12);
	assert_float_equal(got.p[1], 6e-6, 1e-12);
	assert_int_equal(cached(deep, "boot 6.1 cycles", &got), 1);
	assert_float_equal(got.p[0], 7e-6, 1e-12);
	assert_int_equal(cached(deep, "boot 6.1", &got), 0);

	/* Later prices replace the earlier, a later boot all of them. */
	p = (struct figures){.n = CALIBRATE_FIGURES};
	for (int i = 0; i < p.n; i++)
		p.p[i] = (i + 1) * 1e-6;
	calibrate_cache_put(deep, "boot 6.1 cpu-clock", &p);
	assert_int_equal(cached(deep, "boot 6.1 cpu-clock", &got), CALIBRATE_FIGURES);
	assert_float_equal(got.p[15], 16e-6, 1e-12);
	calibrate_cache_put(deep, "other 6.1 cpu-clock", &p);
	assert_int_equal(cached(deep, "boot 6.1 cpu-clock", &got), 0);
	assert_int_equal(cached(deep, "other 6.1 cpu-clock", &got), CALIBRATE_FIGURES);
}

static void test_damaged_cache(void **state)
{
	(void)state;
	static const char *const bad[] = {"k e 5e-6 x\n", "k e x y z\n", "k e -1\n", "k e 3\n",
		"k e 5e-6 nan\n", "k e inf\n", "k e 5e-6 0\n", "\n\nk e", "k e5e-6\n",
		"k e 1e-6 1e-6 1e-6 1e-6 1e-6 1e-6 1e-6 1e-6 1e-6 1e-6 1e-6 1e-6 1e-6 1e-6 1e-6 "
		"1e-6 1e-6\n",
		"k e\n5e-6\n"};
	struct figures got = {.n = -1};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(io_write_file(below("calibration"), bad[i]), 0);
		assert_int_equal(cached(dir, "k e", &got), 0);
	}
	assert_int_equal(cached("/nonexistent", "k e", &got), 0);
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
			calibrate_rate(&(struct calibration){.cost = 1e-5}, 0.01), 800, 1e-9);
	assert_float_equal(
		calibrate_rate(&(struct calibration){.cost = 4e-6, .more = 6e-6}, 0.01), 800, 1e-9);
	assert_float_equal(calibrate_rate(&(struct calibration){.cost = 1e-9}, 0.01), most, 1e-6);
	assert_float_equal(calibrate_rate(&(struct calibration){.cost = 1}, 0.01), 10, 1e-9);
}

/* An ordinary user has a cache of his own. */
static bool become_ordinary(struct event *ev)
{
	if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0))
		return false;
	setenv("XDG_CACHE_HOME", dir, 1);
	return event_parse("cpu-clock:u", ev, NULL) == 0;
}

/* The exit status tells. */
static int measure(void)
{
	struct event ev;
	struct calibration a, b;
	struct err e = {0};
	int r;

	if (!become_ordinary(&ev))
		return 1;
	r = calibrate_cost(&ev, 2, false, &a, &e);
	if (r == -EACCES || r == -EAGAIN) {
		print_message("skipped: %s\n", e.text);
		return 77;
	}
	if (r < 0 || !(a.cost > 0) || a.cost > 1e-2 || a.more < 0 || a.prices < 1)
		return 3;
	/* What was measured is known now, and the next time adds to it. */
	if (!calibrate_known(&ev, &b) || b.prices != a.prices || b.cost < a.cost * 0.999 ||
		b.cost > a.cost * 1.001)
		return 4;
	if (calibrate_cost(&ev, 1, false, &b, &e) < 0 || b.prices < a.prices)
		return 6;
	return access(below("culprit/calibration"), R_OK) < 0 ? 5 : 0;
}

static int measure_skid(void)
{
	struct event ev, faults;
	struct skid a = {0}, b = {0};
	struct err e = {0};
	int r;

	if (!become_ordinary(&ev) || event_parse("page-faults:u", &faults, &e) < 0)
		return 1;
	if (calibrate_skid_known(&ev, &a))
		return 2;
	r = calibrate_skid(&ev, false, &a, &e);
	if (r == -EACCES || r == -EAGAIN) {
		print_message("skipped: %s\n", e.text);
		return 77;
	}
	print_message("%d instructions behind, %.0f%% of the samples; %.2f cycles a ns\n",
		a.instructions, a.share * 100, a.cycles_per_ns);
	/* Never before the one that takes the time; and some place has the most of 13. */
	if (r < 0 || a.instructions < 0 || !(a.share > 1.0 / 13) || a.share > 1)
		return 3;
	if (!(a.cycles_per_ns > 0.1) || a.cycles_per_ns > 20)
		return 4;
	if (!calibrate_skid_known(&ev, &b) || b.instructions != a.instructions ||
		b.share < a.share * 0.999 || b.share > a.share * 1.001)
		return 5;
	/* What comes when something happens has none, and a precise event neither. */
	b = (struct skid){0};
	if (calibrate_skid(&faults, false, &b, &e) < 0 || b.share || !b.cycles_per_ns)
		return 6;
	strcat(ev.name, "p");
	ev.attr.precise_ip = 2;
	return calibrate_skid(&ev, true, &b, &e) < 0 || b.instructions || b.share != 1 ? 7 : 0;
}

static void run_child(int (*fn)(void))
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(fn());
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_measuring(void **state)
{
	(void)state;
	run_child(measure);
}

static void test_skid(void **state)
{
	(void)state;
	run_child(measure_skid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_damaged_cache),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_measuring),
		cmocka_unit_test(test_skid),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
