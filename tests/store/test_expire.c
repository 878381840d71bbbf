#include "store/fixture.h"

static int count_image(void *arg, const struct store_image *im)
{
	(void)im;
	++*(int *)arg;
	return 0;
}

static int count_epoch(void *arg, const struct store_epoch *epoch)
{
	(void)epoch;
	++*(int *)arg;
	return 0;
}

static int count_process(void *arg, const struct store_process *p)
{
	(void)p;
	++*(int *)arg;
	return 0;
}

struct counts {
	int images, epochs, processes;
};

static struct counts count_all(struct fixture *f)
{
	struct counts c = {0};

	ok(f, store_images(f->s, count_image, &c.images, &f->e));
	ok(f, store_epochs(f->s, count_epoch, &c.epochs, &f->e));
	ok(f, store_processes(f->s, count_process, &c.processes, &f->e));
	return c;
}

/* A fresh handle, which has given out no ids. */
static void reopen(struct fixture *f)
{
	store_close(f->s);
	f->s = NULL;
	ok(f, store_open(f->path, STORE_UPDATE, &f->s, &f->e));
}

static off_t file_size(struct fixture *f)
{
	struct stat st;

	assert_int_equal(stat(f->path, &st), 0);
	return st.st_size;
}

static void removes_by_age(void **state)
{
	struct fixture *f = *state;
	uint64_t newest;

	ok(f, store_begin(f->s, &f->e));
	add_flush(f, 0, 100);
	add_flush(f, 1, 100);
	newest = add_flush(f, 2, 100);
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_expire(f->s, T0, 0, &f->e));
	assert_int_equal(profile_rows(f, NULL), 3);
	ok(f, store_expire(f->s, T0 + 2 * MINUTE, 0, &f->e));
	assert_int_equal(profile_rows(f, NULL), 1);
	assert_int_equal(profile_samples(f, NULL), newest);
	assert_int_equal(total_samples(f, NULL), newest);
	assert_sound(f);
}

/* Two epochs; the first with an image and a process of its own, and code. */
static void fill_two_epochs(struct fixture *f)
{
	static const struct range range = {0x10, 4};
	static const struct store_procedure one = {
		{0x10, &range, 1, PROCEDURE_SYMBOL, "f"}, "abcd", 4};
	struct store_image libc = sample_image("/usr/lib/libc.so.6", 3), only_totals;
	struct store_total total = {5, 5, T0, "x", "x", "", 0, 0, 0, 0};
	int64_t gzip = f->image;

	ok(f, store_begin(f->s, &f->e));
	ok(f, store_procedures_add(f->s, f->image, &one, 1, &f->e));
	add_flush(f, 0, 100);
	ok(f, store_epoch_end(f->s, f->epoch, T0 + MINUTE, &f->e));
	fixture_fill(f);
	assert_int_equal(f->image, gzip);
	ok(f, store_image(f->s, &libc, &f->image, &f->e));
	ok(f, store_procedures_add(f->s, f->image, &one, 1, &f->e));
	add_flush(f, 1, 100);
	only_totals = sample_image("/usr/bin/only-in-totals", 4);
	ok(f, store_image(f->s, &only_totals, &total.image, &f->e));
	total.event = f->event.id;
	ok(f, store_totals_add(f->s, f->epoch, T0 + MINUTE, T0 + 2 * MINUTE, &total, 1, &f->e));
	ok(f, store_commit(f->s, &f->e));
}

static void orphans_go_too(void **state)
{
	struct fixture *f = *state;
	struct store_procedures list = {0};
	int64_t first_image = f->image;
	struct counts c;

	fill_two_epochs(f);
	reopen(f);
	c = count_all(f);
	assert_int_equal(c.images, 3);
	assert_int_equal(c.epochs, 2);
	assert_int_equal(c.processes, 2);
	ok(f, store_expire(f->s, T0 + MINUTE, 0, &f->e));
	c = count_all(f);
	assert_int_equal(c.images, 2); /* libc, and the one that only totals name */
	assert_int_equal(c.epochs, 1);
	assert_int_equal(c.processes, 1);
	ok(f, store_procedures(f->s, first_image, &list, &f->e));
	assert_int_equal(list.n, 0);
	store_procedures_free(&list);
	assert_sound(f);

	/* The last epoch has no end: its writer may still be there. */
	ok(f, store_expire(f->s, INT64_MAX, 0, &f->e));
	c = count_all(f);
	assert_int_equal(c.images, 0);
	assert_int_equal(c.epochs, 1);
	assert_sound(f);
}

