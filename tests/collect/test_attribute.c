#include "collect/attribute_rig.h"

#include "collect/driver.h"
#include "store/anchors.h"
#include "store/pack.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>

/* ---- reading back ---- */

struct wanted {
	const char *image; /* NULL: all */
	uint64_t offset;   /* UINT64_MAX: all */
	int64_t event;
	uint64_t samples;
	size_t rows;
};

static char path_read[4096];
static enum image_kind kind_read;

static int note_image(void *arg, const struct store_image *im)
{
	(void)arg;
	snprintf(path_read, sizeof path_read, "%s", im->path);
	kind_read = im->kind;
	return 0;
}

static int add_profile(void *arg, const struct store_profile *p)
{
	struct wanted *w = arg;
	struct pc_reader r;
	struct pc_count pc;

	assert_int_equal(store_image_get(store, p->image, note_image, NULL, NULL), 0);
	if ((w->image && strcmp(w->image, path_read)) || (w->event && w->event != p->event))
		return 0;
	w->rows++;
	assert_int_equal(pc_reader_init(&r, p->data, p->size), 0);
	while (pc_reader_next(&r, &pc) == 1) {
		if (w->offset == UINT64_MAX || w->offset == pc.offset)
			w->samples += pc.count;
	}
	return 0;
}

static struct wanted profiles(const char *comm, const char *image, uint64_t offset, int64_t event)
{
	struct wanted w = {.image = image, .offset = offset, .event = event};
	struct store_filter f = {.comm = comm, .type = &blob_pc};

	assert_int_equal(store_profiles(store, &f, add_profile, &w, NULL), 0);
	return w;
}

static uint64_t samples(const char *comm, const char *image, uint64_t offset)
{
	return profiles(comm, image, offset, 0).samples;
}

static uint64_t all_samples(void)
{
	return samples(NULL, NULL, UINT64_MAX);
}

struct total_wanted {
	int32_t pid, tid, cpu; /* -1: any */
	const char *comm, *thread;
	uint64_t samples;
	size_t rows;
	int64_t started;
};

static int add_total(void *arg, const struct store_total *row, int64_t t0, int64_t t1)
{
	struct total_wanted *w = arg;

	(void)t0;
	(void)t1;
	if ((w->pid >= 0 && w->pid != row->pid) || (w->tid >= 0 && w->tid != row->tid) ||
		(w->cpu >= 0 && w->cpu != row->cpu) || (w->comm && strcmp(w->comm, row->comm)) ||
		(w->thread && strcmp(w->thread, row->thread)))
		return 0;
	w->samples += row->samples;
	w->started = row->started;
	w->rows++;
	return 0;
}

static struct total_wanted totals(int32_t pid, int32_t tid, const char *comm, const char *thread)
{
	struct total_wanted w = {.pid = pid, .tid = tid, .cpu = -1, .comm = comm, .thread = thread};

	assert_int_equal(store_totals(store, &(struct store_filter){0}, add_total, &w, NULL), 0);
	return w;
}

static void assert_counts(uint64_t attributed, uint64_t unknown)
{
	uint64_t x, y;

	attribution_counts(a, 0, &x, &y);
	assert_int_equal(x, attributed);
	assert_int_equal(y, unknown);
}

struct image_wanted {
	const char *path;
	int64_t id;
};

static int find_id(void *arg, const struct store_image *im)
{
	struct image_wanted *w = arg;

	if (!strcmp(im->path, w->path))
		w->id = im->id;
	return 0;
}

static int64_t image_named(const char *path)
{
	struct image_wanted w = {.path = path};

	assert_int_equal(store_images(store, find_id, &w, NULL), 0);
	assert_true(w.id != 0);
	return w.id;
}

/* The stored procedure with this name, and how much code was kept of it. */
static bool procedure_in(int64_t image, const char *name, size_t *code_size)
{
	struct store_procedures list;
	struct buf code = {0};
	bool found = false;

	assert_int_equal(store_procedures(store, image, &list, NULL), 0);
	*code_size = 0;
	for (size_t i = 0; i < list.n; i++) {
		if (!list.p[i].name || strcmp(list.p[i].name, name))
			continue;
		found = true;
		if (store_code(store, image, list.p[i].start, &code, NULL) == 0)
			*code_size = code.n;
	}
	buf_deinit(&code);
	store_procedures_free(&list);
	return found;
}

