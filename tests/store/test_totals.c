#include "store/fixture.h"
#include "store/store_internal.h"

static const struct store_total odd[] = {
	{0, 0, 0, "swapper", "swapper", "", 0, 1, 1, 1},
	{1000, 1000, T0, "java", "main", "/a", 0, 1, 1, 100},
	{1000, 1007, T0, "java", "GC", "/a", 1, 2, 1, 7},
	{1000, 1007, T0, "java", "GC", "/a", 1, 2, 2, UINT64_MAX},
	{1000, 1000, T0 + 9, "java", "java", "/a", -1, 2, 2, 3}, /* the pid again */
	{INT32_MAX, INT32_MAX, INT64_MAX, "", "", "", INT32_MAX, INT64_MAX, INT64_MAX, 1},
	{-1, -1, INT64_MIN, "x", "y", "z", INT32_MIN, 0, 0, 1},
};
#define NODD (sizeof odd / sizeof *odd)

static bool same_row(const struct store_total *a, const struct store_total *b)
{
	return a->pid == b->pid && a->tid == b->tid && a->started == b->started &&
	       !strcmp(a->comm, b->comm) && !strcmp(a->thread, b->thread) &&
	       !strcmp(a->cgroup, b->cgroup) && a->cpu == b->cpu && a->image == b->image &&
	       a->event == b->event && a->samples == b->samples;
}

struct matching {
	bool found[NODD];
	size_t n;
};

static int match(void *arg, const struct store_total *row)
{
	struct matching *m = arg;

	m->n++;
	for (size_t i = 0; i < NODD; i++)
		if (same_row(row, &odd[i]) && !m->found[i]) {
			m->found[i] = true;
			return 0;
		}
	fail();
	return 0;
}

static void packs_every_value(void **state)
{
	struct matching m = {0};
	struct buf raw = {0};

	(void)state;
	totals_encode(odd, NODD, &raw);
	assert_int_equal(totals_decode(raw.p, raw.n, match, &m), 0);
	assert_int_equal(m.n, NODD);
	raw.n = 0;
	totals_encode(NULL, 0, &raw);
	assert_int_equal(totals_decode(raw.p, raw.n, match, &m), 0);
	assert_int_equal(m.n, NODD);
	buf_deinit(&raw);
}

static int ignore(void *arg, const struct store_total *row)
{
	(void)arg;
	assert_non_null(row->comm);
	return 0;
}

static void damage_is_refused(void **state)
{
	struct buf raw = {0};

	(void)state;
	totals_encode(odd, NODD, &raw);
	for (size_t n = 0; n < raw.n; n++) {
		uint8_t *part = xmemdup(raw.p, n);

		assert_int_equal(totals_decode(part, n, ignore, NULL), -EBADMSG);
		free(part);
	}
	buf_u8(&raw, 0);
	assert_int_equal(totals_decode(raw.p, raw.n, ignore, NULL), -EBADMSG);
	raw.n--;
	/* The numbers of strings, tasks and rows come first, a byte each. */
	raw.p[2]++;
	assert_int_equal(totals_decode(raw.p, raw.n, ignore, NULL), -EBADMSG);
	raw.p[1]--;
	raw.p[2] -= 2; /* the last task has one row, which is left over in the columns */
	assert_int_equal(totals_decode(raw.p, raw.n, ignore, NULL), -EBADMSG);
	buf_deinit(&raw);
}

static void filters(void **state)
{
	struct fixture *f = *state;
	struct store_image other = sample_image("/usr/lib/libc.so.6", 3);
	struct store_event faults = {.epoch = f->epoch, .name = "page-faults", .unit = "events"};
	int64_t libc, epoch = f->epoch;

	ok(f, store_begin(f->s, &f->e));
	ok(f, store_image(f->s, &other, &libc, &f->e));
	ok(f, store_event(f->s, &faults, &f->e));
	const struct store_total rows[] = {
		{10, 10, T0, "gzip", "gzip", "/a", 0, f->image, f->event.id, 1},
		{10, 11, T0, "gzip", "two", "/a", 1, libc, f->event.id, 2},
		{20, 20, T0, "bash", "bash", "/b", 1, libc, faults.id, 4},
	};
	const struct store_total later[] = {
		{20, 20, T0, "bash", "bash", "/b", 1, libc, f->event.id, 8},
	};
	ok(f, store_totals_add(f->s, f->epoch, T0, T0 + MINUTE, rows, 3, &f->e));
	ok(f, store_totals_add(f->s, f->epoch, T0 + MINUTE, T0 + 2 * MINUTE, later, 1, &f->e));
	ok(f, store_totals_add(f->s, f->epoch, T0 + 2 * MINUTE, T0 + 3 * MINUTE, NULL, 0, &f->e));
	ok(f, store_commit(f->s, &f->e));
	const struct {
		struct store_filter filter;
		uint64_t sum;
	} expect[] = {
		{{0}, 15},
		{{.pid = 20}, 12},
		{{.comm = "g*"}, 3},
		{{.image = "libc*"}, 14},
		{{.image = "0303"}, 14},
		{{.event = "page-faults"}, 4},
		{{.event = "nothing"}, 0},
		{{.t0 = T0 + MINUTE}, 8},
		{{.t1 = T0 + MINUTE}, 7},
		{{.epochs = &epoch, .nepochs = 1, .pid = 10, .image = "libc*"}, 2},
	};
	for (size_t i = 0; i < sizeof expect / sizeof *expect; i++)
		assert_int_equal(total_samples(f, &expect[i].filter), expect[i].sum);
}

