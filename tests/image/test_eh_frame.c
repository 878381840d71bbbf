#include "image/eh_frame.h"

#include <errno.h>

#include "base/buf.h"
#include "image/workshop.h"

enum { VADDR = 0x10000 };

/* Closes an entry: pads to 4 and sets the length at `start`. */
static void end_entry(struct buf *b, size_t start)
{
	while (b->n % 4)
		buf_u8(b, 0);
	uint32_t length = (uint32_t)(b->n - start - 4);
	memcpy(b->p + start, &length, sizeof length);
}

/* What gcc writes: "zR", pcrel sdata4, CFA = rsp + 8, return address at CFA - 8. */
static size_t add_cie(struct buf *b, const char *letters, uint8_t encoding)
{
	static const uint8_t instructions[] = {0x0c, 7, 8, 0x80 | 16, 1};
	size_t start = b->n;
	buf_u32(b, 0);
	buf_u32(b, 0);
	buf_u8(b, 1);
	buf_str(b, letters);
	buf_uleb(b, 1);
	buf_sleb(b, -8);
	buf_u8(b, 16);
	if (*letters == 'z') {
		buf_uleb(b, 1);
		buf_u8(b, encoding);
	}
	buf_put(b, instructions, sizeof instructions);
	end_entry(b, start);
	return start;
}

static void add_fde(
	struct buf *b, size_t cie, uint32_t start, uint32_t size, const char *cfi, size_t n)
{
	size_t entry = b->n;
	buf_u32(b, 0);
	buf_u32(b, (uint32_t)(b->n - cie));
	buf_u32(b, start - (uint32_t)(VADDR + b->n));
	buf_u32(b, size);
	buf_uleb(b, 0);
	buf_put(b, cfi, n);
	end_entry(b, entry);
}

static void test_extents(void **state)
{
	(void)state;
	struct buf b = {0};
	struct fdes fdes = {0};
	size_t cie = add_cie(&b, "zR", 0x1b);
	add_fde(&b, cie, 0x1000, 0x20, "", 0);
	buf_u32(&b, 0); /* a terminator between entries, as crt files leave it */
	add_fde(&b, cie, 0x2000, 0x30, "\x41\x0e\x10", 3); /* advance 1, CFA = rsp + 16 */
	assert_int_equal(eh_frame_parse(b.p, b.n, VADDR, &fdes), 0);
	assert_int_equal(fdes.list.n, 2);
	assert_int_equal(fdes.list.p[0].start, 0x1000);
	assert_int_equal(fdes.list.p[0].size, 0x20);
	assert_false(fdes.list.p[0].midframe);
	assert_int_equal(fdes.list.p[1].start, 0x2000);
	assert_int_equal(fdes.list.p[1].size, 0x30);
	assert_false(fdes.list.p[1].midframe);
	vec_deinit(&fdes.list);
	buf_deinit(&b);
}

static void test_midframe(void **state)
{
	(void)state;
	struct buf b = {0};
	struct fdes fdes = {0};
	size_t cie = add_cie(&b, "zR", 0x1b);
	add_fde(&b, cie, 0x1000, 8, "\x0e\x40", 2);         /* CFA = rsp + 64 */
	add_fde(&b, cie, 0x2000, 8, "\x86\x02", 2);         /* rbp saved */
	add_fde(&b, cie, 0x3000, 8, "\x0d\x06", 2);         /* CFA = rbp + 8 */
	add_fde(&b, cie, 0x4000, 8, "\x0f\x02\x77\x08", 4); /* an expression */
	add_fde(&b, cie, 0x5000, 8, "\x07\x10", 2);         /* rip undefined, as _start */
	add_fde(&b, cie, 0x6000, 32, "\x0e\x10\x46\x0e\x18\x4a\x0f\x02\x77\x08", 10); /* .plt */
	add_fde(&b, cie, 0x6000, 8, "\x0e\x10\x46\x0e\x18", 5); /* no expression behind */
	cie = add_cie(&b, "zRS", 0x1b);
	add_fde(&b, cie, 0x7000, 8, "\x0e\x40", 2); /* a signal frame */
	assert_int_equal(eh_frame_parse(b.p, b.n, VADDR, &fdes), 0);
	static const bool midframe[] = {true, true, true, true, false, false, true, false};
	assert_int_equal(fdes.list.n, 8);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(fdes.list.p[i].midframe, midframe[i]);
	vec_deinit(&fdes.list);
	buf_deinit(&b);
}

/* What is damaged is left out, what stands around it counts. */
static void test_damage(void **state)
{
	(void)state;
	struct buf b = {0};
	struct fdes fdes = {0};
	size_t cie = add_cie(&b, "zR", 0x1b);
	add_fde(&b, cie, 0x1000, 8, "", 0);
	add_fde(&b, cie + 4, 0x2000, 8, "", 0); /* points into the CIE */
	size_t indirect = add_cie(&b, "zR", 0x9b);
	add_fde(&b, indirect, 0x3000, 8, "", 0);
	add_fde(&b, cie, 0x4000, 8, "", 0);
	size_t whole = b.n;
	add_fde(&b, cie, 0x5000, 8, "", 0);
	assert_int_equal(eh_frame_parse(b.p, b.n, VADDR, &fdes), -EBADMSG);
	assert_int_equal(fdes.list.n, 3);
	assert_int_equal(fdes.list.p[1].start, 0x4000);

	fdes.list.n = 0;
	for (size_t n = 0; n < whole; n++) /* cut off anywhere: no more than there was */
		eh_frame_parse(b.p, n, VADDR, &fdes);
	fdes.list.n = 0;
	b.p[whole] = 0xf0; /* a length past the end hides the rest */
	assert_int_equal(eh_frame_parse(b.p, b.n, VADDR, &fdes), -EBADMSG);
	assert_int_equal(fdes.list.n, 2);
	vec_deinit(&fdes.list);
	buf_deinit(&b);
}

static void test_encodings(void **state)
{
	(void)state;
	struct buf b = {0};
	struct fdes fdes = {0};
	size_t cie = add_cie(&b, "", 0); /* no augmentation: absolute addresses of 8 bytes */
	size_t entry = b.n;
	buf_u32(&b, 0);
	buf_u32(&b, (uint32_t)(b.n - cie));
	buf_u64(&b, 0x401000);
	buf_u64(&b, 0x123);
	end_entry(&b, entry);
	assert_int_equal(eh_frame_parse(b.p, b.n, VADDR, &fdes), 0);
	assert_int_equal(fdes.list.n, 1);
	assert_int_equal(fdes.list.p[0].start, 0x401000);
	assert_int_equal(fdes.list.p[0].size, 0x123);
	vec_deinit(&fdes.list);
	buf_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_extents),
		cmocka_unit_test(test_midframe),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_encodings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
