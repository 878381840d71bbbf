#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "collect/event.h"
#include "collect/event_pmu.h"
#include "collect/event_tracepoint.h"

static struct event parse(const char *spec)
{
	struct event ev;
	struct err e = {0};

	if (event_parse(spec, &ev, &e) < 0)
		fail_msg("%s: %s", spec, e.text);
	return ev;
}

static void refuse(const char *spec, int code, const char *word)
{
	struct event ev = {.name = "untouched"};
	struct err e = {0};

	assert_int_equal(event_parse(spec, &ev, &e), code);
	assert_int_equal(e.code, code);
	assert_string_equal(ev.name, "untouched");
	if (!strstr(e.text, word))
		fail_msg("\"%s\" does not say \"%s\"", e.text, word);
}

static void test_software(void **state)
{
	(void)state;
	struct event ev = parse("cpu-clock");
	assert_string_equal(ev.name, "cpu-clock");
	assert_int_equal(ev.attr.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(ev.attr.config, PERF_COUNT_SW_CPU_CLOCK);
	assert_int_equal(ev.attr.size, sizeof ev.attr);
	assert_true(ev.is_clock);
	assert_false(ev.fell_back);
	assert_true(parse("task-clock").is_clock);
	ev = parse("faults");
	assert_int_equal(ev.attr.config, PERF_COUNT_SW_PAGE_FAULTS);
	assert_false(ev.is_clock);
}

static void test_modifiers(void **state)
{
	(void)state;
	struct event ev = parse("cpu-clock:u");
	assert_string_equal(ev.name, "cpu-clock:u");
	assert_true(ev.attr.exclude_kernel && !ev.attr.exclude_user);
	ev = parse("cpu-clock:k");
	assert_true(!ev.attr.exclude_kernel && ev.attr.exclude_user);
	ev = parse("cpu-clock:uk");
	assert_true(!ev.attr.exclude_kernel && !ev.attr.exclude_user);
	refuse("cpu-clock:x", -EINVAL, ":u");
}

/* With a PMU cycles are cycles; without one they become a clock that says so. */
static void test_cycles(void **state)
{
	(void)state;
	static const char *const specs[] = {NULL, "cycles"};
	for (int i = 0; i < 2; i++) {
		struct event ev = parse(specs[i]);
		if (ev.fell_back) {
			assert_string_equal(ev.name, "cpu-clock");
			assert_true(ev.is_clock);
			assert_int_equal(ev.attr.type, PERF_TYPE_SOFTWARE);
		} else {
			assert_string_equal(ev.name, "cycles");
			assert_false(ev.is_clock);
			assert_int_equal(ev.attr.type, PERF_TYPE_HARDWARE);
		}
	}
	struct event ev = parse("cycles:u");
	assert_true(ev.attr.exclude_kernel);
	assert_string_equal(ev.name, ev.fell_back ? "cpu-clock:u" : "cycles:u");
}

/* Names that every machine understands but not every one has. */
static void test_hardware(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint32_t type;
		uint64_t config;
	} known[] = {
		{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
		{"L1-dcache-loads", PERF_TYPE_HW_CACHE, 0},
		{"L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x10000},
		{"LLC-store-misses", PERF_TYPE_HW_CACHE, 0x10102},
		{"dTLB-prefetches", PERF_TYPE_HW_CACHE, 0x00203},
		{"r1a2", PERF_TYPE_RAW, 0x1a2},
	};
	bool pmu = !parse("cycles").fell_back;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		struct event ev;
		struct err e = {0};
		int r = event_parse(known[i].name, &ev, &e);
		if (!pmu)
			assert_int_equal(r, -EOPNOTSUPP);
		if (r < 0) {
			assert_non_null(strstr(e.text, "cpu-clock")); /* the remedy */
			continue;
		}
		assert_int_equal(ev.attr.type, known[i].type);
		assert_int_equal(ev.attr.config, known[i].config);
	}
}

static void test_unknown(void **state)
{
	(void)state;
	char longest[200];

	memset(longest, 'x', sizeof longest);
	longest[199] = 0;
	refuse("nonsense", -EINVAL, "nonsense");
	refuse("", -EINVAL, "not a name");
	refuse(longest, -EINVAL, "not a name");
	refuse("r", -EINVAL, "nobody knows");
	refuse("rxyz", -EINVAL, "nobody knows");
	refuse("L1-dcache-load", -EINVAL, "nobody knows");
	refuse("cpu/event=1", -EINVAL, "second /");
	refuse("no-such-pmu/event=1/", -EOPNOTSUPP, "no such PMU");
	refuse("../cpu/event=1/", -EOPNOTSUPP, "no such PMU");
}

/* Mounts tracefs where only this process sees it; false when that is not allowed. */
static bool mount_tracefs(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL) == 0;
}

/* Without tracefs the text says how to get there; with it the name is looked up. */
static void test_probes(void **state)
{
	struct event ev;
	struct err e = {0};
	int r = event_parse("uprobe:/proc/self/exe:main", &ev, &e);

	(void)state;
	if (r == -EOPNOTSUPP)
		skip();
	assert_int_equal(r, 0);
	assert_string_equal(ev.name, "uprobe:test_event:main");
	assert_true(ev.attr.config2 > 0 && ev.attr.config == 0);
	assert_non_null(strstr(ev.probed, "/test_event"));
	assert_int_equal(event_parse("uretprobe:/proc/self/exe:main", &ev, &e), 0);
	assert_int_equal(ev.attr.config, 1);
	assert_int_equal(event_parse("uprobe:/proc/self/exe:no_such_thing", &ev, &e), -EINVAL);
	assert_non_null(strstr(e.text, "no_such_thing"));
	assert_int_equal(event_parse("uprobe:/proc/self/exe", &ev, &e), -EINVAL);
	assert_int_equal(event_parse("uprobe:/no/such/file:main", &ev, &e), -ENOENT);
	assert_int_equal(event_parse("uprobe:/proc/self/exe:0x10", &ev, &e), -EINVAL);
}