static bool procedure_named(const char *name, size_t *code_size)
{
	return procedure_in(image_named(self_path), name, code_size);
}

/* ---- tests ---- */

static void test_samples_reach_the_store(void **state)
{
	size_t code;

	(void)state;
	tell_program(10, PID(1), "one");
	tell_program(10, PID(2), "two");
	tell_program(10, PID(3), "two");
	tell_sample(20, PID(1), pc_of(&find_self), 3);
	tell_sample(21, PID(2), pc_of(&find_self), 400);
	tell_sample(22, PID(3), pc_of(&find_self), 500);
	tell_sample(22, PID(3), pc_of(&open_store), 2);
	assert_counts(905, 0);
	attribution_drained(a, 1000 * US);
	flush(1000);

	assert_int_equal(samples("one", self_path, offset_of(&find_self)), 3);
	assert_int_equal(samples("two", self_path, offset_of(&find_self)), 900);
	assert_int_equal(samples("two", self_path, offset_of(&open_store)), 2);
	assert_int_equal(all_samples(), 905);
	/* By name: one profile of both processes called "two". */
	assert_int_equal(profiles("two", NULL, UINT64_MAX, 0).rows, 1);
	/* Totals are by process. */
	assert_int_equal(totals(PID(2), PID(2), "two", "two").samples, 400);
	assert_int_equal(totals(PID(3), PID(3), "two", "two").samples, 502);
	/* Names at first sight, code only of what is worth it. */
	assert_true(procedure_named("find_self", &code));
	assert_true(code > 16);
	assert_true(procedure_named("open_store", &code));
	assert_int_equal(code, 0);
	assert_counts(0, 0);
}

/* Not with a few samples, nor with many that are thin on a large procedure. */
static void test_code_comes_when_it_is_worth_it(void **state)
{
	size_t code;

	(void)state;
	tell_program(10, PID(1), "one");
	tell_sample(20, PID(1), pc_of(&find_self), 3);
	flush(1000);
	assert_true(procedure_named("find_self", &code));
	assert_int_equal(code, 0);
	tell_sample(30, PID(1), pc_of(&find_self), 997);
	flush(2000);
	assert_true(procedure_named("find_self", &code));
	assert_in_range(code, 17, 1000 * 32);
	assert_int_equal(samples("one", self_path, offset_of(&find_self)), 1000);
	tell_sample(40, PID(1), pc_of(&open_store), 4);
	flush(3000);
	assert_true(procedure_named("open_store", &code));
	assert_int_equal(code, 0);
}

static void test_unknown_and_memory(void **state)
{
	(void)state;
	tell_program(10, PID(1), "one");
	tell(record_map(12, PID(1), 0x9000000, 0x1000, 0, "//anon"));
	tell_sample(20, PID(1), 0x123, 5);
	tell_sample(20, PID(1), 0x9000010, 6);
	assert_counts(6, 5);
	flush(1000);
	assert_int_equal(samples("one", "[unknown]", 0x123), 5);
	assert_int_equal(samples("one", "[anon]", 0x9000010), 6);
	assert_int_equal(all_samples(), 11);
}

static void test_file_out_of_reach(void **state)
{
	struct record r = record_map(11, PID(1), 0x400000, 0x10000, 0x1000, "/no/such/file");

	(void)state;
	r.mmap.build_id = (struct image_id){.size = 20, .bytes = {7}};
	tell(record_exec(10, PID(1), "one"));
	tell(r);
	tell_sample(20, PID(1), 0x400010, 8);
	assert_counts(8, 0);
	flush(1000);
	assert_int_equal(samples("one", "/no/such/file", 0x1010), 8);
}

