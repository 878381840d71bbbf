#include "store/fixture.h"

struct seen {
	int n;
	struct store_profile last;
	uint8_t data[256];
	char type[32];
};

static int see(void *arg, const struct store_profile *p)
{
	struct seen *seen = arg;

	seen->n++;
	seen->last = *p;
	assert_true(p->size <= sizeof seen->data);
	memcpy(seen->data, p->data, p->size);
	snprintf(seen->type, sizeof seen->type, "%s", p->type->name);
	return 0;
}

static void add(struct fixture *f, int64_t image, int64_t process, int minute, uint64_t count)
{
	struct buf data = {0};
	struct store_profile p = {.epoch = f->epoch,
		.event = f->event.id,
		.image = image,
		.process = process,
		.t0 = T0 + minute * MINUTE,
		.t1 = T0 + (minute + 1) * MINUTE,
		.type = &blob_pc};

	pack_pcs((struct pc_count[]){{0x1234, count}}, 1, &data);
	p.data = data.p;
	p.size = data.n;
	ok(f, store_profile_add(f->s, &p, &f->e));
	buf_deinit(&data);
}

static void reads_back(void **state)
{
	struct fixture *f = *state;
	struct seen seen = {0};
	struct buf want = {0};

	ok(f, store_begin(f->s, &f->e));
	add(f, f->image, f->process, 3, 41);
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_profiles(f->s, NULL, see, &seen, &f->e));
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.last.epoch, f->epoch);
	assert_int_equal(seen.last.event, f->event.id);
	assert_int_equal(seen.last.image, f->image);
	assert_int_equal(seen.last.process, f->process);
	assert_int_equal(seen.last.t0, T0 + 3 * MINUTE);
	assert_int_equal(seen.last.t1, T0 + 4 * MINUTE);
	assert_ptr_equal(seen.last.type, &blob_pc);
	pack_pcs((struct pc_count[]){{0x1234, 41}}, 1, &want);
	assert_int_equal(seen.last.size, want.n);
	assert_memory_equal(seen.data, want.p, want.n);
	buf_deinit(&want);
}

static void refuses_what_is_not_there(void **state)
{
	struct fixture *f = *state;
	struct store_profile good = {.epoch = f->epoch,
		.event = f->event.id,
		.image = f->image,
		.process = f->process,
		.t0 = T0,
		.t1 = T0 + 1,
		.type = &blob_pc,
		.data = "\x01\x01",
		.size = 2};
	struct store_profile bad[4] = {good, good, good, good};

	bad[0].event = 99;
	bad[1].image = 99;
	bad[2].process = 99;
	bad[3].size = 1; /* not a PC profile */
	ok(f, store_begin(f->s, &f->e));
	for (int i = 0; i < 3; i++)
		fails(f, store_profile_add(f->s, &bad[i], &f->e), -EINVAL, "not there");
	fails(f, store_profile_add(f->s, &bad[3], &f->e), -EBADMSG, "pc");
	ok(f, store_profile_add(f->s, &good, &f->e));
	ok(f, store_commit(f->s, &f->e));
	assert_int_equal(profile_rows(f, NULL), 1);
}

/* ---- filters ---- */

/*
 * Samples as powers of two, so that a sum says which rows passed: 1 gzip in gzip, 2 gzip in libc (2
 * minutes later), 4 bash (pid 42) in bash, 8 bash in libc in a second epoch under "page-faults".
 */
static void fill_filtered(struct fixture *f, int64_t *second)
{
	struct store_image libc = sample_image("/usr/lib/x86_64-linux-gnu/libc.so.6", 0xab);
	struct store_image bash = sample_image("/usr/bin/bash", 0);
	struct store_process p = {.epoch = f->epoch, .pid = 42, .comm = "bash"};
	int64_t libc_id, bash_id, process, epoch = f->epoch;
	struct store_event event = f->event;

	ok(f, store_begin(f->s, &f->e));
	ok(f, store_image(f->s, &libc, &libc_id, &f->e));
	ok(f, store_image(f->s, &bash, &bash_id, &f->e));
	ok(f, store_process(f->s, &p, &process, &f->e));
	add(f, f->image, f->process, 0, 1);
	add(f, libc_id, f->process, 2, 2);
	add(f, bash_id, process, 0, 4);

	ok(f, store_epoch_start(f->s, f->host, T0 + 100 * MINUTE, "", second, &f->e));
	p = (struct store_process){.epoch = *second, .comm = "bash"};
	ok(f, store_process(f->s, &p, &process, &f->e));
	f->epoch = *second;
	f->event = (struct store_event){.epoch = *second, .name = "page-faults", .unit = "events"};
	ok(f, store_event(f->s, &f->event, &f->e));
	add(f, libc_id, process, 100, 8);
	f->epoch = epoch;
	f->event = event;
	ok(f, store_commit(f->s, &f->e));
}