static void test_tracepoints(void **state)
{
	(void)state;
	uint64_t id = 0;
	struct err e = {0};
	int r = event_tracepoint_id("sched", "sched_switch", &id, &e);

	if (r == -EACCES) {
		assert_non_null(strstr(e.text, "tracefs"));
		if (mount_tracefs())
			r = event_tracepoint_id("sched", "sched_switch", &id, &e);
	}
	if (r == -EACCES) {
		print_message("skipped: %s\n", e.text);
		skip();
	}
	assert_int_equal(r, 0);
	struct event ev = parse("sched:sched_switch");
	assert_int_equal(ev.attr.type, PERF_TYPE_TRACEPOINT);
	assert_int_equal(ev.attr.config, id);
	assert_true(parse("sched:sched_switch:k").attr.exclude_user);
	refuse("sched:no_such_thing", -EINVAL, "no such");
	refuse("../sched:sched_switch", -EINVAL, "second /");
	refuse("sched:..", -EINVAL, "no such");
}

/* ---- PMUs ---- */

static char devices[] = "/tmp/culprit-pmu-XXXXXX";

static void put(const char *path, const char *text)
{
	char full[300];
	snprintf(full, sizeof full, "%s/%s", devices, path);
	FILE *f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void put_dir(const char *path)
{
	char full[300];
	snprintf(full, sizeof full, "%s/%s", devices, path);
	assert_int_equal(mkdir(full, 0700), 0);
}

static int make_pmu(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(devices));
	put_dir("cpu");
	put_dir("cpu/format");
	put_dir("cpu/events");
	put("cpu/type", "4\n");
	put("cpu/format/event", "config:0-7,32-35\n");
	put("cpu/format/umask", "config:8-15\n");
	put("cpu/format/edge", "config:18\n");
	put("cpu/format/ldlat", "config1:0-15\n");
	put("cpu/format/all", "config2:0-63\n");
	put("cpu/format/broken", "config:70-90\n");
	put("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n");
	put("cpu/events/mem-loads.scale", "1\n");
	return 0;
}

static int remove_pmu(void **state)
{
	(void)state;
	char command[80];
	snprintf(command, sizeof command, "rm -r %s", devices);
	return system(command);
}

static struct perf_event_attr pmu(const char *terms)
{
	struct perf_event_attr attr = {0};
	struct err e = {0};

	if (event_pmu_parse(devices, "cpu", terms, &attr, &e) < 0)
		fail_msg("%s: %s", terms, e.text);
	assert_int_equal(attr.type, 4);
	return attr;
}

static void test_pmu_terms(void **state)
{
	(void)state;
	assert_int_equal(pmu("event=0x3c").config, 0x3c);
	assert_int_equal(pmu("event=0xa3c").config, 0xa0000003cull);
	assert_int_equal(pmu("event=1,umask=0x20,edge").config, 0x42001);
	assert_int_equal(pmu("config=0x1234,config1=5").config1, 5);
	assert_int_equal(pmu("all=0xffffffffffffffff").config2, UINT64_MAX);
}

static void test_pmu_named(void **state)
{
	(void)state;
	struct perf_event_attr attr = pmu("mem-loads");
	assert_int_equal(attr.config, 0x1cd);
	assert_int_equal(attr.config1, 3);
	/* What follows a name replaces its value. */
	attr = pmu("mem-loads,ldlat=30");
	assert_int_equal(attr.config, 0x1cd);
	assert_int_equal(attr.config1, 30);
}

static void test_pmu_refuses(void **state)
{
	(void)state;
	static const char *const bad[] = {"umask=0x100", "event=x", "event=", "nothing",
		"nothing=1", "../type", "broken=1", "edge=2"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct perf_event_attr attr = {.config = 7};
		struct err e = {0};
		assert_int_equal(event_pmu_parse(devices, "cpu", bad[i], &attr, &e), -EINVAL);
		assert_true(*e.text);
		assert_int_equal(attr.config, 7);
	}
	struct perf_event_attr attr;
	assert_int_equal(event_pmu_parse(devices, "gpu", "event=1", &attr, NULL), -EOPNOTSUPP);
}

static void note(void *arg, const char *name)
{
	strcat(arg, name);
	strcat(arg, ";");
}

static void test_pmu_each(void **state)
{
	(void)state;
	char all[100] = "";
	event_pmu_each(devices, note, all);
	assert_string_equal(all, "cpu/mem-loads/;");
}

static void see_clock(void *arg, const char *name)
{
	struct event ev;
	if (!strcmp(name, "cpu-clock"))
		*(bool *)arg = true;
	/* What is offered can be parsed. */
	assert_int_equal(event_parse(name, &ev, NULL), 0);
}

static void test_each(void **state)
{
	(void)state;
	bool clock = false;
	event_each(see_clock, &clock);
	assert_true(clock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_software),
		cmocka_unit_test(test_modifiers),
		cmocka_unit_test(test_cycles),
		cmocka_unit_test(test_hardware),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_probes),
		cmocka_unit_test(test_tracepoints),
		cmocka_unit_test(test_pmu_terms),
		cmocka_unit_test(test_pmu_named),
		cmocka_unit_test(test_pmu_refuses),
		cmocka_unit_test(test_pmu_each),
		cmocka_unit_test(test_each),
	};
	return cmocka_run_group_tests(tests, make_pmu, remove_pmu);
}