static int stop(void *arg, const struct store_total *row, int64_t t0, int64_t t1)
{
	(void)row;
	(void)t0;
	(void)t1;
	++((int *)arg)[0];
	return ((int *)arg)[1];
}

static void callbacks_stop(void **state)
{
	struct fixture *f = *state;
	int calls[2] = {0, 1};

	ok(f, store_begin(f->s, &f->e));
	add_flush(f, 0, 5);
	add_flush(f, 1, 5);
	ok(f, store_commit(f->s, &f->e));
	assert_int_equal(store_totals(f->s, NULL, stop, calls, &f->e), 0);
	assert_int_equal(calls[0], 1);
	calls[1] = -EINTR;
	assert_int_equal(store_totals(f->s, NULL, stop, calls, &f->e), -EINTR);
	calls[1] = -EBADMSG; /* an error of the caller is not damage of ours */
	f->e.text[0] = 0;
	assert_int_equal(store_totals(f->s, NULL, stop, calls, &f->e), -EBADMSG);
	assert_string_equal(f->e.text, "");
}

/* ---- sums ---- */

static uint64_t samples_where(
	const struct store_total *rows, size_t n, int32_t pid, int32_t cpu, const char *comm)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		if ((pid < 0 || rows[i].pid == pid) && (cpu < 0 || rows[i].cpu == cpu) &&
			(!comm || !strcmp(rows[i].comm, comm)))
			sum += rows[i].samples;
	return sum;
}

static void small_processes_fold(void **state)
{
	enum { SHORT = 5000 };
	struct store_total *rows = xcalloc(SHORT + 2, sizeof *rows);
	struct totals_sum *sum = totals_sum_create();
	const struct store_total *out;
	struct buf raw = {0};
	size_t n;

	(void)state;
	rows[0] = (struct store_total){7, 7, T0, "big", "big", "", 0, 1, 1, 20000};
	rows[1] = (struct store_total){8, 8, T0, "rare", "rare", "", 1, 1, 2, 3};
	for (int i = 0; i < SHORT; i++)
		rows[2 + i] = (struct store_total){100 + i, 100 + i, T0 + i, i % 2 ? "sh" : "ls",
			i % 2 ? "sh" : "ls", "", i % 4 / 2, 1, 1, 1 + i % 3};
	totals_encode(rows, SHORT + 2, &raw);
	assert_int_equal(totals_sum_add(sum, raw.p, raw.n), 0);
	assert_int_equal(totals_sum_add(sum, raw.p, raw.n), 0);
	n = totals_sum_rows(sum, &out);
	assert_int_equal(n, 2 + 2 * 2); /* two comms on two CPUs */
	assert_int_equal(samples_where(out, n, 7, 0, "big"), 40000);
	assert_int_equal(samples_where(out, n, 8, 1, "rare"), 6); /* all of its event */
	for (int cpu = 0; cpu < 2; cpu++) {
		assert_int_equal(samples_where(out, n, 0, cpu, "sh"),
			2 * samples_where(rows, SHORT + 2, -1, cpu, "sh"));
		assert_int_equal(samples_where(out, n, 0, cpu, "ls"),
			2 * samples_where(rows, SHORT + 2, -1, cpu, "ls"));
	}
	assert_int_equal(totals_sum_add(sum, raw.p, raw.n - 1), -EBADMSG);
	totals_sum_destroy(sum);
	buf_deinit(&raw);
	free(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packs_every_value),
		cmocka_unit_test(damage_is_refused),
		cmocka_unit_test_setup_teardown(filters, setup, teardown),
		cmocka_unit_test_setup_teardown(callbacks_stop, setup, teardown),
		cmocka_unit_test(small_processes_fold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
