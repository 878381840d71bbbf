#include "store/fixture.h"

/* A second database in the same directory. */
static void open_other(struct fixture *f, struct fixture *other)
{
	*other = (struct fixture){0};
	snprintf(other->path, sizeof other->path, "%s/other.db", f->dir);
	ok(other, store_open(other->path, STORE_WRITE, &other->s, &other->e));
}

static const struct range ranges[] = {{0x100, 0x10}, {0x200, 0x10}};
static const struct store_procedure ours = {
	{0x100, ranges, 1, PROCEDURE_SYMBOL, "ours"}, "0123456789abcdef", 16};
static const struct store_procedure theirs[] = {
	{{0x100, ranges, 1, PROCEDURE_SYMBOL, "not used"}, "fedcba9876543210", 16},
	{{0x200, ranges + 1, 1, PROCEDURE_SYMBOL, "theirs"}, "ABCDEFGHIJKLMNOP", 16},
};

/*
 * Ours: an epoch with gzip. Theirs: images in another order, so that the ids differ; gzip under
 * another path; a process by pid.
 */
static uint64_t fill_both(struct fixture *f, struct fixture *other)
{
	struct store_image libc = sample_image("/usr/lib/libc.so.6", 3);
	struct store_image gzip = sample_image("/opt/gzip", 7);
	uint64_t samples;
	int64_t id;

	ok(f, store_begin(f->s, &f->e));
	ok(f, store_procedures_add(f->s, f->image, &ours, 1, &f->e));
	samples = add_flush(f, 0, 40);
	ok(f, store_epoch_end(f->s, f->epoch, T0 + MINUTE, &f->e));
	ok(f, store_commit(f->s, &f->e));

	ok(other, store_begin(other->s, &other->e));
	ok(other, store_image(other->s, &libc, &id, &other->e));
	ok(other, store_image(other->s, &gzip, &id, &other->e));
	fixture_fill(other);
	assert_int_equal(other->image, id);
	ok(other, store_procedures_add(other->s, id, theirs, 2, &other->e));
	ok(other, store_process(other->s,
			  &(struct store_process){.epoch = other->epoch, .pid = 9, .comm = "gzip"},
			  &other->process, &other->e));
	samples += add_flush(other, 10, 60) + add_flush(other, 11, 60);
	ok(other, store_commit(other->s, &other->e));
	return samples;
}

static int keep_path(void *arg, const struct store_image *im)
{
	buf_printf(arg, "%s ", im->path);
	return 0;
}

static int keep_epoch(void *arg, const struct store_epoch *epoch)
{
	buf_printf(arg, "%llu@%lld..%lld ", (unsigned long long)epoch->samples,
		(long long)((epoch->started - T0) / MINUTE),
		(long long)(epoch->ended ? (epoch->ended - T0) / MINUTE : 0));
	return 0;
}

static void adds_everything(void **state)
{
	struct fixture *f = *state, other;
	struct store_filter gzip = {.image = "gzip"}, pid = {.pid = 9};
	struct store_procedures list = {0};
	struct buf text = {0};
	uint64_t samples, own;

	open_other(f, &other);
	samples = fill_both(f, &other);
	own = profile_samples(f, NULL);
	ok(f, store_merge(f->s, other.s, &f->e));
	store_close(other.s);

	assert_int_equal(profile_samples(f, NULL), samples);
	assert_int_equal(total_samples(f, NULL), samples);
	assert_int_equal(profile_samples(f, &gzip), samples); /* one image now */
	assert_int_equal(total_samples(f, &gzip), samples);
	assert_int_equal(profile_samples(f, &pid), samples - own);
	ok(f, store_images(f->s, keep_path, &text, &f->e));
	assert_string_equal(buf_cstr(&text), "/usr/bin/gzip /usr/lib/libc.so.6 ");
	text.n = 0;
	ok(f, store_epochs(f->s, keep_epoch, &text, &f->e));
	assert_non_null(strstr(buf_cstr(&text), "@0..1 ")); /* ours, ended */
	assert_non_null(strstr(buf_cstr(&text), "@0..0 ")); /* theirs, open */
	ok(f, store_procedures(f->s, f->image, &list, &f->e));
	assert_int_equal(list.n, 2);
	assert_string_equal(list.p[0].name, "ours");
	assert_string_equal(list.p[1].name, "theirs");
	store_procedures_free(&list);
	text.n = 0;
	ok(f, store_code(f->s, f->image, 0x200, &text, &f->e));
	assert_memory_equal(text.p, "ABCDEFGHIJKLMNOP", 16);
	buf_deinit(&text);
	assert_sound(f);
}

static void strange_types_come_along(void **state)
{
	static const struct blob_type future = {.name = "future"};
	struct fixture *f = *state, other;
	struct store_filter only = {.type = &future};
	struct store_profile p = {
		.t0 = T0, .t1 = T0 + 1, .type = &future, .data = "xyz", .size = 3};

	open_other(f, &other);
	ok(&other, store_begin(other.s, &other.e));
	fixture_fill(&other);
	p.epoch = other.epoch;
	p.event = other.event.id;
	p.image = other.image;
	p.process = other.process;
	ok(&other, store_profile_add(other.s, &p, &other.e));
	ok(&other, store_commit(other.s, &other.e));
	ok(f, store_merge(f->s, other.s, &f->e));
	store_close(other.s);
	assert_int_equal(profile_rows(f, &only), 1);
}

static int fail_merge(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	(void)a;
	(void)na;
	(void)b;
	(void)nb;
	(void)out;
	return -EBADMSG;
}

static int fail_check(const void *p, size_t n)
{
	(void)p;
	(void)n;
	return -EBADMSG;
}

/* A profile late in the source cannot be read: nothing of the source is there afterwards. */
static void all_or_nothing(void **state)
{
	static const struct blob_type bad = {"bad", fail_merge, fail_check, NULL};
	struct fixture *f = *state, other;
	struct store_profile p = {.t0 = T0, .t1 = T0 + 1, .type = &bad, .data = "xyz", .size = 3};
	uint64_t samples;

	open_other(f, &other);
	samples = fill_both(f, &other);
	samples -= profile_samples(&other, NULL);
	p.epoch = other.epoch;
	p.event = other.event.id;
	p.image = other.image;
	p.process = other.process;
	ok(&other, store_begin(other.s, &other.e));
	ok(&other, store_profile_add(other.s, &p, &other.e));
	ok(&other, store_commit(other.s, &other.e));
	store_register(f->s, &bad);
	fails(f, store_merge(f->s, other.s, &f->e), -EBADMSG, "other.db");
	assert_int_equal(profile_samples(f, NULL), samples);
	assert_sound(f);
	/* And it can be written again. */
	ok(f, store_begin(f->s, &f->e));
	ok(f, store_commit(f->s, &f->e));
	store_close(other.s);
}

static void not_into_itself(void **state)
{
	struct fixture *f = *state;
	struct store *again;

	ok(f, store_open(f->path, STORE_READ, &again, &f->e));
	fails(f, store_merge(f->s, again, &f->e), -EINVAL, "itself");
	store_close(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(adds_everything, setup, teardown),
		cmocka_unit_test_setup_teardown(strange_types_come_along, setup, teardown),
		cmocka_unit_test_setup_teardown(all_or_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(not_into_itself, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
