#include "store/excursions.h"

#include "store/blob_rig.h"

#define KEY 0x1122334455667788

static void assert_same(const struct excursion_part *a, const struct excursion_part *b)
{
	assert_int_equal(a->number, b->number);
	assert_int_equal(a->weight, b->weight);
	assert_int_equal(a->instructions, b->instructions);
	assert_int_equal(a->nedges, b->nedges);
	for (size_t i = 0; i < a->nedges; i++) {
		assert_int_equal(edge_compare(&a->edges[i], &b->edges[i]), 0);
		assert_int_equal(a->edges[i].count, b->edges[i].count);
	}
}

static void assert_reads(const struct buf *b, const struct excursion_part *list, size_t n)
{
	struct excursion_reader r;
	struct excursion_part x;

	assert_int_equal(excursion_reader_init(&r, b->p, b->n), 0);
	assert_int_equal(r.level, 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(excursion_reader_next(&r, &x), 1);
		assert_same(&x, &list[i]);
	}
	assert_int_equal(excursion_reader_next(&r, &x), 0);
	assert_int_equal(excursion_reader_next(&r, &x), 0);
	excursion_reader_deinit(&r);
}

/* A loop with a call through the PLT, a return into another image, what is as far as can be. */
static const struct edge loop[] = {{0x1010, 0, 0x1000, 99}, {0x1010, 0, 0x1012, 1}};
static const struct edge call[] = {
	{0x1004, 5, 0x77, 1}, {0x1004, KEY, 0x77000, 3}, {0x1030, KEY, 0x1008, 2}};
static const struct edge far[] = {{0, 0, 0, 1}, {0, 0, UINT64_MAX, UINT64_MAX},
	{0, 1, UINT64_MAX, 1}, {0, UINT64_MAX, 0, 7}, {INT64_MAX, 0, 1ull << 63, 1}};

static const struct excursion_part several[] = {
	{.number = 0, .weight = 1, .instructions = 0},
	{.number = 1, .weight = UINT64_MAX, .instructions = UINT64_MAX},
	{.number = 4, .weight = 3, .instructions = 5000, .nedges = 2, .edges = loop},
	{.number = 5, .weight = 3, .instructions = 5007, .nedges = 3, .edges = call},
	{.number = 1ull << 40, .weight = 2, .instructions = 7, .nedges = 5, .edges = far},
	{.number = UINT64_MAX, .weight = 2, .instructions = 7, .nedges = 1, .edges = loop},
};
enum { SEVERAL = sizeof several / sizeof *several };

static void packs(void **state)
{
	struct buf b = {0};

	(void)state;
	for (size_t from = 0; from <= SEVERAL; from++) {
		b.n = 0;
		excursions_pack(several + from, SEVERAL - from, &b);
		assert_reads(&b, several + from, SEVERAL - from);
		assert_whole(&blob_excursion, &b);
		assert_int_equal(blob_weight(&blob_excursion, &b), SEVERAL - from);
	}
	assert_int_equal(b.n, 2); /* no keys, no excursions */
	buf_deinit(&b);
}

/* Databases hold these bytes: a change would make them unreadable. */
static void bytes_are_fixed(void **state)
{
	static const struct edge one[] = {{0x110, 0, 0x100, 200}, {0x110, KEY, 0x700, 1}};
	static const struct edge other[] = {{0x10c, 0, 0x114, 2}};
	static const struct excursion_part list[] = {
		{.number = 8, .weight = 300, .instructions = 5000, .nedges = 2, .edges = one},
		{.number = 10, .weight = 1, .instructions = 3, .nedges = 1, .edges = other},
	};
	static const uint8_t want[] = {0x01, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x02,
		0x08, 0xac, 0x02, 0x88, 0x27, 0x02, 0xa0, 0x04, 0x70, 0xc8, 0x01, 0x01, 0x00, 0x80,
		0x0e, 0x01, 0x02, 0x01, 0x03, 0x01, 0x98, 0x04, 0x08, 0x02};
	struct buf b = {0};

	(void)state;
	excursions_pack(list, 2, &b);
	assert_bytes(&b, want, sizeof want);
	buf_deinit(&b);
}

