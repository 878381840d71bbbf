#include "analyze/find.h"
#include "analyze/scene.h"

#include <errno.h>

static const int64_t first_epoch[] = {1};

/* Epoch 1 unless options say otherwise. */
static int tally(struct scene *sc, struct selection_options o, enum tally_by by, const char *proc)
{
	int rc;

	if (!sc->s)
		assert_int_equal(store_open(sc->path, STORE_READ, &sc->s, &sc->e), 0);
	if (!o.filter.nepochs && !o.filter.t0) {
		o.filter.epochs = first_epoch;
		o.filter.nepochs = 1;
	}
	rc = selection_create(sc->s, &o, &sc->sel, &sc->e);
	return rc ? rc : tally_create(sc->sel, by, proc, &sc->t, &sc->e);
}

static const struct tally_row *row_named(const struct scene *sc, const char *name)
{
	const struct tally_row *rows;
	size_t n = tally_rows(sc->t, &rows);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	fail_msg("no row %s", name);
	return NULL;
}

#define ROW(sc, name, clock, faults)                              \
	do {                                                      \
		const struct tally_row *r_ = row_named(sc, name); \
		assert_int_equal(r_->samples[0], clock);          \
		assert_int_equal(r_->samples[1], faults);         \
	} while (0)

static void procedures_with_all_events(void **state)
{
	struct scene *sc = *state;
	const struct tally_row *rows;

	assert_int_equal(tally(sc, (struct selection_options){0}, TALLY_PROCEDURE, NULL), 0);
	assert_int_equal(tally_rows(sc->t, &rows), 7);
	ROW(sc, "hot", 600, 10);
	ROW(sc, "demo!0x401100", 200, 0);
	ROW(sc, "libbare.so (no procedure)", 50, 30);
	ROW(sc, "page_fault", 40, 60);
	ROW(sc, "(unknown)", 10, 0);
	assert_int_equal(tally_total(sc->t, 0), 1000);
	assert_int_equal(tally_total(sc->t, 1), 100);
	assert_string_equal(rows[0].name, "hot");
	assert_int_equal(rows[0].start, 0x401000);
	assert_false(row_named(sc, "(unknown)")->known);
	assert_false(row_named(sc, "libbare.so (no procedure)")->known);
}

static void twins_stay_apart(void **state)
{
	struct scene *sc = *state;
	const struct tally_row *rows;

	assert_int_equal(tally(sc, (struct selection_options){0}, TALLY_PROCEDURE, "twin"), 0);
	assert_int_equal(tally_rows(sc->t, &rows), 2);
	assert_int_equal(rows[0].samples[0], 60);
	assert_int_equal(rows[0].start, 0x401200);
	assert_int_equal(rows[1].samples[0], 40);
}

static void epochs_add_up(void **state)
{
	struct scene *sc = *state;
	static const int64_t both[] = {1, 2};
	struct selection_options o = {.filter = {.epochs = both, .nepochs = 2}};

	assert_int_equal(tally(sc, o, TALLY_PROCEDURE, NULL), 0);
	ROW(sc, "hot", 700, 10);
}

static void times_select(void **state)
{
	struct scene *sc = *state;
	struct selection_options o = {.filter = {.t0 = 1500 * 1000000ll, .t1 = INT64_MAX}};
	const struct selected_event *events;

	assert_int_equal(tally(sc, o, TALLY_PROCEDURE, NULL), 0);
	assert_int_equal(tally_total(sc->t, 0), 100);
	assert_true(selection_events(sc->sel, &events) >= 1);
	assert_int_equal(events[0].account.attributed, 100);
	assert_int_equal(events[0].account.lost, 0);
}

static void filters_by_comm_and_image(void **state)
{
	struct scene *sc = *state;
	struct selection_options o = {.filter = {.comm = "oth*", .image = "demo"}};
	const struct tally_row *rows;

	assert_int_equal(tally(sc, o, TALLY_PROCEDURE, NULL), 0);
	assert_int_equal(tally_rows(sc->t, &rows), 1);
	assert_string_equal(rows[0].name, "demo!0x401100");
	assert_int_equal(rows[0].samples[0], 50);
}

