#include "values/exact.h"

#define EACH_ALGORITHM(a) \
	for (enum hotlist_algorithm a = HOTLIST_SPACE_SAVING; a < HOTLIST_ALGORITHMS; a++)

static void starts_empty(void **state)
{
	(void)state;
	EACH_ALGORITHM(a)
	{
		struct hotlist_pool *pool = hotlist_pool_create(a, HOTLIST_CAPACITY, 1);
		struct hot_value list[HOTLIST_CAPACITY_MAX];
		struct hotlist h = {0}, other = {0};

		assert_int_equal(hotlist_pool_algorithm(pool), a);
		assert_int_equal(hotlist_pool_capacity(pool), HOTLIST_CAPACITY);
		hotlist_add(pool, &h, 7, 0);
		hotlist_merge(pool, &h, &other);
		assert_int_equal(hotlist_read(pool, &h, list), 0);
		assert_int_equal(hotlist_absent(pool, &h), 0);
		assert_int_equal(h.total, 0);
		hotlist_release(pool, &h);
		hotlist_pool_destroy(pool);
	}
	hotlist_pool_destroy(NULL);
}

static void reads_by_count(void **state)
{
	(void)state;
	EACH_ALGORITHM(a)
	{
		struct hotlist_pool *pool = hotlist_pool_create(a, HOTLIST_CAPACITY, 1);
		struct hot_value list[HOTLIST_CAPACITY_MAX];
		struct hotlist h = {0};

		for (uint64_t i = 0; i < 16; i++)
			hotlist_add(pool, &h, i, 1 + i / 2);
		assert_int_equal(hotlist_read(pool, &h, list), 16);
		assert_int_equal(h.total, 72);
		for (size_t i = 0; i < 16; i++) {
			/* Pairs of equal counts, by value. */
			assert_int_equal(list[i].value, (15 - i) ^ 1);
			assert_int_equal(list[i].count, 8 - i / 2);
			assert_true(list[i].low == list[i].count && list[i].high == list[i].count);
			assert_true(list[i].share == (double)list[i].count / 72);
			assert_true(list[i].error == 0);
		}
		hotlist_pool_destroy(pool);
	}
}

/* The most frequent value is always inside the list itself. */
static void keeps_the_top_first(void **state)
{
	(void)state;
	EACH_ALGORITHM(a)
	{
		struct hotlist_pool *pool = hotlist_pool_create(a, 8, 1);
		struct stream s = {.n = 3000, .random = 5};
		struct hotlist h = {0};

		for (; s.i < s.n; s.i++) {
			hotlist_add(pool, &h, stream_below(&s, 12), 1);
			for (unsigned i = 1; i < h.n; i++)
				assert_true(h.rest[i - 1].count <= h.top.count);
		}
		hotlist_pool_destroy(pool);
	}
}

static void saturates(void **state)
{
	(void)state;
	EACH_ALGORITHM(a)
	{
		struct hotlist_pool *pool = hotlist_pool_create(a, 2, 1);
		struct hot_value list[HOTLIST_CAPACITY_MAX];
		struct hotlist h = {0}, other = {0};

		for (uint64_t i = 0; i < 5; i++) {
			hotlist_add(pool, &h, i, UINT64_MAX - i);
			hotlist_add(pool, &other, i * 2, UINT64_MAX / 3);
			read_checked(pool, &h, list);
		}
		hotlist_merge(pool, &h, &other);
		hotlist_add(pool, &h, h.top.value, UINT64_MAX);
		read_checked(pool, &h, list);
		assert_true(h.total == UINT64_MAX);
		hotlist_pool_destroy(pool);
	}
}

static void memory_is_used_again(void **state)
{
	(void)state;
	EACH_ALGORITHM(a)
	{
		struct hotlist_pool *pool = hotlist_pool_create(a, HOTLIST_CAPACITY_MAX, 1);
		struct hotlist many[500];
		size_t once = 0, most = 0;

		for (int round = 0; round < 20; round++) {
			for (int i = 0; i < 500; i++) {
				many[i] = (struct hotlist){0};
				for (uint64_t k = 0; k < 100; k++)
					hotlist_add(pool, &many[i], k, 1);
				if (i % 2)
					hotlist_release(pool, &many[i]);
			}
			most = hotlist_pool_bytes(pool);
			assert_true(!once || most == once);
			once = most;
			hotlist_pool_clear(pool);
		}
		/* What one list needs does not keep what 500 needed. */
		memset(many, 0, sizeof many);
		hotlist_add(pool, &many[0], 1, 1);
		hotlist_add(pool, &many[0], 2, 1);
		hotlist_pool_clear(pool);
		assert_true(hotlist_pool_bytes(pool) < 4096 && most > 250 * 1000);
		hotlist_pool_destroy(pool);
	}
}

