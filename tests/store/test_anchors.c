#include "store/anchors.h"

#include "store/blob_rig.h"

static void assert_same(const struct anchor *a, const struct anchor *b)
{
	assert_int_equal(anchor_compare(a, b), 0);
	assert_int_equal(a->weight, b->weight);
}

static void assert_reads(const struct buf *b, const struct anchor *list, size_t n)
{
	struct anchor_reader r;
	struct anchor a;

	assert_int_equal(anchor_reader_init(&r, b->p, b->n), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(anchor_reader_next(&r, &a), 1);
		assert_same(&a, &list[i]);
	}
	assert_int_equal(anchor_reader_next(&r, &a), 0);
	assert_int_equal(anchor_reader_next(&r, &a), 0);
}

static const struct anchor several[] = {
	{.pc = 0, .last = UINT64_MAX, .weight = 1},
	{.pc = 0x10, .last = 0x8, .between = 200000, .weight = 1},
	{.pc = 0x10, .last = 0x8, .between = 200000, .weight = 7},
	{.pc = 0x10, .last = 0x10, .between = 1, .weight = UINT64_MAX, .kernel = UINT32_MAX},
	{.pc = 0x10,
		.last = 0x18,
		.between = UINT64_MAX,
		.weight = 2,
		.kernel = 1,
		.switched = true,
		.changed = 0xffff,
		.known = 0x8001,
		.difference = {[0] = INT64_MIN, [15] = 1}},
	{.pc = 0x300, .last = 0x8, .between = 5, .weight = 1, .changed = 0x8000},
	{.pc = UINT64_MAX,
		.last = 0,
		.weight = 3,
		.changed = 6,
		.known = 6,
		.difference = {[1] = 24, [2] = -1000000}},
};
enum { SEVERAL = sizeof several / sizeof *several };

static void packs(void **state)
{
	struct buf b = {0};

	(void)state;
	for (size_t from = 0; from <= SEVERAL; from++) {
		b.n = 0;
		anchors_pack(several + from, SEVERAL - from, &b);
		assert_reads(&b, several + from, SEVERAL - from);
		assert_whole(&blob_anchor, &b);
	}
	assert_int_equal(b.n, 1);
	buf_deinit(&b);
}

/* Databases hold these bytes: a change would make them unreadable. */
static void bytes_are_fixed(void **state)
{
	static const struct anchor list[] = {
		{.pc = 0x100,
			.last = 0xfc,
			.between = 200,
			.weight = 1,
			.changed = 1 << 10 | 2,
			.known = 1 << 10,
			.difference = {[10] = -64}},
		{.pc = 0x101,
			.last = 0x101,
			.between = 3,
			.weight = 9,
			.kernel = 2,
			.switched = true,
			.changed = 1,
			.known = 1,
			.difference = {5}},
	};
	static const uint8_t want[] = {0x02, 0x80, 0x02, 0x7c, 0x00, 0xc8, 0x01, 0x82, 0x08, 0x02,
		0x40, 0x01, 0x00, 0x07, 0x03, 0x01, 0x07, 0x01, 0x00, 0x05};
	struct buf b = {0};

	(void)state;
	anchors_pack(list, 2, &b);
	assert_bytes(&b, want, sizeof want);
	buf_deinit(&b);
}

static void refused(void **state)
{
	static const struct bad_blob bad[] = {
		{"nothing", "", 0},
		{"ends inside the number", "\x80", 1},
		{"more than bytes", "\x02\x10\x00\x00\x05\x00\x00", 7},
		{"more than memory", NINE_FF "\x01", 10},
		{"a bit that means nothing", "\x01\x10\x00\x08\x05\x00\x00", 7},
		{"a register that is not there", "\x01\x10\x00\x00\x05\x80\x80\x04\x00", 9},
		{"unknown but not changed", "\x01\x10\x00\x00\x05\x02\x01", 7},
		{"a difference of 0", "\x01\x10\x00\x00\x05\x01\x00\x00", 8},
		{"ends before a difference", "\x01\x10\x00\x00\x05\x01\x00", 7},
		{"something follows", "\x01\x10\x00\x00\x05\x00\x00\x00", 8},
		{"something follows nothing", "\x00\x00", 2},
		{"too many samples in the kernel",
			"\x01\x10\x00\x02\x05\xff\xff\xff\xff\x0f\x00\x00", 12},
		{"weight past the end of numbers", "\x01\x10\x00\x04\x05" NINE_FF "\x01\x00\x00",
			17},
		{"offsets that wrap",
			"\x02" NINE_FF "\x01\x00\x00\x05\x00\x00\x01\x00\x00\x05\x00\x00", 22},
		{"out of order", "\x02\x10\x00\x00\x05\x00\x00\x00\x00\x00\x04\x00\x00", 13},
	};

	(void)state;
	assert_refused(&blob_anchor, bad, sizeof bad / sizeof *bad);
	/* What they are variations of. */
	assert_int_equal(blob_anchor.check("\x00", 1), 0);
	assert_int_equal(blob_anchor.check("\x01\x10\x00\x00\x05\x00\x00", 7), 0);
	assert_int_equal(blob_anchor.check("\x01\x10\x00\x00\x05\x01\x00\x03", 8), 0);
	assert_int_equal(
		blob_anchor.check("\x02\x10\x00\x00\x05\x00\x00\x00\x00\x00\x05\x00\x00", 13), 0);
}

