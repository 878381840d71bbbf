/* Killed writers, full disks, cut and flipped files, and many at once. */
#include "store/fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

/*
 * Runs a test function in a process of its own. The parent has no database open then: SQLite's
 * state must not come through a fork.
 */
static pid_t spawn(CMUnitTestFunction fn, void *state)
{
	const struct CMUnitTest one[] = {
		{"in a child", fn, NULL, NULL, state},
	};
	pid_t child;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		int failed = cmocka_run_group_tests(one, NULL, NULL);

		fflush(NULL);
		_exit(failed);
	}
	return child;
}

static void reap(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	if (status)
		print_error("child: status 0x%x\n", status);
	assert_int_equal(status, 0);
}

static int setup_closed(void **state)
{
	struct fixture *f;

	setup(state);
	f = *state;
	store_close(f->s);
	f->s = NULL;
	return 0;
}

/* ---- killed writers ---- */

struct killing {
	struct fixture *f;
	int ends[2];
};

/* What a daemon does, and says after each commit how many flushes are in. */
static void write_for_ever(void **state)
{
	struct killing *k = *state;
	struct fixture *f = k->f;
	int64_t flushes = 0;

	ok(f, store_open(f->path, STORE_WRITE, &f->s, &f->e));
	ok(f, store_begin(f->s, &f->e));
	fixture_fill(f);
	ok(f, store_commit(f->s, &f->e));
	for (;;) {
		ok(f, store_begin(f->s, &f->e));
		for (int i = 0; i < 3; i++)
			add_flush(f, (uint64_t)flushes++, 2000);
		ok(f, store_commit(f->s, &f->e));
		assert_int_equal(write(k->ends[1], &flushes, 8), 8);
		if (flushes % 30 == 0)
			ok(f, store_compact(f->s, INT64_MAX, 10 * MINUTE, &f->e));
	}
}

/* Kills a writer after a while that the round decides; returns the flushes it reported. */
static int64_t kill_writer(struct fixture *f, unsigned round)
{
	struct timespec pause = {.tv_nsec = (long)(round * 7919 % 40) * 1000000 + 500000};
	struct killing k = {.f = f};
	int64_t reported = 0;
	pid_t child;
	int status;

	assert_int_equal(pipe2(k.ends, O_CLOEXEC), 0);
	child = spawn(write_for_ever, &k);
	close(k.ends[1]);
	nanosleep(&pause, NULL);
	kill(child, SIGKILL);
	while (read(k.ends[0], &reported, 8) == 8)
		;
	close(k.ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status)); /* and not stopped by an error of its own */
	return reported;
}

static int sum_attributed(
	void *arg, const struct store_event *event, const struct store_account *sum)
{
	(void)event;
	*(uint64_t *)arg += sum->attributed + sum->unknown;
	return 0;
}

static void a_killed_writer_loses_only_the_open_transaction(void **state)
{
	struct fixture *f = *state;
	uint64_t flush[3000] = {0}, expect = 0, counted;
	struct buf data = {0};

	for (size_t i = 0; i < 3000; i++) {
		data.n = 0;
		flush[i] = sample_pcs(i, 2000, &data);
	}
	buf_deinit(&data);
	unlink(f->path); /* the first rounds may be killed while they make the file */
	for (unsigned round = 0; round < 20; round++) {
		int64_t reported = kill_writer(f, round);
		uint64_t least = expect, found;

		assert_true(reported + 3 <= 3000);
		for (int64_t i = 0; i < reported; i++)
			least += flush[i];
		/* A reader first: what it finds is whole. */
		f->s = NULL;
		if (store_open(f->path, round % 2 ? STORE_READ : STORE_WRITE, &f->s, &f->e)) {
			assert_int_equal(reported, 0);
			assert_true(f->e.code == -ENOENT || f->e.code == -EBADMSG);
			continue;
		}
		found = profile_samples(f, NULL);
		/* One commit may have been finished but not reported. */
		if (found != least)
			for (int64_t i = reported; i < reported + 3; i++)
				least += flush[i];
		assert_int_equal(found, least);
		counted = 0;
		ok(f, store_accounts(f->s, NULL, sum_attributed, &counted, &f->e));
		assert_int_equal(counted, found);
		assert_int_equal(total_samples(f, NULL), found);
		assert_sound(f);
		expect = found;
		store_close(f->s);
		f->s = NULL;
	}
	assert_true(expect > 0);
}

