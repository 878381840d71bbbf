#include "store/walks.h"

#include "store/blob_rig.h"

#define KEY 0x1122334455667788

static void assert_same(const struct walk *a, const struct walk *b)
{
	assert_int_equal(walk_compare(a, b), 0);
	assert_int_equal(a->weight, b->weight);
	assert_int_equal(a->instructions, b->instructions);
	assert_int_equal(a->nsteps, b->nsteps);
	for (uint32_t i = 0; i < a->nsteps; i++) {
		assert_int_equal(a->steps[i].from, b->steps[i].from);
		assert_int_equal(a->steps[i].target, b->steps[i].target);
		assert_int_equal(a->steps[i].to, b->steps[i].to);
	}
}

static void assert_reads(const struct buf *b, const struct walk *list, size_t n)
{
	static struct walk_reader r;
	struct walk w;

	assert_int_equal(walk_reader_init(&r, b->p, b->n), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(walk_reader_next(&r, &w), 1);
		assert_same(&w, &list[i]);
	}
	assert_int_equal(walk_reader_next(&r, &w), 0);
	assert_int_equal(walk_reader_next(&r, &w), 0);
}

/* A loop, a call through the PLT and back, and what is as far as it can be. */
static const struct walk_step loop[] = {
	{0x1010, 0, 0x1000}, {0x1010, 0, 0x1000}, {0x1010, 0, 0x12}};
static const struct walk_step call[] = {
	{0x1004, KEY, 0x77000}, {0x77010, 0, 0x77012}, {0x77030, 5, 0x1008}, {0x1010, 0, 0x1000}};
static const struct walk_step far[] = {{0, 0, UINT64_MAX}, {UINT64_MAX, 0, 1ull << 63},
	{0, UINT64_MAX, UINT64_MAX}, {1ull << 62, 0, 0}};

static const struct walk several[] = {
	{.start = 0, .weight = 1, .instructions = 1},
	{.start = 0, .weight = UINT64_MAX, .instructions = UINT32_MAX},
	{.start = 0x1000, .weight = 3, .instructions = 80, .nsteps = 4, .steps = call},
	{.start = 0x1000, .weight = 1, .instructions = 0, .nsteps = 1, .steps = loop},
	{.start = 0x1000, .weight = 1, .instructions = 16, .nsteps = 1, .steps = loop},
	{.start = 0x1000, .weight = 2, .instructions = 16, .nsteps = 2, .steps = loop},
	{.start = 0x1000, .weight = 1, .instructions = 19, .nsteps = 3, .steps = loop},
	{.start = UINT64_MAX, .weight = 1, .instructions = 9},
	{.start = UINT64_MAX, .weight = 1, .instructions = 0, .nsteps = 4, .steps = far},
};
enum { SEVERAL = sizeof several / sizeof *several };

static void packs(void **state)
{
	struct buf b = {0};

	(void)state;
	for (size_t from = 0; from <= SEVERAL; from++) {
		b.n = 0;
		walks_pack(several + from, SEVERAL - from, &b);
		assert_reads(&b, several + from, SEVERAL - from);
		assert_whole(&blob_walk, &b);
	}
	assert_int_equal(b.n, 2); /* no keys, no walks */
	buf_deinit(&b);
}

/* Databases hold these bytes: a change would make them unreadable. */
static void bytes_are_fixed(void **state)
{
	static const struct walk_step one[] = {{0x110, 0, 0x112}, {0x110, KEY, 0x700}};
	static const struct walk_step other[] = {{0x10c, 0, 0x8}};
	static const struct walk list[] = {
		{.start = 0x100, .weight = 1, .instructions = 40, .nsteps = 2, .steps = one},
		{.start = 0x110, .weight = 9, .instructions = 0, .nsteps = 1, .steps = other},
	};
	static const uint8_t want[] = {0x01, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x02,
		0x80, 0x02, 0x50, 0x02, 0x40, 0x02, 0x07, 0x00, 0x80, 0x0e, 0x10, 0x01, 0x07, 0x01,
		0x0e, 0xfc, 0x7d};
	struct buf b = {0};

	(void)state;
	walks_pack(list, 2, &b);
	assert_bytes(&b, want, sizeof want);
	buf_deinit(&b);
}

