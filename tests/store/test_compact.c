#include "store/fixture.h"

static int add_lost(void *arg, const struct store_event *event, const struct store_account *sum)
{
	(void)event;
	*(uint64_t *)arg += sum->lost;
	return 0;
}

static void merges_by_stretch(void **state)
{
	struct fixture *f = *state;
	struct store_filter old = {.t1 = T0 + 5 * MINUTE};
	uint64_t samples = 0, lost = 0;

	/* T0 is 13 minutes into a span of 40 minutes. */
	assert_int_equal(T0 / MINUTE % 40, 13);
	ok(f, store_begin(f->s, &f->e));
	for (uint64_t i = 0; i < 60; i++)
		samples += add_flush(f, i, 50 + i);
	ok(f, store_commit(f->s, &f->e));
	assert_int_equal(profile_rows(f, NULL), 60);

	ok(f, store_compact(f->s, T0 + 50 * MINUTE, 40 * MINUTE, &f->e));
	/* Minutes 0 to 26, 27 to 49 (those that ended), and the rest one by one. */
	assert_int_equal(profile_rows(f, NULL), 2 + 10);
	assert_int_equal(profile_samples(f, NULL), samples);
	assert_int_equal(total_samples(f, NULL), samples);
	ok(f, store_accounts(f->s, NULL, add_lost, &lost, &f->e));
	assert_int_equal(lost, 120);
	assert_int_equal(profile_rows(f, &old), 1);
	assert_sound(f);

	ok(f, store_compact(f->s, T0 + 50 * MINUTE, 40 * MINUTE, &f->e)); /* nothing to do */
	assert_int_equal(profile_rows(f, NULL), 12);
	ok(f, store_compact(f->s, INT64_MAX, INT64_MAX, &f->e));
	assert_int_equal(profile_rows(f, NULL), 1);
	assert_int_equal(profile_samples(f, NULL), samples);
	assert_sound(f);
}

static int keep_pcs(void *arg, const struct store_profile *p)
{
	buf_put(arg, p->data, p->size);
	return 0;
}

/* Compaction gives exactly the sum of the parts, PC by PC. */
static void sums_are_exact(void **state)
{
	struct fixture *f = *state;
	struct buf want = {0}, part = {0}, sum = {0}, got = {0};

	pack_pcs(NULL, 0, &want);
	ok(f, store_begin(f->s, &f->e));
	for (uint64_t i = 0; i < 7; i++) {
		add_flush(f, i, 300);
		part.n = sum.n = 0;
		sample_pcs(i, 300, &part);
		assert_int_equal(blob_pc.merge(want.p, want.n, part.p, part.n, &sum), 0);
		want.n = 0;
		buf_put(&want, sum.p, sum.n);
	}
	ok(f, store_compact(f->s, INT64_MAX, INT64_MAX, &f->e)); /* inside the transaction */
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_profiles(f->s, NULL, keep_pcs, &got, &f->e));
	assert_int_equal(got.n, want.n);
	assert_memory_equal(got.p, want.p, want.n);
	buf_deinit(&want);
	buf_deinit(&part);
	buf_deinit(&sum);
	buf_deinit(&got);
}

static void keeps_epochs_apart(void **state)
{
	struct fixture *f = *state;

	ok(f, store_begin(f->s, &f->e));
	add_flush(f, 0, 10);
	add_flush(f, 1, 10);
	ok(f, store_epoch_end(f->s, f->epoch, T0 + 2 * MINUTE, &f->e));
	fixture_fill(f); /* a second epoch */
	add_flush(f, 2, 10);
	add_flush(f, 3, 10);
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_compact(f->s, INT64_MAX, INT64_MAX, &f->e));
	assert_int_equal(profile_rows(f, NULL), 2);
	assert_sound(f);
	fails(f, store_compact(f->s, INT64_MAX, 0, &f->e), -EINVAL, "length");
}

static void writing_goes_on(void **state)
{
	struct fixture *f = *state;
	uint64_t samples = 0;

	for (uint64_t i = 0; i < 20; i++) {
		ok(f, store_begin(f->s, &f->e));
		samples += add_flush(f, i, 20);
		/* The same stretch again after it was merged into another. */
		if (i % 3 == 2) {
			ok(f, store_compact(f->s, INT64_MAX, 10 * MINUTE, &f->e));
			samples += add_flush(f, i, 20);
		}
		ok(f, store_commit(f->s, &f->e));
		assert_int_equal(profile_samples(f, NULL), samples);
		assert_int_equal(total_samples(f, NULL), samples);
	}
	assert_sound(f);
}

static void keeps_processes_and_images_apart(void **state)
{
	struct fixture *f = *state;
	struct store_process bash = {.epoch = f->epoch, .comm = "bash"};
	struct store_image libc = sample_image("/usr/lib/libc.so.6", 3);
	int64_t images[2] = {f->image}, processes[2] = {f->process};

	ok(f, store_begin(f->s, &f->e));
	ok(f, store_image(f->s, &libc, &images[1], &f->e));
	ok(f, store_process(f->s, &bash, &processes[1], &f->e));
	for (uint64_t i = 0; i < 8; i++) {
		f->image = images[i % 2];
		f->process = processes[i / 2 % 2];
		add_flush(f, i, 10);
	}
	ok(f, store_compact(f->s, INT64_MAX, INT64_MAX, &f->e));
	ok(f, store_commit(f->s, &f->e));
	assert_int_equal(profile_rows(f, NULL), 4);
	assert_int_equal(
		profile_rows(f, &(struct store_filter){.comm = "bash", .image = "libc*"}), 1);
	assert_sound(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(merges_by_stretch, setup, teardown),
		cmocka_unit_test_setup_teardown(sums_are_exact, setup, teardown),
		cmocka_unit_test_setup_teardown(keeps_epochs_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(keeps_processes_and_images_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(writing_goes_on, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