static void events_in_the_order_asked(void **state)
{
	struct scene *sc = *state;
	static const char *const names[] = {"page-faults"};
	struct selection_options o = {.events = names, .nevents = 1};
	const struct selected_event *events;
	const struct tally_row *rows;

	assert_int_equal(tally(sc, o, TALLY_PROCEDURE, NULL), 0);
	assert_int_equal(selection_events(sc->sel, &events), 1);
	assert_string_equal(events[0].name, "page-faults");
	assert_int_equal(tally_rows(sc->t, &rows), 3);
	assert_string_equal(rows[0].name, "page_fault");
}

static void first_event_sorts(void **state)
{
	struct scene *sc = *state;
	struct selection_options o = {.first = "page-faults"};
	const struct selected_event *events;
	const struct tally_row *rows;

	assert_int_equal(tally(sc, o, TALLY_PROCEDURE, NULL), 0);
	assert_int_equal(selection_events(sc->sel, &events), 2);
	assert_string_equal(events[0].name, "page-faults");
	assert_string_equal(events[1].name, "cpu-clock");
	assert_int_equal(tally_rows(sc->t, &rows), 7);
	assert_string_equal(rows[0].name, "page_fault");
}

static void event_that_is_not_there(void **state)
{
	struct scene *sc = *state;
	static const char *const names[] = {"cycles"};
	struct selection_options o = {.events = names, .nevents = 1};

	assert_int_equal(tally(sc, o, TALLY_PROCEDURE, NULL), -ENOENT);
	assert_non_null(strstr(sc->e.text, "cpu-clock, page-faults"));
}

static void accounts_come_with_events(void **state)
{
	struct scene *sc = *state;
	const struct selected_event *events;

	assert_int_equal(tally(sc, (struct selection_options){0}, TALLY_CPU, NULL), 0);
	assert_int_equal(selection_events(sc->sel, &events), 2);
	assert_int_equal(events[0].account.attributed, 990);
	assert_int_equal(events[0].account.unknown, 10);
	assert_int_equal(events[0].account.lost, 5);
	assert_int_equal(events[0].account.throttled, 3);
	assert_true(events[0].period == 1e6);
}

static void other_views_come_from_totals(void **state)
{
	struct scene *sc = *state;
	static const struct {
		enum tally_by by;
		size_t rows;
		const char *name;
		int clock, faults;
	} views[] = {
		{TALLY_IMAGE, 4, "/opt/demo/bin/demo", 900, 10},
		{TALLY_IMAGE, 4, "(unknown)", 10, 0},
		{TALLY_PROCESS, 2, "demo", 940, 100},
		{TALLY_THREAD, 3, "worker", 350, 0},
		{TALLY_COMM, 2, "other", 60, 0},
		{TALLY_CGROUP, 2, "/test", 940, 100},
		{TALLY_CGROUP, 2, "(unknown)", 60, 0},
		{TALLY_CPU, 2, "1", 350, 0},
	};

	for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
		const struct tally_row *rows;

		assert_int_equal(tally(sc, (struct selection_options){0}, views[i].by, NULL), 0);
		assert_int_equal(tally_rows(sc->t, &rows), views[i].rows);
		ROW(sc, views[i].name, views[i].clock, views[i].faults);
		assert_int_equal(tally_total(sc->t, 0), 1000);
		tally_destroy(sc->t);
		selection_destroy(sc->sel);
		sc->t = NULL;
		sc->sel = NULL;
	}
}

static void threads_know_their_process(void **state)
{
	struct scene *sc = *state;
	const struct tally_row *row;

	assert_int_equal(tally(sc, (struct selection_options){0}, TALLY_THREAD, NULL), 0);
	row = row_named(sc, "worker");
	assert_int_equal(row->tid, 101);
	assert_int_equal(row->pid, 100);
	assert_string_equal(row->process, "demo");
	assert_int_equal(row->started, 900 * 1000000ll);
}

static void pid_of_kept_profiles(void **state)
{
	struct scene *sc = *state;
	struct selection_options o = {.filter = {.pid = 300, .t0 = 1}};

	assert_int_equal(tally(sc, o, TALLY_PROCEDURE, NULL), 0);
	assert_int_equal(tally_total(sc->t, 0), 100);
}