static void refused(void **state)
{
	static const struct bad_blob bad[] = {
		{"nothing", "", 0},
		{"ends before the number of walks", "\x00", 1},
		{"more keys than bytes", "\x01\x01\x00", 3},
		{"a key of 0", "\x01\0\0\0\0\0\0\0\0\x00", 10},
		{"a key twice", "\x02\x05\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x00", 18},
		{"more walks than bytes", "\x00\x02\x10\x04\x00", 5},
		{"more walks than memory", "\x00" NINE_FF "\x01", 11},
		{"neither steps nor instructions", "\x00\x01\x10\x00\x00", 5},
		{"more steps than bytes", "\x00\x01\x10\x04\x02\x02\x02\x02", 8},
		{"more steps than a walk has", "\x00\x01\x10\x04\x81\x02", 6},
		{"too many instructions", "\x00\x01\x10\x80\x80\x80\x80\x20\x00", 9},
		{"weight past the end of numbers", "\x00\x01\x10\x05" NINE_FF "\x01\x00", 15},
		{"ends inside the difference", "\x00\x01\x10\x04\x01\x82\x80", 7},
		{"difference of more than 64 bits",
			"\x00\x01\x10\x04\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x04\x02", 16},
		{"a key that is not there", "\x00\x01\x10\x04\x01\x03\x00\x02", 8},
		{"something follows", "\x00\x01\x10\x04\x00\x00", 6},
		{"something follows nothing", "\x00\x00\x00", 3},
		{"offsets that wrap", "\x00\x02" NINE_FF "\x01\x04\x00\x01\x04\x00", 17},
		{"a walk twice", "\x00\x02\x10\x04\x00\x00\x04\x00", 8},
		{"out of order", "\x00\x02\x10\x06\x00\x00\x04\x00", 8},
	};

	(void)state;
	assert_refused(&blob_walk, bad, sizeof bad / sizeof *bad);
	/* What they are variations of. */
	assert_int_equal(blob_walk.check("\x00\x00", 2), 0);
	assert_int_equal(blob_walk.check("\x00\x01\x10\x04\x00", 5), 0);
	assert_int_equal(blob_walk.check("\x00\x01\x10\x00\x01\x02\x02", 7), 0);
	assert_int_equal(blob_walk.check("\x00\x02\x10\x04\x00\x00\x06\x00", 8), 0);
	assert_int_equal(blob_walk.check("\x00\x02" NINE_FF "\x01\x04\x00\x00\x06\x00", 17), 0);
	assert_int_equal(
		blob_walk.check("\x01\x05\0\0\0\0\0\0\0\x01\x10\x04\x01\x03\x00\x02", 16), 0);
}

/* One walk more, and one step more, than there may be. */
static void too_many(void **state)
{
	struct buf b = {0};

	(void)state;
	for (int more = 0; more < 2; more++) {
		b.n = 0;
		buf_u8(&b, 0);
		buf_uleb(&b, WALKS_MOST + more);
		for (int i = 0; i < WALKS_MOST + more; i++)
			buf_put(&b, "\x01\x04\x00", 3);
		assert_int_equal(blob_walk.check(b.p, b.n), more ? -EBADMSG : 0);
		b.n = 0;
		buf_put(&b, "\x00\x01\x10\x04", 4);
		buf_uleb(&b, WALK_STEPS + more);
		for (int i = 0; i < WALK_STEPS + more; i++)
			buf_put(&b, "\x02\x02", 2);
		assert_int_equal(blob_walk.check(b.p, b.n), more ? -EBADMSG : 0);
	}
	buf_deinit(&b);
}

static void settles(void **state)
{
	struct walk list[2 * SEVERAL];
	size_t n;

	(void)state;
	for (size_t i = 0; i < SEVERAL; i++)
		list[i] = list[2 * SEVERAL - 1 - i] = several[i];
	n = walks_settle(list, 2 * SEVERAL);
	assert_int_equal(n, SEVERAL);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(walk_compare(&list[i], &several[i]), 0);
		assert_int_equal(list[i].weight,
			several[i].weight == UINT64_MAX ? UINT64_MAX : 2 * several[i].weight);
	}
	assert_int_equal(walks_settle(NULL, 0), 0);
}

/* ---- merging ---- */

static void merges(void **state)
{
	struct buf a = {0}, b = {0}, out = {0};

	(void)state;
	for (size_t i = 0; i <= SEVERAL; i++) {
		a.n = b.n = 0;
		walks_pack(several, i, &a);
		walks_pack(several + i, SEVERAL - i, &b);
		blob_merge(&blob_walk, &a, &b, &out);
		assert_reads(&out, several, SEVERAL);
	}
	assert_int_equal(blob_weight(&blob_walk, &out), UINT64_MAX);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&out);
}

/* `n` walks from `start` on, `apart` bytes from one to the next, that go to `to`. */
static void pack_many(
	struct buf *out, uint64_t start, unsigned apart, size_t n, uint64_t weight, uint64_t to)
{
	struct walk_step *steps = xcalloc(n, sizeof *steps);
	struct walk *list = xcalloc(n, sizeof *list);

	for (size_t i = 0; i < n; i++) {
		steps[i] = (struct walk_step){.from = start + i * apart + 8, .to = to};
		list[i] = (struct walk){.start = start + i * apart,
			.weight = weight,
			.instructions = 20,
			.nsteps = 1,
			.steps = &steps[i]};
	}
	walks_pack(list, n, out);
	free(list);
	free(steps);
}

struct sums {
	uint64_t count[2], weight[2], place[2];
};

