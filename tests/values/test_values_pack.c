#include "store/fixture.h"
#include "values/exact.h"
#include "values/values_pack.h"

/* Key k of a profile sees the stream k; every profile of a number has other values. */
static struct value_profile *make_profile(
	enum hotlist_algorithm algorithm, unsigned capacity, uint64_t number, uint64_t adds)
{
	struct value_options o = {.algorithm = algorithm, .capacity = capacity, .seed = number};
	struct value_profile *p = value_profile_create(&o);
	struct stream s = {.n = adds, .random = number};

	for (; s.i < adds; s.i++) {
		uint64_t k = stream_below(&s, STREAM_TYPES * 4);
		struct value_key key = {
			.offset = 0x1000 + k / 4 * 5 + number % 3 * 1000,
			.kind = k % 4 / 2 ? VALUE_ADDRESS : VALUE_RESULT,
			.context = k % 2 ? k * 0x9e3779b97f4a7c15 : 0,
		};

		value_profile_add(p, &key, stream_types[k / 4].next(&s), 1);
	}
	return p;
}

static void pack_profile(enum hotlist_algorithm algorithm, unsigned capacity, uint64_t number,
	uint64_t adds, struct buf *out)
{
	struct value_profile *p = make_profile(algorithm, capacity, number, adds);

	value_profile_pack(p, out);
	value_profile_destroy(p);
}

struct comparison {
	const struct value_profile *a, *b;
};

static int compare_list(void *arg, const struct value_key *key, const struct hotlist *h)
{
	const struct comparison *c = arg;
	struct hot_value a[HOTLIST_CAPACITY_MAX], b[HOTLIST_CAPACITY_MAX];
	const struct hotlist *other = value_profile_find(c->b, key);
	size_t n = value_profile_read(c->a, h, a);

	assert_non_null(other);
	assert_int_equal(other->total, h->total);
	assert_int_equal(value_profile_read(c->b, other, b), n);
	if (n)
		assert_memory_equal(a, b, n * sizeof *a);
	return 0;
}

static void assert_same(const struct value_profile *a, const struct value_profile *b)
{
	struct comparison c = {a, b};

	assert_int_equal(value_profile_keys(a), value_profile_keys(b));
	assert_int_equal(value_profile_refused(a), value_profile_refused(b));
	value_profile_each(a, compare_list, &c);
}

static void round_trip(void **state)
{
	(void)state;
	for (int a = 0; a < HOTLIST_ALGORITHMS; a++) {
		for (uint64_t adds = 0; adds <= 100000; adds = adds * 10 + 1) {
			enum hotlist_algorithm algorithm = (enum hotlist_algorithm)a;
			struct value_profile *p = make_profile(algorithm, 16, 1, adds);
			struct value_profile *back = value_profile_create(
				&(struct value_options){.algorithm = algorithm});
			struct buf packed = {0}, again = {0};
			uint64_t weight;

			value_profile_pack(p, &packed);
			assert_int_equal(blob_value.check(packed.p, packed.n), 0);
			assert_int_equal(blob_value.weight(packed.p, packed.n, &weight), 0);
			assert_int_equal(weight, adds);
			assert_int_equal(value_profile_unpack(back, packed.p, packed.n), 0);
			assert_same(p, back);
			value_profile_pack(back, &again);
			assert_int_equal(again.n, packed.n);
			assert_memory_equal(again.p, packed.p, packed.n);
			buf_deinit(&packed);
			buf_deinit(&again);
			value_profile_destroy(back);
			value_profile_destroy(p);
		}
	}
}

static void extreme_keys(void **state)
{
	static const struct value_key keys[] = {
		{0, 0, 0},
		{0, 1, 0},
		{0, 0, UINT16_MAX},
		{1, UINT64_MAX, 3},
		{UINT64_MAX, 0, 0},
		{UINT64_MAX, UINT64_MAX, UINT16_MAX},
	};
	struct value_profile *p = value_profile_create(NULL), *back = value_profile_create(NULL);
	struct buf packed = {0};

	(void)state;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		value_profile_add(p, &keys[i], UINT64_MAX - i, UINT64_MAX);
	value_profile_pack(p, &packed);
	assert_int_equal(value_profile_unpack(back, packed.p, packed.n), 0);
	assert_same(p, back);
	buf_deinit(&packed);
	value_profile_destroy(back);
	value_profile_destroy(p);
}

