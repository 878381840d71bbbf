#include "base/err.h"
#include "values/upcall.h"
#include "values/values.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct upcall *u;
static struct upcall_shared *theirs; /* as a process would see it */
static size_t seen;
static struct upcall_tuple last;

static const char *environment_value(char **list, const char *name)
{
	size_t n = strlen(name);

	for (; *list; list++) {
		if (!strncmp(*list, name, n) && (*list)[n] == '=')
			return *list + n + 1;
	}
	return NULL;
}

/* Any file will do for a library that is never loaded. */
static int begin(void **state)
{
	struct upcall_options o = {.library = "/proc/self/exe", .steps = 17, .no_edges = true};
	char *old[] = {NULL}, **list;
	struct err e;
	int fd;

	(void)state;
	if (upcall_prepare(&o, &u, &e) < 0)
		return -1;
	list = upcall_environment(u, old);
	fd = open(environment_value(list, UPCALL_ENVIRONMENT), O_RDWR);
	free(list);
	theirs = mmap(NULL, sizeof *theirs, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	seen = 0;
	return theirs == MAP_FAILED ? -1 : 0;
}

static int end(void **state)
{
	(void)state;
	munmap(theirs, sizeof *theirs);
	upcall_destroy(u);
	return 0;
}

static void take(void *arg, const struct upcall_tuple *t)
{
	(void)arg;
	seen++;
	last = *t;
}

/* A burst of n values, as the library writes it. */
static void write_burst(struct upcall_ring *r, uint32_t n)
{
	uint64_t head = r->head;

	r->unit[head++ % UPCALL_UNITS] = (struct upcall_unit){
		.word = {99, 7ull << 32 | 8, 1}, .kind = n, .mark = UPCALL_BURST};
	for (uint32_t i = 0; i < n; i++)
		r->unit[head++ % UPCALL_UNITS] = (struct upcall_unit){
			.word = {0x1000 + i, i, 5}, .kind = VALUE_SOURCE, .mark = UPCALL_VALUE};
	r->head = head;
}

static uint64_t damaged(void)
{
	struct upcall_counts c;

	upcall_count(u, &c);
	return c.damaged;
}

static void orders(void **state)
{
	(void)state;
	assert_int_equal(theirs->magic, UPCALL_MAGIC);
	assert_int_equal(theirs->orders.steps, 17);
	assert_int_equal(theirs->orders.skip, UPCALL_SKIP);
	assert_int_equal(theirs->orders.period, UPCALL_PERIOD);
	assert_true(theirs->orders.values);
	assert_false(theirs->orders.edges);
}

static void reads(void **state)
{
	(void)state;
	assert_int_equal(upcall_read(u, take, NULL), 0);
	theirs->owner[3] = UPCALL_OWNER(1, 7, 8);
	/* Often enough to go around the ring. */
	for (int i = 0; i < 200; i++) {
		write_burst(&theirs->ring[3], 300);
		assert_int_equal(upcall_read(u, take, NULL), 300);
	}
	assert_int_equal(seen, 200 * 300);
	assert_int_equal(last.pc, 0x1000 + 299);
	assert_int_equal(last.value, 299);
	assert_int_equal(last.context, 5);
	assert_int_equal(last.time, 99);
	assert_int_equal(last.pid, 7);
	assert_int_equal(last.tid, 8);
	assert_int_equal(last.kind, VALUE_SOURCE);
	assert_int_equal(damaged(), 0);
}

/* A process gone wild writes anything; the reader goes on with what comes later. */
static void wild(void **state)
{
	struct upcall_ring *r = &theirs->ring[0];

	(void)state;
	theirs->owner[0] = 1;
	r->head = 1ull << 40;
	assert_int_equal(upcall_read(u, take, NULL), 0);
	assert_int_equal(damaged(), 1);
	write_burst(r, 4);
	r->unit[(r->head - 2) % UPCALL_UNITS].mark = 1;
	upcall_read(u, take, NULL);
	assert_int_equal(damaged(), 2);
	write_burst(r, 4);
	r->unit[(r->head - 5) % UPCALL_UNITS].kind = 1000;
	upcall_read(u, take, NULL);
	assert_int_equal(damaged(), 3);
	write_burst(r, 4);
	r->unit[(r->head - 1) % UPCALL_UNITS].kind = UINT32_MAX;
	upcall_read(u, take, NULL);
	assert_int_equal(damaged(), 4);
	r->head -= 3; /* runs backwards */
	upcall_read(u, take, NULL);
	assert_int_equal(damaged(), 5);
	seen = 0;
	write_burst(r, 4);
	assert_int_equal(upcall_read(u, take, NULL), 4);
	assert_int_equal(seen, 4);
}

static void environments(void **state)
{
	char *old[] = {"A=1", "LD_PRELOAD=other.so", "CULPRIT_UPCALL=stale", "B=2", NULL};
	char **list = upcall_environment(u, old), expected[PATH_MAX], exe[PATH_MAX];
	size_t n = 0;

	(void)state;
	while (list[n])
		n++;
	assert_int_equal(n, 4);
	assert_non_null(realpath("/proc/self/exe", exe));
	assert_true(snprintf(expected, sizeof expected, "%s:other.so", exe) < PATH_MAX);
	assert_string_equal(environment_value(list, "LD_PRELOAD"), expected);
	assert_string_not_equal(environment_value(list, "CULPRIT_UPCALL"), "stale");
	assert_string_equal(environment_value(list, "B"), "2");
	free(list);
}

static void refused(const struct upcall_options *o, int code, const char *words)
{
	struct upcall *none = NULL;
	struct err e = {0};

	assert_int_equal(upcall_prepare(o, &none, &e), code);
	assert_non_null(strstr(e.text, words));
	assert_null(none);
}

static void options(void **state)
{
	(void)state;
	refused(&(struct upcall_options){.library = "/nowhere/x.so"}, -ENOENT, "/nowhere/x.so");
	refused(&(struct upcall_options){.library = "/proc/self/exe", .steps = 513}, -EINVAL,
		"too long");
	refused(&(struct upcall_options){.library = "/proc/self/exe", .period = 10}, -EINVAL,
		"too short");
	refused(&(struct upcall_options){.library = "/proc/self/exe", .nplugins = 17}, -EINVAL,
		"too many");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(orders, begin, end),
		cmocka_unit_test_setup_teardown(reads, begin, end),
		cmocka_unit_test_setup_teardown(wild, begin, end),
		cmocka_unit_test_setup_teardown(environments, begin, end),
		cmocka_unit_test(options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