static void sampling_error(void **state)
{
	(void)state;
	assert_true(fabs(hotlist_sampling_error(0.5, 100) - 0.0962) < 1e-4);
	assert_true(fabs(hotlist_sampling_error(0.1, 200) - 0.0417) < 1e-3);
	assert_true(hotlist_sampling_error(0, 10) > 0.1); /* that none came proves little */
	assert_true(hotlist_sampling_error(1, 1000000) < 1e-5);
	assert_true(hotlist_sampling_error(0.3, 0) == 1);
}

/* ---- packing ---- */

/* Reads back as the same list, which packs to the same bytes and goes on the same way. */
static void assert_round_trip(struct hotlist_pool *pool, const struct hotlist *h)
{
	struct hot_value a[HOTLIST_CAPACITY_MAX], b[HOTLIST_CAPACITY_MAX];
	struct buf packed = {0}, again = {0};
	struct hotlist back = {.tag = 3};
	struct cursor c;
	size_t n;

	hotlist_pack(pool, h, &packed);
	buf_u8(&packed, 0xff); /* of somebody else */
	c = cursor_over(packed.p, packed.n);
	assert_int_equal(hotlist_unpack(pool, &back, &c), 0);
	assert_int_equal(cursor_left(&c), 1);
	assert_true(back.total == h->total && back.n == h->n && back.tag == 3);
	assert_int_equal(hotlist_absent(pool, &back), hotlist_absent(pool, h));
	n = hotlist_read(pool, h, a);
	assert_int_equal(hotlist_read(pool, &back, b), n);
	if (n)
		assert_memory_equal(a, b, n * sizeof *a);
	hotlist_pack(pool, &back, &again);
	assert_int_equal(again.n + 1, packed.n);
	assert_memory_equal(again.p, packed.p, again.n);

	/* Cut anywhere, it is no list. */
	hotlist_release(pool, &back);
	for (size_t cut = 0; cut < again.n; cut++) {
		c = cursor_over(again.p, cut);
		assert_int_equal(hotlist_unpack(pool, &back, &c), -EBADMSG);
		assert_true(!back.total && !back.n && !back.rest);
	}
	buf_deinit(&packed);
	buf_deinit(&again);
}

static void packs(void **state)
{
	(void)state;
	EACH_ALGORITHM(a)
	{
		for (size_t t = 0; t < STREAM_TYPES; t++) {
			struct hotlist_pool *pool = hotlist_pool_create(a, 16, t);
			struct hotlist h = {0}, other = {0};
			struct stream s = {.n = 3000, .random = t};
			struct exact x;

			exact_init(&x);
			for (uint64_t end = 1; s.i < s.n; end = end * 2 + 1) {
				feed(pool, &h, &x, &stream_types[t], &s, end < s.n ? end : s.n);
				assert_round_trip(pool, &h);
			}
			s.i = 0;
			feed(pool, &other, &x, &stream_types[t], &s, 1000);
			hotlist_merge(pool, &h, &other);
			assert_round_trip(pool, &h);
			exact_deinit(&x);
			hotlist_pool_destroy(pool);
		}
	}
}

static void packs_short(void **state)
{
	(void)state;
	EACH_ALGORITHM(a)
	{
		struct hotlist_pool *pool = hotlist_pool_create(a, 16, 1);
		struct hotlist h = {0};
		struct buf packed = {0};

		/* A constant: total, head, value. */
		hotlist_add(pool, &h, 42, 100);
		hotlist_pack(pool, &h, &packed);
		assert_int_equal(packed.n, 3);
		assert_memory_equal(packed.p, "\x63\x03\x2a", 3);
		/* Small negative numbers are short, too; the last count follows from the others. */
		hotlist_add(pool, &h, (uint64_t)-1, 20);
		packed.n = 0;
		hotlist_pack(pool, &h, &packed);
		assert_int_equal(packed.n, 5);
		assert_memory_equal(packed.p, "\x77\x05\x2a\x14\x55", 5);
		buf_deinit(&packed);
		hotlist_pool_destroy(pool);
	}
}

static void packs_extremes(void **state)
{
	(void)state;
	EACH_ALGORITHM(a)
	{
		struct hotlist_pool *pool = hotlist_pool_create(a, 2, 1);
		struct hotlist h = {0};

		hotlist_add(pool, &h, UINT64_MAX, UINT64_MAX);
		assert_round_trip(pool, &h);
		hotlist_add(pool, &h, (uint64_t)1 << 63, 1);
		assert_round_trip(pool, &h);
		for (uint64_t i = 0; i < 50; i++) {
			hotlist_add(pool, &h, i, UINT64_MAX);
			assert_round_trip(pool, &h);
		}
		hotlist_pool_destroy(pool);
	}
}