static void refused(void **state)
{
	static const struct bad_blob bad[] = {
		{"nothing", "", 0},
		{"ends before the number of excursions", "\x00", 1},
		{"more keys than bytes", "\x01\x01\x00", 3},
		{"a key of 0", "\x01\0\0\0\0\0\0\0\0\x00", 10},
		{"a key twice", "\x02\x05\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x00", 18},
		{"more excursions than bytes", "\x00\x02\x04\x01\x05\x00", 6},
		{"more excursions than memory", "\x00" NINE_FF "\x01", 11},
		{"a level that is none", "\x00\x80\x80\x80\x01", 5},
		{"no weight", "\x00\x01\x04\x00\x05\x00", 6},
		{"more edges than bytes", "\x00\x01\x04\x01\x05\x02\x02\x02\x01", 9},
		{"more edges than memory", "\x00\x01\x04\x01\x05" NINE_FF "\x01\x02\x02\x01", 18},
		{"no count", "\x00\x01\x04\x01\x05\x01\x02\x02\x00", 9},
		{"a key that is not there", "\x00\x01\x04\x01\x05\x01\x03\x00\x02\x01", 10},
		{"ends inside a count", "\x00\x01\x04\x01\x05\x01\x02\x02\x80", 9},
		{"a difference of more than 64 bits",
			"\x00\x01\x04\x01\x05\x01\x02\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02\x01",
			18},
		{"edges out of order", "\x00\x01\x04\x01\x05\x02\x02\x04\x01\x00\x02\x01", 12},
		{"an edge twice", "\x00\x01\x04\x01\x05\x02\x02\x02\x01\x00\x02\x01", 12},
		{"an edge that wraps",
			"\x00\x01\x04\x01\x05\x02\xfe" NINE_FF "\x01\x02\x01\x02\x02\x01", 22},
		{"an excursion twice", "\x00\x02\x04\x01\x05\x00\x00\x01\x05\x00", 10},
		{"number 0 twice", "\x00\x02\x00\x01\x05\x00\x00\x01\x05\x00", 10},
		{"numbers that wrap", "\x00\x02" NINE_FF "\x01\x01\x05\x00\x01\x01\x05\x00", 19},
		{"something follows", "\x00\x01\x04\x01\x05\x00\x00", 7},
		{"something follows nothing", "\x00\x00\x00", 3},
	};

	(void)state;
	assert_refused(&blob_excursion, bad, sizeof bad / sizeof *bad);
	/* What they are variations of. */
	assert_int_equal(blob_excursion.check("\x00\x00", 2), 0);
	assert_int_equal(blob_excursion.check("\x00\x80\x80\x7e", 4), 0);
	assert_int_equal(blob_excursion.check("\x00\x01\x04\x01\x05\x00", 6), 0);
	assert_int_equal(blob_excursion.check("\x00\x01\x04\x01\x05\x01\x02\x02\x01", 9), 0);
	assert_int_equal(
		blob_excursion.check("\x00\x01\x04\x01\x05\x02\x02\x02\x01\x00\x04\x01", 12), 0);
	assert_int_equal(blob_excursion.check(
				 "\x01\x05\0\0\0\0\0\0\0\x01\x04\x01\x05\x01\x03\x00\x02\x01", 18),
		0);
	assert_int_equal(blob_excursion.check("\x00\x02\x04\x01\x05\x00\x01\x01\x05\x00", 10), 0);
}

/* One excursion more than there may be. */
static void too_many(void **state)
{
	struct buf b = {0};

	(void)state;
	for (int more = 0; more < 2; more++) {
		b.n = 0;
		buf_u8(&b, 0);
		buf_uleb(&b, EXCURSIONS_MOST + more);
		for (int i = 0; i < EXCURSIONS_MOST + more; i++)
			buf_put(&b, "\x01\x01\x05\x00", 4);
		assert_int_equal(blob_excursion.check(b.p, b.n), more ? -EBADMSG : 0);
	}
	buf_deinit(&b);
}

/* ---- merging ---- */

/* Those that are in both are there once. */
static void merges(void **state)
{
	struct buf a = {0}, b = {0}, out = {0};

	(void)state;
	for (size_t i = 0; i <= SEVERAL; i++) {
		for (size_t again = 0; again <= i; again++) {
			a.n = b.n = 0;
			excursions_pack(several, i, &a);
			excursions_pack(several + again, SEVERAL - again, &b);
			blob_merge(&blob_excursion, &a, &b, &out);
			assert_reads(&out, several, SEVERAL);
		}
	}
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&out);
}