static void test_exec_and_pid_reuse_in_one_drain(void **state)
{
	pid_t pid = PID(5);

	(void)state;
	tell_program(10, PID(1), "sh");
	for (uint64_t i = 0; i < 3; i++) {
		char name[16];

		snprintf(name, sizeof name, "tool%d", (int)i);
		tell(record_fork(100 + 100 * i, PID(1), pid));
		tell_program(120 + 100 * i, pid, name);
		tell(record_exit(190 + 100 * i, pid, pid));
	}
	for (uint64_t i = 0; i < 3; i++) {
		tell_sample(110 + 100 * i, pid, pc_of(&find_self), 1);
		tell_sample(150 + 100 * i, pid, pc_of(&find_self), 10 + (uint32_t)i);
	}
	attribution_drained(a, 1000 * US);
	flush(1000);
	assert_int_equal(samples("sh", self_path, UINT64_MAX), 3);
	assert_int_equal(samples("tool0", self_path, UINT64_MAX), 10);
	assert_int_equal(samples("tool1", self_path, UINT64_MAX), 11);
	assert_int_equal(samples("tool2", self_path, UINT64_MAX), 12);
	assert_int_equal(totals(pid, -1, "tool1", NULL).samples, 11);
	assert_true(
		totals(pid, -1, "tool1", NULL).started != totals(pid, -1, "tool2", NULL).started);
}

static void test_threads_events_and_idle(void **state)
{
	struct sample s = {.pid = PID(1), .tid = PID(11), .count = 3, .cpu = 1, .time = 50 * US};

	(void)state;
	tell_program(10, PID(1), "one");
	tell(record_thread(20, PID(1), PID(1), PID(11)));
	tell(record_rename(21, PID(1), PID(11), "worker"));
	s.pc = pc_of(&find_self);
	attribution_sample(a, &s, NULL);
	s.event = 1;
	attribution_sample(a, &s, NULL);
	attribution_sample(a,
		&(struct sample){
			.pc = 0xffffffff81000010, .kernel = true, .count = 100, .time = 60 * US},
		NULL);
	flush(1000);
	assert_int_equal(totals(PID(1), PID(11), "one", "worker").samples, 6);
	assert_int_equal(totals(0, 0, "swapper", "swapper").samples, 100);
	assert_int_equal(profiles("one", self_path, UINT64_MAX, events[0]).samples, 3);
	assert_int_equal(profiles("one", self_path, UINT64_MAX, events[1]).samples, 3);
	assert_int_equal(samples("swapper", "[kernel]", 0xffffffff81000010), 100);
}

static void test_by_process(void **state)
{
	(void)state;
	create(true, false);
	tell_program(10, PID(1), "two");
	tell_program(10, PID(2), "two");
	tell_sample(20, PID(1), pc_of(&find_self), 1);
	tell_sample(20, PID(2), pc_of(&find_self), 2);
	flush(1000);
	assert_int_equal(profiles("two", NULL, UINT64_MAX, 0).rows, 2);
	assert_int_equal(all_samples(), 3);
}

static void test_failed_flush_loses_nothing(void **state)
{
	int64_t right = events[0];
	struct err e = {0};
	size_t code;

	(void)state;
	tell_program(10, PID(1), "one");
	tell_sample(20, PID(1), pc_of(&find_self), 500);
	/* Written and rolled back, as when the disk is full at the commit. */
	assert_int_equal(try_flush(1000, &e), 0);
	store_rollback(store);
	assert_int_equal(all_samples(), 0);
	assert_counts(500, 0);
	/* Failed half-way. */
	events[0] = 777;
	assert_true(try_flush(1000, &e) < 0);
	assert_true(e.code < 0 && *e.text);
	store_rollback(store);
	events[0] = right;
	tell_sample(30, PID(1), pc_of(&open_store), 4);
	flush(1000);
	assert_int_equal(samples("one", self_path, offset_of(&find_self)), 500);
	assert_int_equal(samples("one", self_path, offset_of(&open_store)), 4);
	assert_int_equal(totals(PID(1), -1, NULL, NULL).samples, 504);
	assert_true(procedure_named("find_self", &code));
	assert_true(code > 16);
	assert_true(procedure_named("open_store", &code));
	assert_int_equal(attribution_refused(a, 0), 0);
	/* And nothing twice. */
	flush(2000);
	assert_int_equal(all_samples(), 504);
}

/* ---- pairs of samples ---- */

