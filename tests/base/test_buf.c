#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"

static void test_integers_are_little_endian(void **state)
{
	(void)state;
	static const uint8_t expect[] = {
		1, 5, 4, 3, 2, 0xd, 0xc, 0xb, 0xa, 9, 8, 7, 6, 'h', 'i', 0};
	struct buf b = {0};
	buf_u8(&b, 1);
	buf_u32(&b, 0x02030405);
	buf_u64(&b, 0x060708090a0b0c0d);
	buf_str(&b, "hi");
	buf_put(&b, NULL, 0);
	assert_int_equal(b.n, sizeof expect);
	assert_memory_equal(b.p, expect, sizeof expect);
	buf_deinit(&b);
	assert_null(b.p);
}

static void test_leb_bytes(void **state)
{
	(void)state;
	/* The examples of the DWARF standard, 7.6. */
	static const uint8_t expect[] = {0x02, 0x7f, 0x80, 0x01, 0x81, 0x01, 0x02, 0x7e, 0xff, 0x00,
		0x81, 0x7f, 0x80, 0x01, 0x80, 0x7f};
	struct buf b = {0};
	buf_uleb(&b, 2);
	buf_uleb(&b, 127);
	buf_uleb(&b, 128);
	buf_uleb(&b, 129);
	buf_sleb(&b, 2);
	buf_sleb(&b, -2);
	buf_sleb(&b, 127);
	buf_sleb(&b, -127);
	buf_sleb(&b, 128);
	buf_sleb(&b, -128);
	assert_int_equal(b.n, sizeof expect);
	assert_memory_equal(b.p, expect, sizeof expect);
	buf_deinit(&b);
}

static void test_printf_grows(void **state)
{
	(void)state;
	struct buf b = {0};
	char word[300];
	memset(word, 'w', sizeof word - 1);
	word[sizeof word - 1] = 0;
	for (int i = 0; i < 20; i++)
		buf_printf(&b, "%d:%s;", i % 10, word);
	assert_int_equal(b.n, 20 * (299 + 3));
	assert_int_equal(strlen(buf_cstr(&b)), b.n);
	assert_memory_equal(buf_cstr(&b) + 302, "1:w", 3);
	buf_deinit(&b);
}

static void test_cstr(void **state)
{
	(void)state;
	struct buf b = {0};
	assert_string_equal(buf_cstr(&b), "");
	assert_int_equal(b.n, 0);
	for (int i = 0; i < 200; i++) {
		buf_u8(&b, 'x');
		assert_int_equal(strlen(buf_cstr(&b)), b.n);
	}
	buf_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers_are_little_endian),
		cmocka_unit_test(test_leb_bytes),
		cmocka_unit_test(test_printf_grows),
		cmocka_unit_test(test_cstr),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