/* All stretches of `n` excursions from `first` on. */
static void pack_many(struct buf *out, uint64_t first, size_t n, uint64_t weight)
{
	size_t parts = n * EXCURSION_STRETCHES;
	struct excursion_part *list = xcalloc(parts, sizeof *list);

	for (size_t i = 0; i < parts; i++)
		list[i] = (struct excursion_part){.number = first * EXCURSION_STRETCHES + i,
			.weight = weight,
			.instructions = 5000,
			.nedges = 2,
			.edges = loop};
	excursions_pack(list, parts, out);
	free(list);
}

struct sums {
	unsigned level;
	uint64_t count[2], weight[2]; /* of excursions below a number, and of the others */
};

/* Whole excursions, all of one weight. */
static void sum_up(const struct buf *b, uint64_t border, struct sums *out)
{
	struct excursion_reader r;
	struct excursion_part x;
	uint64_t weight = 0;

	assert_int_equal(excursion_reader_init(&r, b->p, b->n), 0);
	*out = (struct sums){.level = r.level};
	for (uint64_t stretch = 0; excursion_reader_next(&r, &x) > 0; stretch++) {
		unsigned which = x.number / EXCURSION_STRETCHES >= border;

		assert_int_equal(x.number % EXCURSION_STRETCHES, stretch % EXCURSION_STRETCHES);
		assert_int_equal(x.instructions, 5000);
		assert_int_equal(x.nedges, 2);
		assert_true(!(stretch % EXCURSION_STRETCHES) || x.weight == weight);
		weight = x.weight;
		out->count[which] += !(stretch % EXCURSION_STRETCHES);
		out->weight[which] += stretch % EXCURSION_STRETCHES ? 0 : weight;
	}
	excursion_reader_deinit(&r);
}

/* Too many are thinned: whole excursions stay, and stand for those that do not. */
static void bounded(void **state)
{
	enum { MOST = EXCURSIONS_MERGED / EXCURSION_STRETCHES };
	struct buf a = {0}, b = {0}, out = {0};
	struct sums s;

	(void)state;
	pack_many(&a, 0, 3000, 30);
	pack_many(&b, 3000, 1000, 10);
	blob_merge(&blob_excursion, &a, &b, &out);
	assert_whole(&blob_excursion, &out);
	sum_up(&out, 3000, &s);
	assert_int_not_equal(s.level, 0);
	assert_in_range(s.count[0] + s.count[1], MOST / 3, MOST);
	assert_int_equal(s.weight[0], s.count[0] * (30 << s.level));
	assert_int_equal(s.weight[1], s.count[1] * (10 << s.level));
	/* One in 4 to 8: standard errors of 90,000 * sqrt(7 / 3000) and 10,000 * sqrt(7 / 1000). */
	assert_in_range(s.weight[0], 75000, 105000);
	assert_in_range(s.weight[1], 6800, 13200);
	/* The same again changes nothing. */
	a.n = 0;
	buf_put(&a, out.p, out.n);
	blob_merge(&blob_excursion, &a, &out, &b);
	assert_bytes(&b, a.p, a.n);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&out);
}

/* Of one that is thinned and the same as it was before, one stays, with one weight. */
static void thinned_and_not(void **state)
{
	struct buf few = {0}, many = {0}, thinned = {0}, out = {0};
	struct sums s;

	(void)state;
	pack_many(&few, 0, 1000, 8);
	pack_many(&many, 1000, 2000, 8);
	blob_merge(&blob_excursion, &few, &many, &thinned);
	blob_merge(&blob_excursion, &few, &thinned, &out);
	assert_bytes(&out, thinned.p, thinned.n);
	sum_up(&out, 1000, &s);
	assert_int_equal(s.weight[0], s.count[0] * (8 << s.level));
	buf_deinit(&few);
	buf_deinit(&many);
	buf_deinit(&thinned);
	buf_deinit(&out);
}

