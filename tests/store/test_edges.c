#include "store/edges.h"

#include "store/blob_rig.h"

#define KEY 0x1122334455667788

static void assert_reads(const struct buf *b, const struct edge *list, size_t n)
{
	struct edge_reader r;
	struct edge e;

	assert_int_equal(edge_reader_init(&r, b->p, b->n), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(edge_reader_next(&r, &e), 1);
		assert_int_equal(e.from, list[i].from);
		assert_int_equal(e.target, list[i].target);
		assert_int_equal(e.to, list[i].to);
		assert_int_equal(e.count, list[i].count);
	}
	assert_int_equal(edge_reader_next(&r, &e), 0);
	assert_int_equal(edge_reader_next(&r, &e), 0);
}

static void packs(void **state)
{
	static const struct edge list[] = {
		{0, 0, 0, 1},
		{0, 0, UINT64_MAX, 2},
		{1, 0, 0, 3},
		{40, 0, 42, UINT64_MAX},
		{40, 1, 0, 1},
		{40, KEY, 7, 1},
		{40, KEY, 1 << 20, 9},
		{40, UINT64_MAX, UINT64_MAX, 1},
		{1 << 20, 0, 1 << 19, 130},
		{0xffffffff81000000, 0, 0xffffffff81000010, 1},
		{UINT64_MAX, 0, 0, 1},
		{UINT64_MAX, 0, UINT64_MAX, 1},
		{UINT64_MAX, KEY, 3, 7},
	};
	const size_t n = sizeof list / sizeof *list;
	struct buf b = {0};

	(void)state;
	for (size_t from = 0; from <= n; from++) {
		b.n = 0;
		edges_pack(list + from, n - from, &b);
		assert_reads(&b, list + from, n - from);
		assert_whole(&blob_edge, &b);
	}
	assert_int_equal(b.n, 2); /* no keys, no edges */
	buf_deinit(&b);
}

/* Databases hold these bytes: a change would make them unreadable. */
static void bytes_are_fixed(void **state)
{
	static const struct edge list[] = {
		{0x10, 0, 0x8, 3}, {0x10, 0, 0x12, 1}, {0x10, KEY, 0x700, 1}, {0x33, 0, 0x40, 1}};
	static const uint8_t want[] = {0x01, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x04,
		0x40, 0x78, 0x01, 0x01, 0x02, 0x03, 0x00, 0x80, 0x0e, 0x8d, 0x01, 0x0d};
	struct buf b = {0};

	(void)state;
	edges_pack(list, 4, &b);
	assert_bytes(&b, want, sizeof want);
	buf_deinit(&b);
}

static void refused(void **state)
{
	static const struct bad_blob bad[] = {
		{"nothing", "", 0},
		{"ends inside the number of keys", "\x80", 1},
		{"more keys than bytes", "\x01\x01\x00", 3},
		{"more keys than memory", NINE_FF "\x01\x00", 11},
		{"a key of 0", "\x01\0\0\0\0\0\0\0\0\x00", 10},
		{"a key twice", "\x02\x05\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x00", 18},
		{"ends before the number of edges", "\x00", 1},
		{"more edges than bytes", "\x00\x02\x41\x02\x41", 5},
		{"ends inside the difference", "\x00\x01\xc1\x80", 4},
		{"ends inside the target", "\x00\x01\x41\x80", 4},
		{"ends before the count", "\x00\x01\x40\x02", 4},
		{"something follows", "\x00\x01\x41\x02\x00", 5},
		{"something follows no edges", "\x00\x00\x00", 3},
		{"a key that is not there", "\x01\x05\0\0\0\0\0\0\0\x01\x43\x01\x02", 13},
		{"difference of more than 64 bits",
			"\x00\x01\x81\x80\x80\x80\x80\x80\x80\x80\x80\x08\x02", 13},
		{"offsets that wrap",
			"\x00\x02\xfd\xff\xff\xff\xff\xff\xff\xff\xff\x07\x02\x05\x00", 15},
		{"count past the end of numbers", "\x00\x01\x40\x02" NINE_FF "\x01", 14},
		{"number of more than 64 bits", "\x00\x01\x40\x02" NINE_FF "\x02", 14},
		{"an edge twice", "\x00\x02\x41\x02\x01\x02", 6},
		{"edges out of order", "\x00\x02\x41\x02\x01\x01", 6},
		{"images out of order", "\x01\x05\0\0\0\0\0\0\0\x02\x43\x00\x02\x01\x02", 15},
	};

	(void)state;
	assert_refused(&blob_edge, bad, sizeof bad / sizeof *bad);
	/* What they are variations of. */
	assert_int_equal(blob_edge.check("\x00\x00", 2), 0);
	assert_int_equal(blob_edge.check("\x00\x01\x41\x02", 4), 0);
	assert_int_equal(blob_edge.check("\x00\x02\x41\x02\x01\x03", 6), 0);
	assert_int_equal(blob_edge.check("\x01\x05\0\0\0\0\0\0\0\x01\x43\x00\x02", 13), 0);
}

