#include "analyze/diff.h"
#include "analyze/runs.h"
#include "analyze/stats.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "fixtures/fixture.h"
#include "store/pack.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A database of one image without code, made as the tests want it; and the small fixture. */
struct scene {
	char dir[32];
	struct store *stores[8];
	size_t nstores;
	struct runs *runs;
	struct err e;
};

struct made {
	const char *name; /* NULL: nothing names it */
	uint64_t start, samples;
};

#define CHECK(sc, call)                               \
	do {                                          \
		if (call)                             \
			fail_msg("%s", (sc)->e.text); \
	} while (0)

static int set_up(void **state)
{
	struct scene *sc = xcalloc(1, sizeof *sc);

	strcpy(sc->dir, "/tmp/runs.XXXXXX");
	assert_non_null(mkdtemp(sc->dir));
	sc->runs = runs_create(NULL);
	*state = sc;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *sc = *state;
	char path[64];

	runs_destroy(sc->runs);
	for (size_t i = 0; i < sc->nstores; i++) {
		store_close(sc->stores[i]);
		snprintf(path, sizeof path, "%s/%zu", sc->dir, i);
		unlink(path);
	}
	assert_int_equal(rmdir(sc->dir), 0);
	free(sc);
	return 0;
}

static struct store *new_store(struct scene *sc)
{
	char path[64];

	snprintf(path, sizeof path, "%s/%zu", sc->dir, sc->nstores);
	CHECK(sc, store_open(path, STORE_WRITE, &sc->stores[sc->nstores], &sc->e));
	return sc->stores[sc->nstores++];
}

static void add_procedures(struct scene *sc, struct store *s, struct store_profile *p,
	const struct made *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct range range = {list[i].start, 16};
		struct store_procedure sp = {
			.p = {list[i].start, &range, 1, PROCEDURE_SYMBOL, list[i].name}};
		struct pc_count pc = {list[i].start, list[i].samples};
		struct buf data = {0};

		CHECK(sc, store_procedures_add(s, p->image, &sp, 1, &sc->e));
		pack_pcs(&pc, 1, &data);
		p->data = data.p;
		p->size = data.n;
		CHECK(sc, store_profile_add(s, p, &sc->e));
		buf_deinit(&data);
	}
}

/* A run of a build (a byte of its identity, 0: none) of an image. */
static void add_run(struct scene *sc, const char *path, enum image_kind kind, uint8_t build,
	const struct made *list, size_t n)
{
	struct store *s = new_store(sc);
	struct store_host host = {.name = "h", .machine_id = "m", .cpu = "c", .kernel = "k"};
	struct store_event ev = {.name = "cycles", .unit = "events", .period = 1000};
	struct store_account account = {.scale = 1};
	struct store_process process = {.comm = "c", .cgroup = ""};
	struct store_image im = {.kind = kind, .path = path};
	struct store_profile p = {.t0 = 1, .t1 = 2, .type = &blob_pc};
	struct store_filter all = {0};
	int64_t id;

	im.identity.size = build ? 20 : 0;
	memset(im.identity.bytes, build, build ? 20 : 0);
	CHECK(sc, store_begin(s, &sc->e));
	CHECK(sc, store_host(s, &host, &id, &sc->e));
	CHECK(sc, store_epoch_start(s, id, 1, "", &p.epoch, &sc->e));
	ev.epoch = process.epoch = p.epoch;
	CHECK(sc, store_event(s, &ev, &sc->e));
	CHECK(sc, store_process(s, &process, &p.process, &sc->e));
	CHECK(sc, store_image(s, &im, &p.image, &sc->e));
	p.event = ev.id;
	add_procedures(sc, s, &p, list, n);
	for (size_t i = 0; i < n; i++)
		account.attributed += list[i].samples;
	CHECK(sc, store_account_add(s, ev.id, 1, 2, &account, &sc->e));
	CHECK(sc, store_commit(s, &sc->e));
	CHECK(sc, runs_add(sc->runs, s, &all, path, &sc->e));
}

#define RUN(sc, path, build, ...)                                                         \
	do {                                                                              \
		static const struct made list_[] = {__VA_ARGS__};                         \
		add_run(sc, path, IMAGE_ELF, build, list_, sizeof list_ / sizeof *list_); \
	} while (0)

static const struct run_row *row_named(const struct scene *sc, const char *name)
{
	const struct run_row *rows, *found = NULL;
	size_t n = runs_rows(sc->runs, &rows);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(rows[i].name, name)) {
			assert_null(found);
			found = &rows[i];
		}
	if (!found)
		fail_msg("no row %s", name);
	return found;
}

static size_t match(struct scene *sc)
{
	const struct run_row *rows;

	CHECK(sc, runs_match(sc->runs, NULL, &sc->e));
	return runs_rows(sc->runs, &rows);
}

/* ---- matching ---- */