/* Keys of one only are as they were, of both they are merged; and nothing is lost. */
static void merges(void **state)
{
	struct value_profile *sum = value_profile_create(NULL), *back = value_profile_create(NULL);
	struct buf part[6] = {0}, merged = {0}, twice = {0};
	uint64_t weight;

	(void)state;
	for (uint64_t i = 0; i < 6; i++) {
		pack_profile(HOTLIST_SPACE_SAVING, 16, i, 9000, &part[i]);
		assert_int_equal(value_profile_unpack(sum, part[i].p, part[i].n), 0);
	}
	buf_put(&merged, part[0].p, part[0].n);
	for (uint64_t i = 1; i < 6; i++) {
		struct buf other = {0};

		twice.n = 0;
		assert_int_equal(
			blob_value.merge(merged.p, merged.n, part[i].p, part[i].n, &twice), 0);
		assert_int_equal(
			blob_value.merge(part[i].p, part[i].n, merged.p, merged.n, &other), 0);
		assert_int_equal(other.n, twice.n);
		assert_memory_equal(other.p, twice.p, other.n);
		assert_int_equal(blob_value.weight(twice.p, twice.n, &weight), 0);
		assert_int_equal(weight, 9000 * (i + 1));
		merged.n = 0;
		buf_put(&merged, twice.p, twice.n);
		buf_deinit(&other);
	}
	assert_int_equal(value_profile_unpack(back, merged.p, merged.n), 0);
	assert_int_equal(value_profile_keys(back), STREAM_TYPES * 4 * 3);
	assert_same(sum, back);
	for (int i = 0; i < 6; i++)
		buf_deinit(&part[i]);
	buf_deinit(&merged);
	buf_deinit(&twice);
	value_profile_destroy(back);
	value_profile_destroy(sum);
}

/* The larger capacity is kept; random numbers come from what is merged. */
static void merges_of_a_kind(void **state)
{
	struct buf small = {0}, large = {0}, counting = {0}, out = {0}, again = {0};
	struct value_profile *p = value_profile_create(NULL);

	(void)state;
	pack_profile(HOTLIST_SPACE_SAVING, 4, 1, 5000, &small);
	pack_profile(HOTLIST_SPACE_SAVING, 32, 2, 5000, &large);
	pack_profile(HOTLIST_COUNTING, 16, 3, 5000, &counting);
	assert_int_equal(blob_value.merge(small.p, small.n, large.p, large.n, &out), 0);
	assert_int_equal(out.p[1], 32);
	assert_int_equal(blob_value.check(out.p, out.n), 0);

	/* One algorithm's bounds are not the other's. */
	assert_int_equal(blob_value.merge(small.p, small.n, counting.p, counting.n, &out), -EINVAL);
	assert_int_equal(value_profile_unpack(p, counting.p, counting.n), -EINVAL);
	assert_int_equal(value_profile_keys(p), 0);

	out.n = 0;
	assert_int_equal(blob_value.merge(counting.p, counting.n, counting.p, counting.n, &out), 0);
	assert_int_equal(
		blob_value.merge(counting.p, counting.n, counting.p, counting.n, &again), 0);
	assert_int_equal(out.n, again.n);
	assert_memory_equal(out.p, again.p, out.n);
	assert_int_equal(blob_value.check(out.p, out.n), 0);
	buf_deinit(&small);
	buf_deinit(&large);
	buf_deinit(&counting);
	buf_deinit(&out);
	buf_deinit(&again);
	value_profile_destroy(p);
}

/* Refused values are kept through packing and merging, and new ones are added. */
static void refused_are_kept(void **state)
{
	struct value_profile *p = value_profile_create(&(struct value_options){.keys = 2});
	struct value_profile *tiny = value_profile_create(&(struct value_options){.keys = 1});
	struct buf packed = {0}, merged = {0};
	uint64_t weight;

	(void)state;
	for (uint64_t i = 0; i < 5; i++)
		value_profile_add(p, &(struct value_key){.offset = i}, 1, 10);
	assert_int_equal(value_profile_refused(p), 30);
	value_profile_pack(p, &packed);
	assert_int_equal(blob_value.merge(packed.p, packed.n, packed.p, packed.n, &merged), 0);
	assert_int_equal(blob_value.weight(merged.p, merged.n, &weight), 0);
	assert_int_equal(weight, 100);
	assert_int_equal(value_profile_unpack(tiny, merged.p, merged.n), 0);
	assert_int_equal(value_profile_keys(tiny), 1);
	assert_int_equal(value_profile_refused(tiny), 60 + 20);
	buf_deinit(&packed);
	buf_deinit(&merged);
	value_profile_destroy(p);
	value_profile_destroy(tiny);
}