/* Images that saw more of the same excursions keep no others than those that saw fewer. */
static void same_ones_in_all_images(void **state)
{
	struct buf a = {0}, b = {0}, more = {0}, fewer = {0};
	struct excursion_reader x, y;
	struct excursion_part p, q;

	(void)state;
	pack_many(&a, 0, 1000, 1);
	pack_many(&b, 1000, 3000, 1);
	blob_merge(&blob_excursion, &a, &b, &more);
	b.n = 0;
	pack_many(&b, 1000, 500, 1);
	blob_merge(&blob_excursion, &a, &b, &fewer);
	assert_int_equal(excursion_reader_init(&x, more.p, more.n), 0);
	assert_int_equal(excursion_reader_init(&y, fewer.p, fewer.n), 0);
	q.number = 0;
	while (excursion_reader_next(&x, &p) > 0 && p.number < 1500 * EXCURSION_STRETCHES) {
		while (q.number < p.number)
			assert_int_equal(excursion_reader_next(&y, &q), 1);
		assert_int_equal(q.number, p.number);
	}
	excursion_reader_deinit(&x);
	excursion_reader_deinit(&y);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&more);
	buf_deinit(&fewer);
}

/* Flushes one after the other: the last count as much as the first. */
static void late_ones_count_as_early_ones(void **state)
{
	uint64_t early = 0, late = 0;

	(void)state;
	for (uint64_t hour = 0; hour < 10; hour++) {
		struct buf all = {0}, next = {0}, out = {0};
		struct sums s;

		for (uint64_t i = 0; i < 20; i++) {
			next.n = out.n = 0;
			pack_many(&next, hour << 20 | i * 500, 500, 1);
			if (i)
				assert_int_equal(
					blob_excursion.merge(all.p, all.n, next.p, next.n, &out),
					0);
			all.n = 0;
			buf_put(&all, i ? out.p : next.p, i ? out.n : next.n);
		}
		sum_up(&all, hour << 20 | 5000, &s);
		early += s.weight[0];
		late += s.weight[1];
		buf_deinit(&all);
		buf_deinit(&next);
		buf_deinit(&out);
	}
	/* Half each of 100,000, one in 16 stays: a standard error of sqrt(50,000 * 15) = 866. */
	assert_in_range(early, 46500, 53500);
	assert_in_range(late, 46500, 53500);
}

/* Weights have an end. */
static void weights_stop_at_the_end_of_numbers(void **state)
{
	struct buf a = {0}, b = {0}, out = {0};
	struct excursion_reader r;
	struct excursion_part x;

	(void)state;
	pack_many(&a, 0, 1000, UINT64_MAX);
	pack_many(&b, 1000, 1000, UINT64_MAX / 2);
	blob_merge(&blob_excursion, &a, &b, &out);
	assert_int_equal(excursion_reader_init(&r, out.p, out.n), 0);
	while (excursion_reader_next(&r, &x) > 0)
		assert_true(x.weight >= UINT64_MAX - 1);
	excursion_reader_deinit(&r);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&out);
}

/* ---- in a database ---- */

static void are_no_samples_of_their_own(void **state)
{
	struct buf a = {0}, b = {0};

	pack_many(&a, 0, 400, 2);
	pack_many(&b, 400, 150, 2);
	assert_no_samples_of_their_own(*state, &blob_excursion, &a, &b);
	buf_deinit(&a);
	buf_deinit(&b);
}

static void come_along_and_expire(void **state)
{
	struct buf a = {0}, b = {0};

	pack_many(&a, 0, 400, 2);
	pack_many(&b, 400, 100, 2);
	assert_come_along_and_expire(*state, &blob_excursion, &a, &b);
	buf_deinit(&a);
	buf_deinit(&b);
}

static void damaged_ones_stay_out(void **state)
{
	assert_damaged_stay_out(*state, &blob_excursion, "\x00\x01\x10", 3);
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
		cmocka_unit_test(thinned_and_not),
		cmocka_unit_test(same_ones_in_all_images),
		cmocka_unit_test(late_ones_count_as_early_ones),
		cmocka_unit_test(weights_stop_at_the_end_of_numbers),
		cmocka_unit_test_setup_teardown(are_no_samples_of_their_own, setup, teardown),
		cmocka_unit_test_setup_teardown(come_along_and_expire, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_ones_stay_out, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
