#include "store/fixture.h"

#include <math.h>

static int keep_epoch(void *arg, const struct store_epoch *epoch)
{
	struct store_epoch *list = arg;

	while (list->id)
		list++;
	*list = *epoch;
	list->host_name = xstrdup(epoch->host_name);
	list->label = xstrdup(epoch->label);
	list->events = xstrdup(epoch->events);
	return 0;
}

static void free_epochs(struct store_epoch *list)
{
	for (; list->id; list++) {
		free((char *)list->host_name);
		free((char *)list->label);
		free((char *)list->events);
	}
}

static void hosts_are_found_again(void **state)
{
	struct fixture *f = *state;
	const struct store_host same = {"box", "0123abcd", "Zen 4", "6.18", 2};
	const struct store_host newer = {"box", "0123abcd", "Zen 4", "6.19", 2};
	int64_t id;

	ok(f, store_begin(f->s, &f->e));
	ok(f, store_host(f->s, &same, &id, &f->e));
	assert_int_equal(id, f->host);
	ok(f, store_host(f->s, &newer, &id, &f->e));
	assert_int_not_equal(id, f->host);
	ok(f, store_commit(f->s, &f->e));
}

static void lists_epochs(void **state)
{
	struct fixture *f = *state;
	const struct blob_type paths = {.name = "paths", .weight = blob_pc.weight};
	struct store_epoch list[4] = {0};
	uint64_t samples;
	int64_t second;

	ok(f, store_begin(f->s, &f->e));
	ok(f, store_event(f->s,
		      &(struct store_event){
			      .epoch = f->epoch, .name = "page-faults", .unit = "events"},
		      &f->e));
	samples = add_flush(f, 0, 10) + add_flush(f, 1, 20);
	/* Another view of the same samples does not count. */
	ok(f, store_profile_add(f->s,
		      &(struct store_profile){f->epoch, f->event.id, f->image, f->process, T0,
			      T0 + MINUTE, &paths, "\x01\x01", 2},
		      &f->e));
	ok(f, store_epoch_end(f->s, f->epoch, T0 + 2 * MINUTE, &f->e));
	ok(f, store_epoch_start(f->s, f->host, T0 + 2 * MINUTE, "after", &second, &f->e));
	ok(f, store_commit(f->s, &f->e));

	ok(f, store_epochs(f->s, keep_epoch, list, &f->e));
	assert_int_equal(list[0].id, f->epoch);
	assert_int_equal(list[0].started, T0);
	assert_int_equal(list[0].ended, T0 + 2 * MINUTE);
	assert_int_equal(list[0].samples, samples);
	assert_true(list[0].bytes > 40);
	assert_string_equal(list[0].events, "cpu-clock,page-faults");
	assert_string_equal(list[0].host_name, "box");
	assert_int_equal(list[1].id, second);
	assert_int_equal(list[1].ended, 0);
	assert_int_equal(list[1].samples, 0);
	assert_string_equal(list[1].label, "after");
	assert_string_equal(list[1].events, "");
	assert_int_equal(list[2].id, 0);
	free_epochs(list);
}

static void epoch_needs_a_host(void **state)
{
	struct fixture *f = *state;
	int64_t id;

	ok(f, store_begin(f->s, &f->e));
	fails(f, store_epoch_start(f->s, 99, T0, "", &id, &f->e), -EINVAL, "host");
	store_rollback(f->s);
}

static int keep_event(void *arg, const struct store_event *event)
{
	struct store_event *out = arg;

	*out = *event;
	out->name = out->unit = NULL;
	assert_string_equal(event->name, "cpu-clock");
	assert_string_equal(event->unit, "ns");
	return 0;
}

static void event_figures_are_replaced(void **state)
{
	struct fixture *f = *state;
	struct store_event again = f->event, got;

	again.id = 0;
	again.period = 2e6;
	again.cost = 1.5e-6;
	again.skid = 2;
	again.skid_share = 0.75;
	again.cycles_per_ns = 3.25;
	ok(f, store_begin(f->s, &f->e));
	ok(f, store_event(f->s, &again, &f->e));
	ok(f, store_commit(f->s, &f->e));
	assert_int_equal(again.id, f->event.id);
	ok(f, store_events(f->s, keep_event, &got, &f->e));
	assert_true(got.period == 2e6 && got.cost == 1.5e-6 && got.rate == 1000);
	assert_int_equal(got.skid, 2);
	assert_true(got.skid_share == 0.75 && got.cycles_per_ns == 3.25);
	for (int i = 0; i < 2; i++) {
		again.skid =
			i ? -1 : STORE_SKID_MOST + 1; /* which nobody would come to the end of */
		ok(f, store_begin(f->s, &f->e));
		ok(f, store_event(f->s, &again, &f->e));
		ok(f, store_commit(f->s, &f->e));
		ok(f, store_events(f->s, keep_event, &got, &f->e));
		assert_int_equal(got.skid, 0);
	}
	assert_int_equal(got.epoch, f->epoch);
}

static int keep_account(void *arg, const struct store_event *event, const struct store_account *sum)
{
	assert_string_equal(event->name, "cpu-clock");
	*(struct store_account *)arg = *sum;
	return 0;
}