static void pid_without_profiles_names_the_remedy(void **state)
{
	struct scene *sc = *state;
	struct selection_options o = {.filter = {.pid = 100}};

	assert_int_equal(tally(sc, o, TALLY_PROCEDURE, NULL), -ENOENT);
	assert_non_null(strstr(sc->e.text, "--per-process"));
	selection_destroy(sc->sel);
	sc->sel = NULL;
	o.filter.pid = 4242;
	assert_int_equal(tally(sc, o, TALLY_LINE, NULL), -ENOENT);
	assert_non_null(strstr(sc->e.text, "4242"));
	selection_destroy(sc->sel);
	sc->sel = NULL;
	o.filter.pid = 100;
	assert_int_equal(tally(sc, o, TALLY_PROCESS, NULL), 0);
	assert_int_equal(tally_total(sc->t, 0), 940);
}

static void lines_of_vanished_files(void **state)
{
	struct scene *sc = *state;

	assert_int_equal(tally(sc, (struct selection_options){0}, TALLY_LINE, NULL), 0);
	ROW(sc, "demo (the file is gone, no lines)", 900, 10);
	ROW(sc, "[kernel] (no line information)", 40, 60);
	ROW(sc, "(unknown)", 10, 0);
}

static void lines_of_some_procedures(void **state)
{
	struct scene *sc = *state;
	const struct tally_row *rows;

	assert_int_equal(tally(sc, (struct selection_options){0}, TALLY_LINE, "twin"), 0);
	assert_int_equal(tally_rows(sc->t, &rows), 1);
	assert_int_equal(rows[0].samples[0], 100);
}

static void procedures_do_not_go_with_totals(void **state)
{
	struct scene *sc = *state;

	assert_int_equal(tally(sc, (struct selection_options){0}, TALLY_CPU, "hot"), -EINVAL);
}

static void rows_by_another_event(void **state)
{
	struct scene *sc = *state;
	const struct tally_row **rows;

	assert_int_equal(tally(sc, (struct selection_options){0}, TALLY_PROCEDURE, NULL), 0);
	assert_int_equal(tally_rows_by(sc->t, 1, &rows), 3);
	assert_string_equal(rows[0]->name, "page_fault");
	assert_string_equal(rows[2]->name, "hot");
	free(rows);
}

static void finds_what_users_mean(void **state)
{
	struct scene *sc = *state;
	static const struct {
		const char *what;
		enum find_kind kind;
		size_t n;
		uint64_t start;
	} cases[] = {
		{"hot", FIND_EXACT, 1, 0x401000},
		{"twin", FIND_EXACT, 2, 0x401200},
		{"demo!0x401100", FIND_EXACT, 1, 0x401100},
		{"demo!0x401133", FIND_ADDRESS, 1, 0x401100},
		{"demo!0x402004", FIND_ADDRESS, 1, 0x401000},
		{"/opt/*/demo!0x401310", FIND_ADDRESS, 1, 0x401300},
		{"0x40123f", FIND_ADDRESS, 1, 0x401200},
		{"page", FIND_PATTERN, 1, 0xffffffff81000500},
		{"*_f?ult", FIND_PATTERN, 1, 0xffffffff81000500},
		{"t*", FIND_PATTERN, 2, 0x401200},
		{"0x999999", FIND_NONE, 0, 0},
		{"other!0x40123f", FIND_NONE, 0, 0},
		{"nothing", FIND_NONE, 0, 0},
		{"(unknown)", FIND_NONE, 0, 0},
	};

	assert_int_equal(tally(sc, (struct selection_options){0}, TALLY_PROCEDURE, NULL), 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct tally_row **rows;
		size_t n;

		assert_int_equal(find_procedure(sc->t, cases[i].what, &rows, &n), cases[i].kind);
		assert_int_equal(n, cases[i].n);
		if (n)
			assert_int_equal(rows[0]->start, cases[i].start);
		free(rows);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_set_up, scene_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(procedures_with_all_events),
		TEST(twins_stay_apart),
		TEST(epochs_add_up),
		TEST(times_select),
		TEST(filters_by_comm_and_image),
		TEST(events_in_the_order_asked),
		TEST(first_event_sorts),
		TEST(event_that_is_not_there),
		TEST(accounts_come_with_events),
		TEST(other_views_come_from_totals),
		TEST(threads_know_their_process),
		TEST(pid_of_kept_profiles),
		TEST(pid_without_profiles_names_the_remedy),
		TEST(lines_of_vanished_files),
		TEST(lines_of_some_procedures),
		TEST(procedures_do_not_go_with_totals),
		TEST(rows_by_another_event),
		TEST(finds_what_users_mean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