static void tell_pair(uint64_t us, pid_t pid, uint64_t last, uint64_t pc, uint64_t difference)
{
	struct driver_pair p = {.pc = pc,
		.last = last,
		.time = us * US,
		.between = 100 * US,
		.pid = (uint32_t)pid,
		.tid = (uint32_t)pid,
		.kernel = 2,
		.switched = 1,
		.changed = 1 << 3 | 1 << 12};

	p.difference[3] = difference;
	p.difference[12] = -difference;
	attribution_pair(a, &p);
}

struct anchors_read {
	struct anchor list[16];
	size_t n;
};

static int read_anchors(void *arg, const struct store_profile *p)
{
	struct anchors_read *out = arg;
	struct anchor_reader r;

	assert_int_equal(p->event, events[0]);
	assert_int_equal(p->image, image_named(self_path));
	assert_int_equal(anchor_reader_init(&r, p->data, p->size), 0);
	while (out->n < 16 && anchor_reader_next(&r, &out->list[out->n]) == 1)
		out->n++;
	return 0;
}

static struct anchors_read anchors(const char *comm)
{
	const struct store_filter f = {.comm = comm, .type = &blob_anchor};
	struct anchors_read out = {0};

	assert_int_equal(store_profiles(store, &f, read_anchors, &out, NULL), 0);
	return out;
}

static void test_pairs(void **state)
{
	struct anchors_read read;
	struct err e = {0};
	uint64_t seen, kept;

	(void)state;
	tell_program(10, PID(1), "one");
	tell_program(10, PID(2), "two");
	tell_pair(20, PID(1), pc_of(&find_self), pc_of(&find_self) + 4, 480);
	tell_pair(21, PID(1), pc_of(&find_self) + 4, pc_of(&find_self), 1ull << 50);
	tell_pair(22, PID(2), pc_of(&find_self), pc_of(&find_self), 7);
	tell_pair(23, PID(1), pc_of(&find_self), pc_of(&open_store), 8); /* two procedures */
	tell_pair(24, PID(1), 0x123, pc_of(&open_store), 8);             /* out of the blue */
	/* A flush that fails forgets nothing. */
	assert_int_equal(try_flush(1000, &e), 0);
	store_rollback(store);
	attribution_anchors(a, &seen, &kept);
	assert_int_equal(seen, 5);
	assert_int_equal(kept, 0);
	flush(1000);
	attribution_anchors(a, &seen, &kept);
	assert_int_equal(seen, 5);
	assert_int_equal(kept, 3);
	read = anchors("one");
	assert_int_equal(read.n, 2);
	assert_int_equal(read.list[0].pc, offset_of(&find_self));
	assert_int_equal(read.list[0].changed, 1 << 3 | 1 << 12);
	assert_int_equal(read.list[0].known, 0); /* no loop goes so far in this time */
	assert_int_equal(read.list[1].pc, offset_of(&find_self) + 4);
	assert_int_equal(read.list[1].last, offset_of(&find_self));
	assert_int_equal(read.list[1].known, 1 << 3 | 1 << 12);
	assert_int_equal(read.list[1].difference[3], 480);
	assert_int_equal(read.list[1].difference[12], -480);
	assert_int_equal(read.list[1].between, 100 * US);
	assert_int_equal(read.list[1].kernel, 2);
	assert_true(read.list[1].switched);
	assert_int_equal(anchors("two").n, 1);
	/* And nothing twice. */
	flush(2000);
	assert_int_equal(anchors(NULL).n, 3);
}

/* What a flush that failed had counted for a procedure does not count twice. */
static void test_failed_flushes_are_not_samples(void **state)
{
	struct err e = {0};
	size_t code;

	(void)state;
	tell_program(10, PID(1), "one");
	tell_sample(20, PID(1), pc_of(&offset_of), 2);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(try_flush(1000, &e), 0);
		store_rollback(store);
	}
	flush(1000);
	assert_true(procedure_named("offset_of", &code));
	assert_int_equal(code, 0);
}

static void test_memory_is_bounded(void **state)
{
	const uint32_t n = 1200000;
	uint64_t attributed, unknown, refused;

	(void)state;
	tell_program(10, PID(1), "one");
	for (uint32_t i = 0; i < n; i++)
		tell_sample(20, PID(1), 0x400000 + i, 1);
	attribution_counts(a, 0, &attributed, &unknown);
	refused = attribution_refused(a, 0);
	assert_true(refused > 0);
	assert_int_equal(attributed + unknown + refused, n);
	/* What is known already still counts. */
	tell_sample(30, PID(1), 0x400000, 7);
	assert_counts(attributed + 7, 0);
	assert_true(attribution_memory(a) < 48 << 20);
}

