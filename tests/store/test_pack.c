#include "store/fixture.h"

#include <zstd.h>

static void compresses(void **state)
{
	static uint8_t raw[5000];
	struct buf packed = {0}, back = {0};

	(void)state;
	for (size_t n = 0; n <= sizeof raw; n = n * 3 + 1) {
		for (size_t i = 0; i < n; i++)
			raw[i] = (uint8_t)(i / 50);
		packed.n = back.n = 0;
		assert_int_equal(pack_compress(raw, n, &packed), 0);
		assert_true(packed.n <= n + 3);
		assert_int_equal(pack_expand(packed.p, packed.n, &back), 0);
		assert_int_equal(back.n, n);
		assert_memory_equal(back.p, raw, n);
	}
	assert_true(packed.n < 200);
	buf_deinit(&packed);
	buf_deinit(&back);
}

static void stores_what_does_not_shrink(void **state)
{
	uint8_t raw[1000];
	struct buf packed = {0}, back = {0};
	uint32_t x = 1;

	(void)state;
	for (size_t i = 0; i < sizeof raw; i++)
		raw[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
	assert_int_equal(pack_compress(raw, sizeof raw, &packed), 0);
	assert_int_equal(packed.n, sizeof raw + 2);
	assert_int_equal(pack_expand(packed.p, packed.n, &back), 0);
	assert_memory_equal(back.p, raw, sizeof raw);
	buf_deinit(&packed);
	buf_deinit(&back);
}

static void expand_refuses(void **state)
{
	static const uint8_t zeros[300];
	struct buf packed = {0}, out = {0};

	(void)state;
	assert_int_equal(pack_compress(zeros, sizeof zeros, &packed), 0);
	for (size_t n = 0; n < packed.n; n++)
		assert_int_equal(pack_expand(packed.p, n, &out), -EBADMSG);
	buf_u8(&packed, 0);
	assert_int_equal(pack_expand(packed.p, packed.n, &out), -EBADMSG); /* something follows */
	packed.n--;
	buf_put(&packed, "\x50\x2a\x4d\x18\0\0\0\0", 8); /* also a frame that zstd would skip */
	assert_int_equal(pack_expand(packed.p, packed.n, &out), -EBADMSG);
	packed.n -= 8;
	packed.p[0] ^= 2;
	assert_int_equal(pack_expand(packed.p, packed.n, &out), -EBADMSG); /* another size */

	/* A size past the limit, stored and compressed. */
	packed.n = 0;
	buf_uleb(&packed, ((uint64_t)PACK_LIMIT + 1) << 1 | 1);
	assert_int_equal(pack_expand(packed.p, packed.n, &out), -EBADMSG);
	packed.n = 0;
	buf_uleb(&packed, UINT64_MAX - 1);
	assert_int_equal(pack_expand(packed.p, packed.n, &out), -EBADMSG);
	assert_int_equal(out.n, 0);
	buf_deinit(&packed);
	buf_deinit(&out);
}

static void assert_reads(const struct buf *b, const struct pc_count *list, size_t n)
{
	struct pc_reader r;
	struct pc_count pc;

	assert_int_equal(pc_reader_init(&r, b->p, b->n), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(pc_reader_next(&r, &pc), 1);
		assert_int_equal(pc.offset, list[i].offset);
		assert_int_equal(pc.count, list[i].count);
	}
	assert_int_equal(pc_reader_next(&r, &pc), 0);
	assert_int_equal(pc_reader_next(&r, &pc), 0);
}

static void packs_pcs(void **state)
{
	static const struct pc_count list[] = {
		{0, 1},
		{1, 2},
		{63, 1},
		{127, 3},
		{128, UINT64_MAX},
		{1 << 20, 130},
		{0xffffffff81000000, 1},
		{UINT64_MAX - 1, 1},
		{UINT64_MAX, 7},
	};
	const size_t n = sizeof list / sizeof *list;
	struct buf b = {0};

	(void)state;
	for (size_t from = 0; from <= n; from++) {
		b.n = 0;
		pack_pcs(list + from, n - from, &b);
		assert_reads(&b, list + from, n - from);
	}
	assert_int_equal(b.n, 1); /* no pairs */

	/* What most pairs look like takes a byte. */
	b.n = 0;
	pack_pcs((struct pc_count[]){{40, 1}, {45, 1}, {108, 1}}, 3, &b);
	assert_int_equal(b.n, 4);
	buf_deinit(&b);
}

static void pcs_refused(void **state)
{
	static const struct {
		const char *why, *bytes;
		size_t n;
	} bad[] = {
		{"nothing", "", 0},
		{"more pairs than bytes", "\x05\x01", 2},
		{"ends inside the number of pairs", "\x80", 1},
		{"ends before the difference", "\x01\x81", 2},
		{"ends before the count", "\x02\x00\x80", 3},
		{"something follows", "\x01\x01\x01", 3},
		{"difference of more than 64 bits", "\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff\x07",
			11},
		{"count past the end of numbers",
			"\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12},
		{"number of more than 64 bits", "\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
			12},
		{"offsets that wrap", "\x02\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\x03", 12},
		{"offset after the last possible one",
			"\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x03\x01", 12},
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (blob_pc.check(bad[i].bytes, bad[i].n) != -EBADMSG) {
			print_error("not refused: %s\n", bad[i].why);
			fail();
		}
	}
	assert_int_equal(blob_pc.check("\x00", 1), 0);
	assert_int_equal(blob_pc.check("\x01\x01", 2), 0);
}

static void merges_pcs(void **state)
{
	static const struct pc_count a[] = {{1, 1}, {5, 2}, {9, UINT64_MAX - 1}};
	static const struct pc_count b[] = {{0, 4}, {5, 3}, {9, 9}, {100, 1}};
	static const struct pc_count sum[] = {{0, 4}, {1, 1}, {5, 5}, {9, UINT64_MAX}, {100, 1}};
	struct buf pa = {0}, pb = {0}, out = {0};
	uint64_t samples;

	(void)state;
	pack_pcs(a, 3, &pa);
	pack_pcs(b, 4, &pb);
	assert_int_equal(blob_pc.merge(pa.p, pa.n, pb.p, pb.n, &out), 0);
	assert_reads(&out, sum, 5);
	out.n = 0;
	assert_int_equal(blob_pc.merge(pb.p, pb.n, pa.p, pa.n, &out), 0);
	assert_reads(&out, sum, 5);
	assert_int_equal(blob_pc.merge(pa.p, pa.n, pb.p, pb.n - 1, &out), -EBADMSG);
	assert_int_equal(blob_pc.weight(pb.p, pb.n, &samples), 0);
	assert_int_equal(samples, 17);
	out.n = 0;
	assert_int_equal(blob_pc.merge("\0", 1, pb.p, pb.n, &out), 0);
	assert_reads(&out, b, 4);
	buf_deinit(&pa);
	buf_deinit(&pb);
	buf_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compresses),
		cmocka_unit_test(stores_what_does_not_shrink),
		cmocka_unit_test(expand_refuses),
		cmocka_unit_test(packs_pcs),
		cmocka_unit_test(pcs_refused),
		cmocka_unit_test(merges_pcs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
