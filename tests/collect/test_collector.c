#include "base/err.h"
#include "base/io.h"
#include "collect/collector.h"
#include "store/store.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/culprit-collector-XXXXXX";
static char database[64];
static struct event clock_event;
static pid_t self;

static int set_up(void **state)
{
	(void)state;
	self = getpid();
	if (!mkdtemp(folder) || event_parse("cpu-clock:u", &clock_event, NULL) < 0)
		return -1;
	snprintf(database, sizeof database, "%s/p.db", folder);
	return 0;
}

static void remove_database(void)
{
	static const char *const parts[] = {"", "-wal", "-shm"};
	char path[80];

	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s%s", database, parts[i]);
		unlink(path);
	}
}

static int tear_down(void **state)
{
	(void)state;
	remove_database();
	return rmdir(folder);
}

static struct collector_options options(enum sampler_how how)
{
	return (struct collector_options){.sampling = {.target = {.pids = &self, .npids = 1},
						  .events = &clock_event,
						  .nevents = 1,
						  .rate = 2000,
						  .how = how},
		.database = database,
		.drain_s = 0.1,
		.flush_s = 0.2,
		.per_process = true};
}

/* Burns CPU time while the collector does its turns. */
static void burn(struct collector *c, double seconds)
{
	uint64_t end = io_clock_ns(CLOCK_PROCESS_CPUTIME_ID) + seconds * 1e9;

	while (io_clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end) {
		for (volatile int i = 0; i < 1000000; i++)
			continue;
		struct pollfd p = {.fd = collector_fd(c), .events = POLLIN};

		if (poll(&p, 1, 0) == 1)
			collector_turn(c);
	}
}

struct seen {
	uint64_t samples;
	unsigned epochs, faults;
	struct store_account account;
};

static int see_epoch(void *arg, const struct store_epoch *epoch)
{
	struct seen *seen = arg;

	seen->epochs++;
	assert_true(epoch->ended >= epoch->started);
	return 0;
}

static int see_profile(void *arg, const struct store_profile *p)
{
	uint64_t n = 0;

	assert_int_equal(p->type->weight(p->data, p->size, &n), 0);
	((struct seen *)arg)->samples += n;
	return 0;
}

static int see_account(void *arg, const struct store_event *event, const struct store_account *sum)
{
	struct seen *seen = arg;

	assert_string_equal(event->name, "cpu-clock:u");
	seen->account.attributed += sum->attributed;
	seen->account.unknown += sum->unknown;
	return 0;
}

static void see_fault(void *arg, const char *text)
{
	((struct seen *)arg)->faults++;
	print_error("%s\n", text);
}

static struct seen look(void)
{
	struct seen seen = {0};
	struct store_filter all = {0};
	struct store *s;
	struct err e = {0};

	assert_int_equal(store_open(database, STORE_READ, &s, &e), 0);
	assert_int_equal(store_epochs(s, see_epoch, &seen, &e), 0);
	assert_int_equal(store_profiles(s, &all, see_profile, &seen, &e), 0);
	assert_int_equal(store_accounts(s, &all, see_account, &seen, &e), 0);
	assert_int_equal(store_check(s, see_fault, &seen, &e), 0);
	store_close(s);
	return seen;
}

/* What was sampled is in the database, all of it, whichever way it came. */
static void collects(enum sampler_how how)
{
	struct collector_options o = options(how);
	struct collector *c;
	struct collector_status status;
	struct err e = {0};
	struct seen seen;
	int code;

	remove_database();
	code = collector_create(&o, &c, &e);
	if (code < 0 && how == SAMPLER_BPF && err_exit_code(code) == EXIT_MACHINE) {
		print_message("not allowed here: %s\n", e.text);
		skip();
	}
	assert_int_equal(code, 0);
	assert_int_equal(collector_start(c, &e), 0);
	burn(c, 0.3);
	assert_int_equal(collector_epoch(c, "second", &e), 0);
	burn(c, 0.2);
	assert_int_equal(collector_finish(c, &e), 0);
	collector_status(c, &status);
	collector_destroy(c);
	seen = look();
	assert_int_equal(seen.epochs, 2);
	assert_int_equal(seen.faults, 0);
	assert_int_equal(seen.samples, status.total.samples);
	assert_int_equal(seen.samples, seen.account.attributed + seen.account.unknown);
	/* 0.5 s at 2,000/s, less what a busy machine holds back. */
	assert_in_range(seen.samples, 300, 1300);
	assert_in_range(seen.account.unknown, 0, seen.samples / 20);
}

static void collects_through_bpf(void **state)
{
	(void)state;
	collects(SAMPLER_BPF);
}

static void collects_through_rings(void **state)
{
	(void)state;
	collects(SAMPLER_RING);
}

static void discarding_leaves_nothing(void **state)
{
	struct collector_options o = options(SAMPLER_RING);
	struct collector *c;
	struct err e = {0};

	(void)state;
	remove_database();
	assert_int_equal(collector_create(&o, &c, &e), 0);
	assert_int_equal(access(database, F_OK), 0);
	collector_discard(c);
	collector_destroy(c);
	assert_int_equal(access(database, F_OK), -1);
}

static void a_missing_process_is_said(void **state)
{
	struct collector_options o = options(SAMPLER_RING);
	pid_t nobody = 0x3ffffe;
	struct collector *c;
	struct err e = {0};

	(void)state;
	remove_database();
	o.sampling.target.pids = &nobody;
	assert_int_equal(collector_create(&o, &c, &e), -ESRCH);
	assert_non_null(strstr(e.text, "4194302"));
	assert_int_equal(access(database, F_OK), -1);
}

static long turn_of(double share, bool watch)
{
	return collector_turn_ms(&(struct shadow_options){.share = share, .watch = watch});
}

static void looks_as_often_as_bursts_come(void **state)
{
	(void)state;
	assert_int_equal(turn_of(0, true), 250);
	assert_int_equal(turn_of(0.002, true), 250);
	assert_int_equal(turn_of(0.01, true), 50);
	assert_int_equal(turn_of(0.03, true), 25);
	assert_int_equal(turn_of(0.5, true), 25);
	assert_int_equal(turn_of(0.03, false), 250);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_as_often_as_bursts_come),
		cmocka_unit_test(collects_through_bpf),
		cmocka_unit_test(collects_through_rings),
		cmocka_unit_test(discarding_leaves_nothing),
		cmocka_unit_test(a_missing_process_is_said),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