/* ---- full disks ---- */

/* Writes until it fails; returns the flushes that are in. */
static uint64_t write_until_full(struct fixture *f, uint64_t most)
{
	uint64_t n = 0;
	int r = 0;

	for (; n < most; n++) {
		struct buf data = {0};
		struct store_profile p = {.epoch = f->epoch,
			.event = f->event.id,
			.image = f->image,
			.process = f->process,
			.t0 = T0 + (int64_t)n * MINUTE,
			.t1 = T0 + (int64_t)(n + 1) * MINUTE,
			.type = &blob_pc};
		struct store_account account = {
			.attributed = sample_pcs(n * 7919, 40000, &data), .scale = 1};

		p.data = data.p;
		p.size = data.n;
		f->e = (struct err){0};
		r = store_begin(f->s, &f->e);
		if (!r)
			r = store_profile_add(f->s, &p, &f->e);
		if (!r)
			r = store_account_add(f->s, p.event, p.t0, p.t1, &account, &f->e);
		if (!r)
			r = store_commit(f->s, &f->e);
		else
			store_rollback(f->s);
		buf_deinit(&data);
		if (r)
			break;
	}
	if (n < most) {
		if (r != -ENOSPC)
			print_error("%s\n", f->e.text);
		assert_int_equal(r, -ENOSPC);
		assert_non_null(strstr(f->e.text, f->path));
		assert_non_null(strstr(f->e.text, "needed"));
		assert_non_null(strstr(f->e.text, "culprit db expire"));
	}
	return n;
}

static void write_with_limit(void **state)
{
	struct fixture *f = *state;
	struct rlimit limit = {400 << 10, RLIM_INFINITY};
	uint64_t n;

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	ok(f, store_open(f->path, STORE_WRITE, &f->s, &f->e));
	n = write_until_full(f, 10000);
	assert_true(n > 0 && n < 10000);
	assert_int_equal(profile_rows(f, NULL), n);
	/* With room again it goes on. */
	limit.rlim_cur = RLIM_INFINITY;
	setrlimit(RLIMIT_FSIZE, &limit);
	ok(f, store_begin(f->s, &f->e));
	add_flush(f, n, 100);
	ok(f, store_commit(f->s, &f->e));
	assert_int_equal(profile_rows(f, NULL), n + 1);
	store_close(f->s);
}

static void a_file_size_limit(void **state)
{
	struct fixture *f = *state;

	reap(spawn(write_with_limit, f));
	ok(f, store_open(f->path, STORE_READ, &f->s, &f->e));
	assert_sound(f);
}

/* In a mount namespace of its own, on a disk of 1 MB. */
static void write_to_small_disk(void **state)
{
	struct fixture *f = *state;
	uint64_t n;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("none", f->dir, "tmpfs", 0, "size=1m"))
		skip();
	ok(f, store_open(f->path, STORE_WRITE, &f->s, &f->e));
	ok(f, store_begin(f->s, &f->e));
	fixture_fill(f);
	ok(f, store_commit(f->s, &f->e));
	n = write_until_full(f, 10000);
	assert_true(n > 0 && n < 10000);
	assert_int_equal(profile_rows(f, NULL), n);
	assert_sound(f);
	/* Closing and opening again works without room too. */
	store_close(f->s);
	f->s = NULL;
	ok(f, store_open(f->path, STORE_UPDATE, &f->s, &f->e));
	assert_sound(f);
	assert_int_equal(profile_rows(f, NULL), n);
	store_close(f->s);
	f->s = NULL;
	assert_int_equal(mount("none", f->dir, NULL, MS_REMOUNT, "size=4m"), 0);
	ok(f, store_open(f->path, STORE_UPDATE, &f->s, &f->e));
	ok(f, store_expire(f->s, T0 + (int64_t)n / 2 * MINUTE, 0, &f->e));
	assert_int_equal(profile_rows(f, NULL), n - n / 2);
	assert_sound(f);
	store_close(f->s);
	f->s = NULL;
	/* Not even room for an empty database. */
	assert_int_equal(unlink(f->path), 0);
	assert_int_equal(mount("none", f->dir, NULL, MS_REMOUNT, "size=20k"), 0);
	fails(f, store_open(f->path, STORE_WRITE, &f->s, &f->e), -ENOSPC, "needed");
}