static void filters(void **state)
{
	struct fixture *f = *state;
	static const struct blob_type calls = {.name = "calls"};
	int64_t second, both[2];

	fill_filtered(f, &second);
	both[0] = f->epoch;
	both[1] = second;
	const struct {
		struct store_filter filter;
		uint64_t sum;
	} expect[] = {
		{{0}, 15},
		{{.epochs = both, .nepochs = 1}, 7},
		{{.epochs = both + 1, .nepochs = 1}, 8},
		{{.epochs = both, .nepochs = 2}, 15},
		{{.t0 = T0 + MINUTE}, 10},
		{{.t1 = T0 + MINUTE}, 5},
		{{.t0 = T0 + MINUTE - 1, .t1 = T0 + 2 * MINUTE + 1}, 7},
		{{.t0 = T0 + MINUTE, .t1 = T0 + 2 * MINUTE}, 0},
		{{.event = "cpu-clock"}, 7},
		{{.event = "page-faults"}, 8},
		{{.event = "page*"}, 0},
		{{.comm = "bash"}, 12},
		{{.comm = "b*"}, 12},
		{{.comm = "[!b]*"}, 3},
		{{.comm = "as"}, 0},
		{{.pid = 42}, 4},
		{{.pid = 43}, 0},
		{{.image = "/usr/bin/*"}, 5},
		{{.image = "libc.so.6"}, 10},
		{{.image = "libc*"}, 10},
		{{.image = "libc"}, 0},
		{{.image = "ABab"}, 10},
		{{.image = "abababababababababababababababababababab"}, 10},
		{{.image = "ababababababababababababababababababababab"}, 0},
		{{.image = "aba"}, 0}, /* too short to mean a build-id */
		{{.image = "0707"}, 1},
		{{.type = &blob_pc}, 15},
		{{.type = &calls}, 0},
		{{.comm = "bash", .image = "libc*", .epochs = both, .nepochs = 1}, 0},
		{{.comm = "bash", .image = "libc*", .event = "page-faults"}, 8},
	};

	for (size_t i = 0; i < sizeof expect / sizeof *expect; i++) {
		uint64_t sum = profile_samples(f, &expect[i].filter);

		if (sum != expect[i].sum)
			print_error("filter %zu: %llu\n", i, (unsigned long long)sum);
		assert_int_equal(sum, expect[i].sum);
	}
}

/* ---- types that nobody knows ---- */

static int add_bytes(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	assert_int_equal(na, 1);
	assert_int_equal(nb, 1);
	buf_u8(out, (uint8_t)(*(const uint8_t *)a + *(const uint8_t *)b));
	return 0;
}

static void strange_types_survive(void **state)
{
	static const struct blob_type future = {.name = "future"};
	static const struct blob_type known = {.name = "future", .merge = add_bytes};
	struct fixture *f = *state;
	struct store_profile p = {.epoch = f->epoch,
		.event = f->event.id,
		.image = f->image,
		.process = f->process,
		.type = &future,
		.data = "\x05",
		.size = 1};
	struct store_filter only = {.type = &future};
	struct seen seen = {0};

	ok(f, store_begin(f->s, &f->e));
	for (int i = 0; i < 3; i++) {
		p.t0 = T0 + i * MINUTE;
		p.t1 = p.t0 + MINUTE;
		ok(f, store_profile_add(f->s, &p, &f->e));
	}
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_compact(f->s, INT64_MAX, 100 * MINUTE, &f->e));
	ok(f, store_profiles(f->s, &only, see, &seen, &f->e));
	assert_int_equal(seen.n, 3); /* in one stretch now, but not merged */
	assert_string_equal(seen.type, "future");
	assert_null(seen.last.type->merge);
	assert_int_equal(seen.data[0], 5);
	assert_int_equal(seen.last.t1, T0 + 3 * MINUTE);
	assert_sound(f);

	store_register(f->s, &known);
	ok(f, store_begin(f->s, &f->e));
	p.type = &known;
	p.t0 += MINUTE;
	p.t1 += MINUTE;
	ok(f, store_profile_add(f->s, &p, &f->e));
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_compact(f->s, INT64_MAX, 100 * MINUTE, &f->e));
	seen.n = 0;
	ok(f, store_profiles(f->s, &only, see, &seen, &f->e));
	assert_int_equal(seen.n, 1);
	assert_ptr_equal(seen.last.type, &known);
	assert_int_equal(seen.data[0], 20);
}

static int nested(void *arg, const struct store_profile *p)
{
	struct fixture *f = arg;

	(void)p;
	assert_int_equal(profile_rows(f, NULL), 3);
	return 0;
}

static void callbacks_may_read(void **state)
{
	struct fixture *f = *state;

	ok(f, store_begin(f->s, &f->e));
	for (uint64_t i = 0; i < 3; i++)
		add_flush(f, i, 10);
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_profiles(f->s, NULL, nested, f, &f->e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reads_back, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_what_is_not_there, setup, teardown),
		cmocka_unit_test_setup_teardown(filters, setup, teardown),
		cmocka_unit_test_setup_teardown(strange_types_survive, setup, teardown),
		cmocka_unit_test_setup_teardown(callbacks_may_read, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