static void sum_up(const struct buf *b, struct sums *out)
{
	static struct walk_reader r;
	struct walk w;

	*out = (struct sums){0};
	assert_int_equal(walk_reader_init(&r, b->p, b->n), 0);
	while (walk_reader_next(&r, &w) > 0) {
		unsigned which = w.steps[0].to == 2;

		out->count[which]++;
		out->weight[which] += w.weight;
		out->place[which] += w.start * w.weight;
	}
}

/* Too many are thinned: weights keep their sum, both halves their share, and every place. */
static void bounded(void **state)
{
	struct buf a = {0}, b = {0}, out = {0};
	struct sums s;

	(void)state;
	pack_many(&a, 0, 2, 4000, 3, 1);
	pack_many(&b, 1, 2, 4000, 1, 2);
	blob_merge(&blob_walk, &a, &b, &out);
	assert_int_equal(blob_weight(&blob_walk, &out), 16000);
	sum_up(&out, &s);
	assert_in_range(s.count[0] + s.count[1], WALKS_MERGED * 3 / 4, WALKS_MERGED);
	/* 12,000 and 4,000, with a standard error of at most 62.5 * sqrt(256 * 3/16) = 433. */
	assert_in_range(s.weight[0], 10500, 13500);
	assert_in_range(s.weight[1], 2500, 5500);
	assert_in_range(s.place[0] / s.weight[0], 3600, 4400);
	assert_in_range(s.place[1] / s.weight[1], 3000, 5000);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&out);
}

/* Few bursts leave few walks. */
static void one_in_so_many(void **state)
{
	struct buf a = {0}, b = {0}, out = {0};
	struct sums s;

	(void)state;
	pack_many(&a, 0, 2, 40, 1, 1);
	pack_many(&b, 1, 2, 40, 1, 2);
	blob_merge(&blob_walk, &a, &b, &out);
	assert_int_equal(blob_weight(&blob_walk, &out), 80);
	sum_up(&out, &s);
	assert_int_equal(s.count[0] + s.count[1], 80 / WALKS_BURSTS);
	a.n = b.n = 0;
	pack_many(&a, 0, 2, 1, 1, 1);
	pack_many(&b, 1, 2, 2, 1, 2);
	blob_merge(&blob_walk, &a, &b, &out);
	assert_int_equal(blob_weight(&blob_walk, &out), 3);
	sum_up(&out, &s);
	assert_int_equal(s.count[0] + s.count[1], 1);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&out);
}

/* An hour of flushes, one after the other: the last counts as much as the first. */
static void late_ones_count_as_early_ones(void **state)
{
	uint64_t early = 0, late = 0;

	(void)state;
	/* Several hours, which lie elsewhere. */
	for (uint64_t hour = 0; hour < 20; hour++) {
		struct buf all = {0}, next = {0}, out = {0};
		struct sums s;

		for (uint64_t i = 0; i < 20; i++) {
			next.n = out.n = 0;
			pack_many(&next, hour * 977 + i * 131, 20 * 131, 500, 1, 1 + i / 10);
			if (i)
				assert_int_equal(
					blob_walk.merge(all.p, all.n, next.p, next.n, &out), 0);
			all.n = 0;
			buf_put(&all, i ? out.p : next.p, i ? out.n : next.n);
		}
		sum_up(&all, &s);
		assert_int_equal(s.weight[0] + s.weight[1], 10000);
		early += s.weight[0];
		late += s.weight[1];
		buf_deinit(&all);
		buf_deinit(&next);
		buf_deinit(&out);
	}
	/* Half each of 200,000, with a standard error of at most 40 * sqrt(20 * 256) = 2,900. */
	assert_in_range(early, 91000, 109000);
	assert_int_equal(early + late, 200000);
}

/* ---- in a database ---- */

static void are_no_samples_of_their_own(void **state)
{
	struct buf a = {0}, b = {0};

	pack_many(&a, 0, 2, 4000, 2, 1);
	pack_many(&b, 1, 2, 1500, 2, 2);
	assert_no_samples_of_their_own(*state, &blob_walk, &a, &b);
	buf_deinit(&a);
	buf_deinit(&b);
}

static void come_along_and_expire(void **state)
{
	struct buf a = {0}, b = {0};

	pack_many(&a, 0, 2, 400, 2, 1);
	pack_many(&b, 1, 2, 100, 2, 2);
	assert_come_along_and_expire(*state, &blob_walk, &a, &b);
	buf_deinit(&a);
	buf_deinit(&b);
}

static void damaged_ones_stay_out(void **state)
{
	assert_damaged_stay_out(*state, &blob_walk, "\x00\x01\x10", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packs),
		cmocka_unit_test(bytes_are_fixed),
		cmocka_unit_test(refused),
		cmocka_unit_test(too_many),
		cmocka_unit_test(settles),
		cmocka_unit_test(merges),
		cmocka_unit_test(bounded),
		cmocka_unit_test(one_in_so_many),
		cmocka_unit_test(late_ones_count_as_early_ones),
		cmocka_unit_test_setup_teardown(are_no_samples_of_their_own, setup, teardown),
		cmocka_unit_test_setup_teardown(come_along_and_expire, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_ones_stay_out, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