static void one_build_goes_by_start(void **state)
{
	struct scene *sc = *state;

	RUN(sc, "/old/p", 1, {"f", 0x100, 10}, {"f", 0x200, 20}, {NULL, 0x300, 5});
	RUN(sc, "/new/p", 1, {"f", 0x200, 40}, {"g", 0x400, 1});
	assert_int_equal(match(sc), 4);
	assert_true(row_named(sc, "g")->samples[0] == 0);
	assert_true(row_named(sc, "g")->samples[1] == 1);
	assert_true(row_named(sc, "p!0x300")->samples[0] == 5);
}

static void builds_go_by_name(void **state)
{
	struct scene *sc = *state;
	const struct run_row *f;

	RUN(sc, "/usr/lib/libz.so.1.2.11", 1, {"f", 0x100, 10}, {"g.constprop.0", 0x200, 20});
	RUN(sc, "/usr/lib/libz.so.1.2.13", 2, {"f", 0x180, 12}, {"g.constprop.1", 0x280, 21});
	assert_int_equal(match(sc), 2);
	f = row_named(sc, "f");
	assert_true(f->samples[0] == 10 && f->samples[1] == 12);
	assert_int_equal(f->match, MATCH_NAME);
	assert_int_equal(f->start, 0x180);
	assert_string_equal(f->image, "/usr/lib/libz.so.1.2.13");
	assert_null(f->was);
	assert_string_equal(row_named(sc, "g.constprop.1")->was, "g.constprop.0");
}

static void names_without_code_that_are_not_unique_stay_apart(void **state)
{
	struct scene *sc = *state;
	const struct run_row *rows;
	size_t n;

	RUN(sc, "/p", 1, {"init", 0x100, 10}, {"init", 0x200, 20}, {"f", 0x300, 1});
	RUN(sc, "/p", 2, {"init", 0x180, 10}, {"init", 0x280, 20}, {"f", 0x300, 1});
	assert_int_equal(n = match(sc), 5);
	runs_rows(sc->runs, &rows);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(rows[i].ambiguous, !strcmp(rows[i].name, "init"));
}

static void a_build_that_comes_back_is_the_same(void **state)
{
	struct scene *sc = *state;

	RUN(sc, "/a/p", 1, {"f", 0x100, 10});
	RUN(sc, "/b/p", 2, {"f", 0x100, 10});
	RUN(sc, "/a/p", 1, {"f", 0x100, 10});
	assert_int_equal(match(sc), 1);
	assert_true(row_named(sc, "f")->samples[2] == 10);
}

static void two_builds_in_one_run_are_two_images(void **state)
{
	struct scene *sc = *state;
	struct store_filter all = {0};

	RUN(sc, "/a/p", 1, {"f", 0x100, 10});
	RUN(sc, "/b/p", 2, {"f", 0x100, 20});
	CHECK(sc, store_merge(sc->stores[0], sc->stores[1], &sc->e));
	runs_destroy(sc->runs);
	sc->runs = runs_create(NULL);
	CHECK(sc, runs_add(sc->runs, sc->stores[0], &all, "both", &sc->e));
	assert_int_equal(match(sc), 2);
}

static void a_file_that_was_replaced_goes_on(void **state)
{
	struct scene *sc = *state;
	struct store_filter all = {0};

	RUN(sc, "/lib/p", 1, {"f", 0x100, 10});
	RUN(sc, "/lib/p", 1, {"f", 0x100, 10});
	RUN(sc, "/lib/p", 2, {"f", 0x180, 20});
	CHECK(sc, store_merge(sc->stores[1], sc->stores[2], &sc->e));
	runs_destroy(sc->runs);
	sc->runs = runs_create(NULL);
	for (int i = 0; i < 2; i++)
		CHECK(sc, runs_add(sc->runs, sc->stores[i], &all, "run", &sc->e));
	assert_int_equal(match(sc), 1);
	assert_true(row_named(sc, "f")->samples[1] == 30);
}

static void code_made_at_run_time_goes_by_name(void **state)
{
	struct scene *sc = *state;

	add_run(sc, "/tmp/perf-1.map", IMAGE_JIT, 0, &(struct made){"js", 0x7000, 5}, 1);
	add_run(sc, "/tmp/perf-2.map", IMAGE_JIT, 0, &(struct made){"js", 0x9000, 7}, 1);
	assert_int_equal(match(sc), 1);
	assert_true(row_named(sc, "js")->samples[0] == 5 && row_named(sc, "js")->samples[1] == 7);
}

static void different_programs_stay_apart(void **state)
{
	struct scene *sc = *state;

	RUN(sc, "/bin/cat", 1, {"copy", 0x100, 90}, {"main", 0x200, 10});
	RUN(sc, "/bin/sort", 2, {"merge", 0x100, 90}, {"main", 0x200, 10});
	RUN(sc, "/bin/dog", 3, {"copy", 0x140, 80}, {"main", 0x300, 10});
	assert_int_equal(match(sc), 4);
	assert_true(row_named(sc, "copy")->samples[2] == 80);
	assert_string_equal(row_named(sc, "copy")->image, "/bin/dog");
}