static void a_full_disk(void **state)
{
	if (geteuid())
		skip();
	reap(spawn(write_to_small_disk, *state));
}

/* ---- damaged files ---- */

static struct buf read_whole(const char *path)
{
	struct buf b = {0};
	FILE *file = fopen(path, "r");
	int c;

	assert_non_null(file);
	while ((c = getc(file)) != EOF)
		buf_u8(&b, (uint8_t)c);
	fclose(file);
	return b;
}

static void write_whole(const char *path, const uint8_t *p, size_t n)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(p, 1, n, file), n);
	assert_int_equal(fclose(file), 0);
}

static int ignore_image(void *arg, const struct store_image *im)
{
	struct store_procedures list = {0};
	struct fixture *f = arg;

	if (!store_procedures(f->s, im->id, &list, &f->e))
		store_procedures_free(&list);
	return 0;
}

/* Reads all there is; returns whether every call succeeded, and the samples. */
static bool read_all(struct fixture *f, uint64_t *samples)
{
	uint64_t totals = 0;

	*samples = 0;
	return !store_profiles(f->s, NULL, add_profile_samples, samples, &f->e) &&
	       !store_totals(f->s, NULL, add_total_samples, &totals, &f->e) &&
	       !store_images(f->s, ignore_image, f, &f->e) && totals == *samples;
}

/*
 * Opens a damaged file and reads everything. Nothing may crash; what store_check calls sound must
 * give the right sum.
 */
static bool survives(struct fixture *f, uint64_t samples)
{
	uint64_t got;
	bool whole;
	int faults = 0;

	f->e = (struct err){0};
	if (store_open(f->path, STORE_READ, &f->s, &f->e)) {
		assert_true(f->e.text[0] && !strchr(f->e.text, '\n'));
		f->s = NULL;
		return false;
	}
	whole = read_all(f, &got);
	if (store_check(f->s, count_fault, &faults, &f->e))
		faults++;
	if (!faults) {
		assert_true(whole);
		assert_int_equal(got, samples);
	}
	store_close(f->s);
	f->s = NULL;
	return !faults;
}

/* A small database with one of everything; closes it. */
static uint64_t make_victim(struct fixture *f)
{
	static const struct range range = {0x10, 4};
	static const struct store_procedure one = {
		{0x10, &range, 1, PROCEDURE_SYMBOL, "f"}, "abcd", 4};
	uint64_t samples = 0;

	ok(f, store_begin(f->s, &f->e));
	ok(f, store_procedures_add(f->s, f->image, &one, 1, &f->e));
	for (uint64_t i = 0; i < 30; i++)
		samples += add_flush(f, i, 500);
	ok(f, store_commit(f->s, &f->e));
	store_close(f->s);
	f->s = NULL;
	return samples;
}

static void truncated_files(void **state)
{
	struct fixture *f = *state;
	uint64_t samples = make_victim(f);
	struct buf whole = read_whole(f->path);

	assert_true(survives(f, samples));
	for (size_t n = 0; n < whole.n; n += n < 200 ? 9 : 1021) {
		write_whole(f->path, whole.p, n);
		assert_false(survives(f, samples));
	}
	buf_deinit(&whole);
}