/* One more than a profile may hold. */
static void too_many(void **state)
{
	static const uint8_t one[] = {0, 0, 0, 0, 0, 0};
	struct buf b = {0};

	(void)state;
	buf_uleb(&b, ANCHORS_MOST + 1);
	for (int i = 0; i < ANCHORS_MOST + 1; i++)
		buf_put(&b, one, sizeof one);
	assert_int_equal(blob_anchor.check(b.p, b.n), -EBADMSG);
	b.n = 0;
	buf_uleb(&b, ANCHORS_MOST);
	for (int i = 0; i < ANCHORS_MOST; i++)
		buf_put(&b, one, sizeof one);
	assert_int_equal(blob_anchor.check(b.p, b.n), 0);
	buf_deinit(&b);
}

/* ---- merging ---- */

static void merges(void **state)
{
	struct buf a = {0}, b = {0}, out = {0};

	(void)state;
	for (size_t i = 0; i <= SEVERAL; i++) {
		a.n = b.n = 0;
		anchors_pack(several, i, &a);
		anchors_pack(several + i, SEVERAL - i, &b);
		blob_merge(&blob_anchor, &a, &b, &out);
		assert_reads(&out, several, SEVERAL);
	}
	assert_int_equal(blob_weight(&blob_anchor, &out), UINT64_MAX);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&out);
}

/* `n` pairs of one procedure that take from 100 us up, each of this weight. */
static void pack_many(struct buf *out, uint64_t pc, size_t n, uint64_t weight)
{
	struct anchor *list = xcalloc(n, sizeof *list);

	for (size_t i = 0; i < n; i++)
		list[i] = (struct anchor){
			.pc = pc, .last = pc, .between = 100000 + i, .weight = weight};
	anchors_pack(list, n, out);
	free(list);
}

/* Too many are thinned: the weights keep their sum, and every procedure its share of them. */
static void bounded(void **state)
{
	struct buf a = {0}, b = {0}, out = {0};
	struct anchor_reader r;
	struct anchor x;
	uint64_t count[2] = {0}, weight[2] = {0}, time[2] = {0};

	(void)state;
	pack_many(&a, 0x100, 1000, 3);
	pack_many(&b, 0x200, 1000, 1);
	blob_merge(&blob_anchor, &a, &b, &out);
	assert_int_equal(blob_weight(&blob_anchor, &out), 4000);
	assert_int_equal(anchor_reader_init(&r, out.p, out.n), 0);
	while (anchor_reader_next(&r, &x) > 0) {
		count[x.pc == 0x200]++;
		weight[x.pc == 0x200] += x.weight;
		time[x.pc == 0x200] += (x.between - 100000) * x.weight;
	}
	assert_in_range(count[0] + count[1], 900, ANCHORS_MOST);
	assert_in_range(weight[0], 2995, 3005);
	assert_in_range(weight[1], 995, 1005);
	/* From the fastest to the slowest. */
	assert_in_range(time[0] / weight[0], 497, 502);
	assert_in_range(time[1] / weight[1], 497, 502);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&out);
}

/* ---- in a database ---- */

static void are_no_samples_of_their_own(void **state)
{
	struct buf a = {0}, b = {0};

	pack_many(&a, 0x100, 1000, 2);
	pack_many(&b, 0x100, 500, 2);
	assert_no_samples_of_their_own(*state, &blob_anchor, &a, &b);
	buf_deinit(&a);
	buf_deinit(&b);
}

static void come_along_and_expire(void **state)
{
	struct buf a = {0}, b = {0};

	pack_many(&a, 0x100, 1000, 2);
	pack_many(&b, 0x100, 500, 2);
	assert_come_along_and_expire(*state, &blob_anchor, &a, &b);
	buf_deinit(&a);
	buf_deinit(&b);
}

static void damaged_ones_stay_out(void **state)
{
	assert_damaged_stay_out(*state, &blob_anchor, "\x01\x10", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packs),
		cmocka_unit_test(bytes_are_fixed),
		cmocka_unit_test(refused),
		cmocka_unit_test(too_many),
		cmocka_unit_test(merges),
		cmocka_unit_test(bounded),
		cmocka_unit_test_setup_teardown(are_no_samples_of_their_own, setup, teardown),
		cmocka_unit_test_setup_teardown(come_along_and_expire, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_ones_stay_out, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