static void ids_in_use_stay(void **state)
{
	struct fixture *f = *state;

	ok(f, store_begin(f->s, &f->e));
	add_flush(f, 0, 100);
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_expire(f->s, INT64_MAX, 0, &f->e));
	assert_int_equal(profile_rows(f, NULL), 0);
	/* The daemon goes on with what it was given before. */
	ok(f, store_begin(f->s, &f->e));
	add_flush(f, 1, 100);
	ok(f, store_commit(f->s, &f->e));
	assert_int_equal(profile_rows(f, NULL), 1);
	assert_sound(f);
}

/* Another writer has begun an epoch since, which would close ours if nobody held it. */
static void an_epoch_in_use_stays(void **state)
{
	struct fixture *f = *state, other = {0};
	int64_t later;

	strcpy(other.path, f->path);
	ok(&other, store_open(other.path, STORE_UPDATE, &other.s, &other.e));
	ok(&other, store_begin(other.s, &other.e));
	ok(&other, store_epoch_start(other.s, f->host, T0 + 9, "", &later, &other.e));
	ok(&other, store_commit(other.s, &other.e));
	store_close(other.s);

	ok(f, store_expire(f->s, INT64_MAX, 0, &f->e));
	assert_int_equal(count_all(f).epochs, 2);
	ok(f, store_begin(f->s, &f->e));
	ok(f, store_epoch_end(f->s, f->epoch, T0 + 10, &f->e)); /* and now it does not */
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_expire(f->s, INT64_MAX, 0, &f->e));
	assert_int_equal(count_all(f).epochs, 1);
	assert_sound(f);
}

/* A profile that does not compress to nothing. */
static void add_bulk(struct fixture *f, uint64_t number)
{
	enum { N = 20000 };
	struct pc_count *list = xcalloc(N, sizeof *list);
	struct store_profile p = {.epoch = f->epoch,
		.event = f->event.id,
		.image = f->image,
		.process = f->process,
		.t0 = T0 + (int64_t)number * MINUTE,
		.t1 = T0 + (int64_t)(number + 1) * MINUTE,
		.type = &blob_pc};
	struct store_account account = {.scale = 1};
	struct buf data = {0};
	uint32_t x = (uint32_t)number + 1;

	for (uint64_t i = 0, offset = 0; i < N; i++) {
		x = x * 1664525 + 1013904223;
		offset += 1 + (x >> 20);
		list[i] = (struct pc_count){offset, 1 + (x >> 16) % 4};
		account.attributed += list[i].count;
	}
	pack_pcs(list, N, &data);
	p.data = data.p;
	p.size = data.n;
	ok(f, store_begin(f->s, &f->e));
	ok(f, store_profile_add(f->s, &p, &f->e));
	ok(f, store_account_add(f->s, p.event, p.t0, p.t1, &account, &f->e));
	ok(f, store_commit(f->s, &f->e));
	buf_deinit(&data);
	free(list);
}

static void removes_by_size(void **state)
{
	struct fixture *f = *state;
	struct store_filter first = {.t1 = T0 + MINUTE}, last = {.t0 = T0 + 19 * MINUTE};
	int before;

	for (uint64_t i = 0; i < 20; i++)
		add_bulk(f, i);
	reopen(f);
	assert_true(file_size(f) > 500000);
	before = profile_rows(f, NULL);
	ok(f, store_expire(f->s, 0, 500000, &f->e));
	assert_true(file_size(f) <= 500000);
	assert_true(file_size(f) > 350000); /* and not much more than it had to */
	assert_true(profile_rows(f, NULL) < before);
	assert_int_equal(profile_rows(f, &first), 0);
	assert_int_equal(profile_rows(f, &last), 1);
	assert_sound(f);
}

static void works_inside_a_transaction(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 0; i < 10; i++)
		add_bulk(f, i);
	ok(f, store_begin(f->s, &f->e));
	ok(f, store_expire(f->s, T0 + 9 * MINUTE, 0, &f->e));
	store_rollback(f->s);
	assert_int_equal(profile_rows(f, NULL), 10);
	ok(f, store_begin(f->s, &f->e));
	ok(f, store_expire(f->s, T0 + 9 * MINUTE, 0, &f->e));
	ok(f, store_commit(f->s, &f->e));
	assert_int_equal(profile_rows(f, NULL), 1);
	assert_true(file_size(f) < 200000);
	assert_sound(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(removes_by_age, setup, teardown),
		cmocka_unit_test_setup_teardown(orphans_go_too, setup, teardown),
		cmocka_unit_test_setup_teardown(ids_in_use_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(an_epoch_in_use_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(removes_by_size, setup, teardown),
		cmocka_unit_test_setup_teardown(works_inside_a_transaction, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