static void settles(void **state)
{
	struct edge list[] = {{9, 0, 3, 1}, {5, KEY, 1, 2}, {9, 0, 2, 4}, {5, 0, 8, 8},
		{9, 0, 3, 16}, {5, KEY, 1, UINT64_MAX}};
	static const struct edge want[] = {
		{5, 0, 8, 8}, {5, KEY, 1, UINT64_MAX}, {9, 0, 2, 4}, {9, 0, 3, 17}};
	size_t n = edges_settle(list, 6);

	(void)state;
	assert_int_equal(n, 4);
	assert_memory_equal(list, want, sizeof want);
	assert_int_equal(edges_settle(NULL, 0), 0);
}

static const struct edge some[] = {
	{1, 0, 9, 1}, {5, 0, 7, 2}, {5, KEY, 7, 3}, {9, 0, 1, UINT64_MAX - 1}};
static const struct edge more[] = {
	{0, 5, 4, 4}, {5, 0, 6, 1}, {5, 0, 7, 5}, {5, KEY, 7, 1}, {9, 0, 1, 9}, {100, 5, 1, 1}};
static const struct edge both[] = {{0, 5, 4, 4}, {1, 0, 9, 1}, {5, 0, 6, 1}, {5, 0, 7, 7},
	{5, KEY, 7, 4}, {9, 0, 1, UINT64_MAX}, {100, 5, 1, 1}};

static void merges(void **state)
{
	struct buf a = {0}, b = {0}, out = {0};

	(void)state;
	edges_pack(some, 4, &a);
	edges_pack(more, 6, &b);
	blob_merge(&blob_edge, &a, &b, &out);
	assert_reads(&out, both, 7);
	assert_int_equal(blob_weight(&blob_edge, &b), 21);
	out.n = 0;
	assert_int_equal(blob_edge.merge(a.p, 1, b.p, b.n, &out), -EBADMSG);
	assert_int_equal(out.n, 0);
	assert_int_equal(blob_edge.merge("\0\0", 2, b.p, b.n, &out), 0);
	assert_reads(&out, more, 6);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&out);
}

/* Keys are in databases too. */
static void keys_are_fixed(void **state)
{
	struct image_id build = {.size = 20}, hash = {.size = 20, .is_hash = true}, none = {0};

	(void)state;
	memset(build.bytes, 7, 20);
	memset(hash.bytes, 7, 20);
	assert_int_equal(edge_image_key(IMAGE_ELF, &build, "/usr/bin/gzip"), 0x6d86b7709d304479);
	assert_int_equal(edge_image_key(IMAGE_ELF, &build, "/elsewhere"), 0x6d86b7709d304479);
	assert_int_equal(edge_image_key(IMAGE_ELF, &hash, "/usr/bin/gzip"), 0x28813bd795026b56);
	assert_int_equal(edge_image_key(IMAGE_ELF, &none, "/usr/bin/gzip"), 0xd8fefe2c84f1bf91);
	assert_int_equal(edge_image_key(IMAGE_VDSO, &none, "[vdso]"), 0x1b6f45c031d41e20);
}

/* ---- in a database ---- */

static void are_no_samples_of_their_own(void **state)
{
	struct buf a = {0}, b = {0};

	edges_pack(some, 3, &a);
	edges_pack(more, 6, &b);
	assert_no_samples_of_their_own(*state, &blob_edge, &a, &b);
	buf_deinit(&a);
	buf_deinit(&b);
}

static int keep_bytes(void *arg, const struct store_profile *p)
{
	assert_ptr_equal(p->type, &blob_edge);
	buf_put(arg, p->data, p->size);
	return 0;
}

static void compact_to_their_sum(void **state)
{
	static const struct store_filter only_edges = {.type = &blob_edge};
	static const struct edge sum[] = {{0, 5, 4, 4}, {1, 0, 9, 1}, {5, 0, 6, 1}, {5, 0, 7, 7},
		{5, KEY, 7, 4}, {9, 0, 1, 9}, {100, 5, 1, 1}};
	struct fixture *f = *state;
	struct buf a = {0}, b = {0}, data = {0};

	edges_pack(some, 3, &a);
	edges_pack(more, 6, &b);
	add_two_flushes(f, &blob_edge, &a, &b);
	ok(f, store_compact(f->s, INT64_MAX, INT64_MAX, &f->e));
	ok(f, store_profiles(f->s, &only_edges, keep_bytes, &data, &f->e));
	assert_reads(&data, sum, 7);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&data);
}

static void come_along_and_expire(void **state)
{
	struct buf a = {0}, b = {0};

	edges_pack(some, 3, &a);
	edges_pack(more, 6, &b);
	assert_come_along_and_expire(*state, &blob_edge, &a, &b);
	buf_deinit(&a);
	buf_deinit(&b);
}

static void damaged_ones_stay_out(void **state)
{
	assert_damaged_stay_out(*state, &blob_edge, "\x00\x01\x41", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packs),
		cmocka_unit_test(bytes_are_fixed),
		cmocka_unit_test(refused),
		cmocka_unit_test(settles),
		cmocka_unit_test(merges),
		cmocka_unit_test(keys_are_fixed),
		cmocka_unit_test_setup_teardown(are_no_samples_of_their_own, setup, teardown),
		cmocka_unit_test_setup_teardown(compact_to_their_sum, setup, teardown),
		cmocka_unit_test_setup_teardown(come_along_and_expire, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_ones_stay_out, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