static void unpack_refuses(void **state)
{
	static const struct {
		enum hotlist_algorithm algorithm;
		const char *bytes, *why;
		size_t n;
	} bad[] = {
#define SAVING(s, why) {HOTLIST_SPACE_SAVING, s, why, sizeof s - 1}
#define COUNTING(s, why)                               \
	{                                              \
		HOTLIST_COUNTING, s, why, sizeof s - 1 \
	}
		SAVING("\x63\x01", "exact, but nothing in it"),
		SAVING("\x63\x00", "not exact, and nothing in it"),
		SAVING("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x03\x2a", "a total of 2^64"),
		SAVING("\x63\x0b\x01\x5a\x02\x00\x02\x00\x02\x00\x02", "more than the capacity"),
		SAVING("\x63\x05\x2a\x64\x55", "a count of 0"),
		SAVING("\x63\x05\x2a\x00\x55", "nothing left for the last"),
		SAVING("\x63\x05\x2a\x3c\x01", "the last count above the one before"),
		SAVING("\x63\x05\x2a\x14\x00", "a value twice"),
		SAVING("\x63\x05\x2a\x32\x7f", "equal counts, not by value"),
		SAVING("\x63\x02\x2a\x00\x00", "exact, and does not say so"),
		SAVING("\x63\x02\x2a\x00\x64", "nothing is certain of a count"),
		SAVING("\x63\x02\x2a\x00\x65", "more doubt than count"),
		SAVING("\x63\x04\x2a\x00\x00\x02\x05\x00", "more certain than the total"),
		SAVING("\x63\x02\x2a\x01", "no doubt follows"),
		COUNTING("\x63\x02\x01\x00\x2a\x1e\x00", "no loss"),
		COUNTING("\x63\x02\x01\x00\x2a\x1e\x02", "more losses than streams"),
		COUNTING("\x63\x02\x01\x0a\x2a\x60\x05", "more losses than occurrences"),
		COUNTING("\x63\x02\x40\x00\x2a\x1e\x01", "a level of 64"),
		COUNTING("\x63\x02\x01\xff\xff\xff\xff\xff\x0f\x2a\x1e\x01", "2^35 streams"),
		COUNTING("\x63\x02\x00\x00\x2a\x1e\x01", "all values enter, but some are missing"),
		COUNTING("\x63\x02\x00\x00\x2a\x00\x01", "exact, and does not say so"),
		COUNTING("\x63\x01", "exact, but nothing in it"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hotlist_pool *pool = hotlist_pool_create(bad[i].algorithm, 4, 1);
		struct cursor c = cursor_over(bad[i].bytes, bad[i].n);
		struct hotlist h = {0};

		if (hotlist_unpack(pool, &h, &c) != -EBADMSG)
			fail_msg("unpacks: %s", bad[i].why);
		assert_true(!h.total && !h.n);
		hotlist_pool_destroy(pool);
	}
}

/* What the refused ones differ from. */
static void unpack_accepts(void **state)
{
	static const struct {
		enum hotlist_algorithm algorithm;
		const char *bytes, *why;
		size_t n;
	} good[] = {
		SAVING("\x63\x03\x2a", "a constant"),
		SAVING("\x63\x05\x2a\x14\x55", "two"),
		SAVING("\x63\x05\x2a\x32\x01", "two of equal counts"),
		SAVING("\x63\x02\x2a\x01\x00", "one, and another that was given up"),
		SAVING("\x63\x02\x2a\x00\x63", "almost nothing is certain"),
		SAVING("\x63\x04\x2a\x00\x0a\x02\x0a\x50", "as certain as the total allows"),
		COUNTING("\x63\x02\x01\x00\x2a\x1e\x01", "one"),
		COUNTING("\x63\x02\x01\x0a\x2a\x5f\x05", "one of five losses"),
		COUNTING("\x63\x00\x01\x00", "none is left"),
		COUNTING("\x63\x03\x2a", "a constant"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct hotlist_pool *pool = hotlist_pool_create(good[i].algorithm, 4, 1);
		struct cursor c = cursor_over(good[i].bytes, good[i].n);
		struct hotlist h = {0};

		if (hotlist_unpack(pool, &h, &c) || cursor_left(&c))
			fail_msg("does not unpack: %s", good[i].why);
		assert_int_equal(h.total, 100);
		hotlist_pool_destroy(pool);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_empty),
		cmocka_unit_test(reads_by_count),
		cmocka_unit_test(keeps_the_top_first),
		cmocka_unit_test(saturates),
		cmocka_unit_test(memory_is_used_again),
		cmocka_unit_test(sampling_error),
		cmocka_unit_test(packs),
		cmocka_unit_test(packs_short),
		cmocka_unit_test(packs_extremes),
		cmocka_unit_test(unpack_refuses),
		cmocka_unit_test(unpack_accepts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