static void flipped_bits(void **state)
{
	struct fixture *f = *state;
	uint64_t samples = make_victim(f);
	struct buf whole = read_whole(f->path);
	uint32_t x = 12345;
	int found = 0;

	for (int round = 0; round < 400; round++) {
		x = x * 1664525 + 1013904223;
		/* Half of them in the first page, which decides most. */
		size_t at = (x >> 1) % (round % 2 ? whole.n : 4096);
		uint8_t was = whole.p[at];

		whole.p[at] ^= (uint8_t)(1 << round % 8);
		write_whole(f->path, whole.p, whole.n);
		found += !survives(f, samples);
		whole.p[at] = was;
	}
	assert_true(found > 50);
	buf_deinit(&whole);
}

/* ---- many at once ---- */

#define ROUNDS 25

/* Every state that a reader sees is whole: profiles, totals and accounting agree. */
static void read_while_written(void **state)
{
	struct fixture *f = *state;
	uint64_t last = 0;

	while (last < ROUNDS) {
		uint64_t counted = 0, samples, rows;

		ok(f, store_open(f->path, STORE_READ, &f->s, &f->e));
		ok(f, store_begin(f->s, &f->e));
		samples = profile_samples(f, NULL);
		assert_int_equal(total_samples(f, NULL), samples);
		ok(f, store_accounts(f->s, NULL, sum_attributed, &counted, &f->e));
		assert_int_equal(counted, samples);
		rows = (uint64_t)profile_rows(f, NULL);
		ok(f, store_commit(f->s, &f->e));
		store_close(f->s);
		f->s = NULL;
		assert_true(rows >= last);
		last = rows;
	}
}

static void two_readers_and_a_writer(void **state)
{
	struct fixture *f = *state;
	pid_t readers[2];

	for (int i = 0; i < 2; i++)
		readers[i] = spawn(read_while_written, f);
	ok(f, store_open(f->path, STORE_WRITE, &f->s, &f->e));
	for (uint64_t i = 0; i < ROUNDS; i++) {
		ok(f, store_begin(f->s, &f->e));
		add_flush(f, i, 3000);
		ok(f, store_commit(f->s, &f->e));
	}
	store_close(f->s); /* also while readers are there */
	f->s = NULL;
	for (int i = 0; i < 2; i++)
		reap(readers[i]);
	ok(f, store_open(f->path, STORE_WRITE, &f->s, &f->e));
	assert_int_equal(profile_rows(f, NULL), ROUNDS);
	assert_sound(f);
}

static void make_and_fill(void **state)
{
	struct fixture *f = *state;

	ok(f, store_open(f->path, STORE_WRITE, &f->s, &f->e));
	ok(f, store_begin(f->s, &f->e));
	fixture_fill(f);
	add_flush(f, 0, 100);
	ok(f, store_commit(f->s, &f->e));
	store_close(f->s);
}

/* Several make the same file at the same moment: one of them does, the others find it. */
static void made_by_many(void **state)
{
	struct fixture *f = *state;
	pid_t children[4];

	unlink(f->path);
	for (int i = 0; i < 4; i++)
		children[i] = spawn(make_and_fill, f);
	for (int i = 0; i < 4; i++)
		reap(children[i]);
	ok(f, store_open(f->path, STORE_READ, &f->s, &f->e));
	assert_int_equal(profile_rows(f, NULL), 4);
	assert_sound(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_killed_writer_loses_only_the_open_transaction, setup_closed, teardown),
		cmocka_unit_test_setup_teardown(a_file_size_limit, setup_closed, teardown),
		cmocka_unit_test_setup_teardown(a_full_disk, setup_closed, teardown),
		cmocka_unit_test_setup_teardown(truncated_files, setup, teardown),
		cmocka_unit_test_setup_teardown(flipped_bits, setup, teardown),
		cmocka_unit_test_setup_teardown(two_readers_and_a_writer, setup_closed, teardown),
		cmocka_unit_test_setup_teardown(made_by_many, setup_closed, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