static void accounts_are_summed(void **state)
{
	struct fixture *f = *state;
	struct store_account sum = {0};
	struct store_filter filter = {.t0 = T0 + MINUTE, .t1 = T0 + 2 * MINUTE};

	ok(f, store_begin(f->s, &f->e));
	for (int i = 0; i < 3; i++)
		ok(f, store_account_add(f->s, f->event.id, T0 + i * MINUTE, T0 + (i + 1) * MINUTE,
			      &(struct store_account){.attributed = 10,
				      .unknown = 1,
				      .lost = 2,
				      .throttled = 3,
				      .missed = 4,
				      .expected = 100 * (i + 1),
				      .scale = i + 1},
			      &f->e));
	ok(f, store_commit(f->s, &f->e));

	ok(f, store_accounts(f->s, NULL, keep_account, &sum, &f->e));
	assert_int_equal(sum.attributed, 30);
	assert_int_equal(sum.unknown, 3);
	assert_int_equal(sum.lost, 6);
	assert_int_equal(sum.throttled, 9);
	assert_int_equal(sum.missed, 12);
	assert_true(sum.expected == 600);
	assert_true(sum.scale > 2.333 && sum.scale < 2.334); /* (100 + 400 + 900) / 600 */

	ok(f, store_accounts(f->s, &filter, keep_account, &sum, &f->e));
	assert_int_equal(sum.attributed, 10);
	assert_true(sum.scale == 2);

	/* What cannot be computed does not keep the rest from being written. */
	ok(f, store_begin(f->s, &f->e));
	ok(f, store_account_add(f->s, f->event.id, T0 + 9 * MINUTE, T0 + 10 * MINUTE,
		      &(struct store_account){.attributed = 5, .expected = NAN, .scale = NAN},
		      &f->e));
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_accounts(f->s, NULL, keep_account, &sum, &f->e));
	assert_int_equal(sum.attributed, 35);
	assert_true(sum.expected == 600);

	sum.attributed = 77;
	filter = (struct store_filter){.event = "cycles"};
	ok(f, store_accounts(f->s, &filter, keep_account, &sum, &f->e));
	assert_int_equal(sum.attributed, 77); /* not called */
}

static void account_needs_an_event(void **state)
{
	struct fixture *f = *state;

	ok(f, store_begin(f->s, &f->e));
	fails(f,
		store_account_add(f->s, 99, T0, T0 + 1, &(struct store_account){.scale = 1}, &f->e),
		-EINVAL, "event");
	fails(f,
		store_account_add(
			f->s, f->event.id, T0 + 1, T0, &(struct store_account){.scale = 1}, &f->e),
		-EINVAL, "before");
	store_rollback(f->s);
}

static int stop_at_once(void *arg, const struct store_event *event)
{
	(void)event;
	return *(int *)arg;
}

static void callbacks_stop(void **state)
{
	struct fixture *f = *state;
	int r = 1;

	assert_int_equal(store_events(f->s, stop_at_once, &r, &f->e), 0);
	r = -EINTR;
	assert_int_equal(store_events(f->s, stop_at_once, &r, &f->e), -EINTR);
}

struct process_seen {
	int n;
	int32_t pid;
};

static int see_process(void *arg, const struct store_process *p)
{
	struct process_seen *seen = arg;

	seen->n++;
	if (p->pid) {
		seen->pid = p->pid;
		assert_string_equal(p->comm, "bash");
		assert_string_equal(p->cgroup, "");
		assert_int_equal(p->started, 12345);
	}
	return 0;
}

static void processes_are_found_again(void **state)
{
	struct fixture *f = *state;
	struct store_process p = {.epoch = f->epoch, .pid = 42, .started = 12345, .comm = "bash"};
	struct process_seen seen = {0};
	int64_t a, b, c;

	ok(f, store_begin(f->s, &f->e));
	ok(f, store_process(f->s, &p, &a, &f->e));
	ok(f, store_process(f->s, &p, &b, &f->e));
	assert_int_equal(a, b);
	assert_int_not_equal(a, f->process);
	p = (struct store_process){.epoch = f->epoch, .comm = "gzip", .cgroup = "/a"};
	ok(f, store_process(f->s, &p, &c, &f->e));
	assert_int_equal(c, f->process);
	p.cgroup = "/b";
	ok(f, store_process(f->s, &p, &c, &f->e));
	assert_int_not_equal(c, f->process);
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_processes(f->s, see_process, &seen, &f->e));
	assert_int_equal(seen.n, 3);
	assert_int_equal(seen.pid, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(hosts_are_found_again, setup, teardown),
		cmocka_unit_test_setup_teardown(lists_epochs, setup, teardown),
		cmocka_unit_test_setup_teardown(epoch_needs_a_host, setup, teardown),
		cmocka_unit_test_setup_teardown(event_figures_are_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(accounts_are_summed, setup, teardown),
		cmocka_unit_test_setup_teardown(account_needs_an_event, setup, teardown),
		cmocka_unit_test_setup_teardown(callbacks_stop, setup, teardown),
		cmocka_unit_test_setup_teardown(processes_are_found_again, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