static void refuses(void **state)
{
#define BYTES(s) s, sizeof s - 1
	static const struct {
		const char *why, *bytes;
		size_t n;
	} bad[] = {
		{"nothing", BYTES("")},
		{"a third algorithm", BYTES("\x02\x10\x00\x00")},
		{"a capacity of 1", BYTES("\x00\x01\x00\x00")},
		{"a capacity of 65", BYTES("\x00\x41\x00\x00")},
		{"something follows", BYTES("\x00\x10\x00\x00\x00")},
		{"more keys than bytes", BYTES("\x00\x10\x00\x02\x05\x00\x00\x03\x2a")},
		{"a key twice", BYTES("\x00\x10\x00\x02\x05\x00\x00\x03\x2a\x00\x00\x00\x03\x2a")},
		{"kinds out of order",
			BYTES("\x00\x10\x00\x02\x05\x02\x00\x03\x2a\x00\x00\x00\x03\x2a")},
		{"contexts out of order",
			BYTES("\x00\x10\x00\x02\x05\x01\x02\0\0\0\0\0\0\0\x00\x03\x2a"
			      "\x00\x01\x01\0\0\0\0\0\0\0\x00\x03\x2a")},
		{"a context of 0", BYTES("\x00\x10\x00\x01\x05\x01\0\0\0\0\0\0\0\0\x00\x03\x2a")},
		{"a kind of 17 bits", BYTES("\x00\x10\x00\x01\x05\x80\x80\x08\x00\x03\x2a")},
		{"offsets that wrap",
			BYTES("\x00\x10\x00\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00\x03"
			      "\x2a\x01\x00\x00\x03\x2a")},
		{"a bad list", BYTES("\x00\x10\x00\x01\x05\x00\x00\x01\x2a")},
	};
	struct value_profile *p = value_profile_create(NULL);
	struct buf out = {0};
	uint64_t weight = 7;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (blob_value.check(bad[i].bytes, bad[i].n) != -EBADMSG)
			fail_msg("%s passes", bad[i].why);
		assert_int_equal(blob_value.weight(bad[i].bytes, bad[i].n, &weight), -EBADMSG);
		assert_int_equal(value_profile_unpack(p, bad[i].bytes, bad[i].n), -EBADMSG);
		assert_int_equal(
			blob_value.merge(bad[i].bytes, bad[i].n, "\0\x10\0\0", 4, &out), -EBADMSG);
		assert_int_equal(
			blob_value.merge("\0\x10\0\0", 4, bad[i].bytes, bad[i].n, &out), -EBADMSG);
	}
	assert_int_equal(weight, 7);
	assert_int_equal(out.n, 0);
	assert_int_equal(value_profile_keys(p), 0);
	/* What they differ from. */
	assert_int_equal(blob_value.check(BYTES("\x00\x10\x00\x00")), 0);
	assert_int_equal(blob_value.check(BYTES("\x00\x10\x00\x01\x05\x00\x00\x03\x2a")), 0);
	assert_int_equal(blob_value.check(BYTES("\x00\x10\x00\x02\x05\x00\x00\x03\x2a"
						"\x00\x02\x00\x03\x2a")),
		0);
	buf_deinit(&out);
	value_profile_destroy(p);
}

/* A damaged profile is refused or is another sound one; nothing worse. */
static void damaged(void **state)
{
	struct buf packed = {0}, out = {0};
	uint64_t weight;

	(void)state;
	for (int a = 0; a < HOTLIST_ALGORITHMS; a++) {
		packed.n = 0;
		pack_profile((enum hotlist_algorithm)a, 8, 5, 700, &packed);
		for (size_t n = 0; n < packed.n; n++)
			assert_int_equal(blob_value.check(packed.p, n), -EBADMSG);
		for (size_t i = 0; i < packed.n * 3; i++) {
			uint8_t *byte = &packed.p[i / 3], was = *byte;

			*byte ^= (uint8_t)(i % 3 == 0 ? 1 : i % 3 == 1 ? 0x40 : 0x80);
			out.n = 0;
			if (!blob_value.check(packed.p, packed.n)) {
				assert_int_equal(blob_value.merge(packed.p, packed.n, packed.p,
							 packed.n, &out),
					0);
				assert_int_equal(blob_value.weight(out.p, out.n, &weight), 0);
			}
			*byte = was;
		}
	}
	buf_deinit(&packed);
	buf_deinit(&out);
}

/* The database merges what was flushed, and finds nothing wrong with it. */
static void in_the_database(void **state)
{
	struct fixture *f = *state;
	struct store_filter filter = {.type = &blob_value};
	struct buf data = {0};

	store_register(f->s, &blob_value);
	ok(f, store_begin(f->s, &f->e));
	for (uint64_t i = 0; i < 5; i++) {
		data.n = 0;
		pack_profile(HOTLIST_SPACE_SAVING, 16, i, 3000, &data);
		add_flush(f, i, 10);
		ok(f, store_profile_add(f->s,
			      &(struct store_profile){.epoch = f->epoch,
				      .event = f->event.id,
				      .image = f->image,
				      .process = f->process,
				      .t0 = T0 + (int64_t)i * MINUTE,
				      .t1 = T0 + (int64_t)(i + 1) * MINUTE,
				      .type = &blob_value,
				      .data = data.p,
				      .size = data.n},
			      &f->e));
	}
	ok(f, store_commit(f->s, &f->e));
	assert_int_equal(profile_rows(f, &filter), 5);
	ok(f, store_compact(f->s, INT64_MAX, INT64_MAX, &f->e));
	assert_int_equal(profile_rows(f, &filter), 1);
	assert_int_equal(profile_samples(f, &filter), 15000);
	assert_int_equal(count_faults(f), 0);
	buf_deinit(&data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(extreme_keys),
		cmocka_unit_test(merges),
		cmocka_unit_test(merges_of_a_kind),
		cmocka_unit_test(refused_are_kept),
		cmocka_unit_test(refuses),
		cmocka_unit_test(damaged),
		cmocka_unit_test_setup_teardown(in_the_database, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