static int note_rows(void *arg, const struct store_total *row, int64_t t0, int64_t t1)
{
	(void)row;
	(void)t0;
	(void)t1;
	++*(size_t *)arg;
	return 0;
}

static void test_storm_is_summed_by_name(void **state)
{
	size_t rows = 0;

	(void)state;
	tell_program(1, PID(0), "sh");
	for (int i = 1; i <= 12000; i++) {
		uint64_t us = (uint64_t)i * 100;

		tell(record_fork(us, PID(0), PID(i)));
		tell_program(us + 10, PID(i), "true");
		tell(record_exit(us + 50, PID(i), PID(i)));
		tell_sample(us + 20, PID(i), pc_of(&find_self), 1);
		if (i % 3000 == 0)
			attribution_drained(a, (us + 60) * US);
		if (i == 9000) { /* some whose rows are gone run on a little */
			tell_program(us + 60, PID(20000), "late");
			tell_sample(us + 61, PID(20000), pc_of(&find_self), 1);
			tell_sample(us + 61, PID(8990), pc_of(&find_self), 5);
			tell_sample(us + 61, PID(8991), pc_of(&find_self), 1);
		}
	}
	for (int i = 0; i < 100; i++)
		tell_sample(2000000, PID(0), pc_of(&find_self), 1);
	attribution_drained(a, 3000000 * US);
	flush(1000);
	assert_int_equal(samples("true", self_path, UINT64_MAX), 12006);
	assert_int_equal(totals(-1, -1, "true", "true").samples, 12006);
	assert_int_equal(samples("late", self_path, UINT64_MAX), 1);
	assert_int_equal(totals(PID(8990), -1, "true", "true").samples, 5);
	assert_int_equal(totals(PID(0), -1, "sh", NULL).samples, 100);
	assert_int_equal(store_totals(store, &(struct store_filter){0}, note_rows, &rows, NULL), 0);
	assert_true(rows < 8192);
}

/* The kernel's own symbols, where this process may read them. */
static void test_kernel_symbols(void **state)
{
	uint64_t address = 0;
	char name[256], type;
	size_t code;
	FILE *f = fopen("/proc/kallsyms", "r");

	(void)state;
	while (f && fscanf(f, "%lx %c %255s%*[^\n]", &address, &type, name) == 3 &&
		strcmp(name, "schedule"))
		;
	if (f)
		fclose(f);
	if (!address || strcmp(name, "schedule"))
		skip();
	create(false, true);
	assert_false(attribution_kernel_hidden(a));
	attribution_sample(a,
		&(struct sample){.pc = address + 4, .kernel = true, .count = 9, .time = 60 * US},
		NULL);
	flush(1000);
	assert_int_equal(samples("swapper", "[kernel]", UINT64_MAX), 9);
	assert_int_equal(kind_read, IMAGE_KERNEL);
	assert_true(procedure_in(image_named("[kernel]"), "schedule", &code));
}

/* The whole way with a real process: this one. */
static void test_itself(void **state)
{
	uint64_t now = io_clock_ns(CLOCK_MONOTONIC) / US;
	size_t code;
	pid_t self = getpid();

	(void)state;
	attribution_scan(a, &self, 1);
	tell_sample(now, self, (uint64_t)(uintptr_t)&find_self, 1000);
	assert_counts(1000, 0);
	attribution_drained(a, now * US);
	flush(1000);
	assert_int_equal(samples(NULL, self_path, offset_of(&find_self)), 1000);
	assert_true(procedure_named("find_self", &code));
	assert_true(code > 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_samples_reach_the_store, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_code_comes_when_it_is_worth_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unknown_and_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_file_out_of_reach, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_exec_and_pid_reuse_in_one_drain, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_threads_events_and_idle, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_by_process, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_failed_flush_loses_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pairs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_failed_flushes_are_not_samples, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_memory_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_storm_is_summed_by_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kernel_symbols, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_itself, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