static void only_what_is_asked_for_stays(void **state)
{
	struct scene *sc = *state;
	const struct run *runs;

	RUN(sc, "/p", 1, {"f", 0x100, 10}, {"g", 0x200, 20});
	RUN(sc, "/p", 1, {"f", 0x100, 11}, {"g", 0x200, 20});
	CHECK(sc, runs_match(sc->runs, "f*", &sc->e));
	assert_int_equal(runs_list(sc->runs, &runs), 2);
	assert_true(runs[0].samples == 10 && runs[1].samples == 11);
	assert_true(row_named(sc, "f")->samples[1] == 11);
}

/* ---- runs ---- */

static void lost_samples_are_shared_out(void **state)
{
	struct scene *sc = *state;
	struct store_filter filter = {0};
	const int64_t epochs[] = {1, 2};
	const struct run *runs;
	char path[64];

	snprintf(path, sizeof path, "%s/0", sc->dir);
	CHECK(sc, fixture_small(path, &sc->e));
	CHECK(sc, store_open(path, STORE_READ, &sc->stores[sc->nstores++], &sc->e));
	filter.nepochs = 1;
	for (int i = 0; i < 2; i++) {
		filter.epochs = &epochs[i];
		CHECK(sc, runs_add(sc->runs, sc->stores[0], &filter, "x", &sc->e));
	}
	assert_int_equal(match(sc), 7);
	assert_string_equal(runs_event(sc->runs), "cpu-clock");
	assert_true(runs_clock(sc->runs));
	assert_int_equal(runs_list(sc->runs, &runs), 2);
	assert_true(runs[0].samples == 1000 && runs[1].samples == 100);
	assert_true(fabs(runs[0].period - 1e6 * 1008 / 1000) < 1e-6);
	assert_true(runs[1].period == 1e6);
}

static void an_event_that_is_missing_is_an_error(void **state)
{
	struct scene *sc = *state;
	struct store_filter all = {0};

	RUN(sc, "/p", 1, {"f", 0x100, 10});
	runs_destroy(sc->runs);
	sc->runs = runs_create("cpu-clock");
	assert_int_equal(runs_add(sc->runs, sc->stores[0], &all, "x.db", &sc->e), -ENOENT);
	assert_non_null(strstr(sc->e.text, "x.db"));
	assert_non_null(strstr(sc->e.text, "cycles"));
}

/* ---- what is made of them ---- */

static void statistics_are_those_of_the_samples(void **state)
{
	struct scene *sc = *state;
	struct stats s;

	RUN(sc, "/p", 1, {"f", 0x100, 400}, {"g", 0x200, 100});
	RUN(sc, "/p", 1, {"f", 0x100, 600}, {"g", 0x200, 100});
	match(sc);
	stats_init(&s, sc->runs, false);
	assert_int_equal(s.n, 2);
	assert_string_equal(s.rows[0].row->name, "f");
	assert_true(s.rows[0].range == 0.2 && s.rows[0].mean == 500);
	assert_true(fabs(s.rows[0].stddev - sqrt(20000)) < 1e-9);
	assert_true(s.rows[0].varies && !s.rows[1].varies);
	assert_true(fabs(s.rows[1].share - 1 / 6.0) < 1e-12);
	stats_deinit(&s);
}

static void differences_are_in_events_of_a_run(void **state)
{
	struct scene *sc = *state;
	struct diff d;

	RUN(sc, "/p", 1, {"f", 0x100, 400}, {"g", 0x200, 100}, {"h", 0x300, 2});
	RUN(sc, "/p", 2, {"f", 0x180, 600}, {"g", 0x280, 110}, {"i", 0x300, 7});
	match(sc);
	diff_init(&d, sc->runs, 1, false);
	assert_int_equal(d.n, 4);
	assert_int_equal(d.tested, 2);
	assert_string_equal(d.rows[0].row->name, "f");
	assert_true(d.rows[0].significant && d.total.significant);
	assert_true(fabs(d.rows[0].before - 400e3) < 1e-6);
	assert_true(fabs(d.rows[0].change.change - 200e3) < 1e-6);
	assert_true(fabs(d.total.change.change - 215e3) < 1e-6);
	assert_true(fabs(d.rows[0].share - 600 / 717.0) < 1e-9);
	assert_true(diff_relative(&d.rows[0]) == 0.5);
	assert_true(diff_is_slower(&d.rows[0], 0.4, 0.8));
	assert_false(diff_is_slower(&d.rows[0], 0.6, 0.8));
	assert_false(diff_is_slower(&d.rows[0], 0.4, 0.9));
	for (size_t i = 1; i < d.n; i++)
		assert_false(d.rows[i].significant);
	diff_deinit(&d);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(one_build_goes_by_start),
		TEST(builds_go_by_name),
		TEST(names_without_code_that_are_not_unique_stay_apart),
		TEST(a_build_that_comes_back_is_the_same),
		TEST(two_builds_in_one_run_are_two_images),
		TEST(a_file_that_was_replaced_goes_on),
		TEST(code_made_at_run_time_goes_by_name),
		TEST(different_programs_stay_apart),
		TEST(only_what_is_asked_for_stays),
		TEST(lost_samples_are_shared_out),
		TEST(an_event_that_is_missing_is_an_error),
		TEST(statistics_are_those_of_the_samples),
		TEST(differences_are_in_events_of_a_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
