#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"
#include "base/cursor.h"

static void test_integers(void **state)
{
	(void)state;
	static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	struct cursor c = cursor_over(bytes, sizeof bytes);
	assert_int_equal(cursor_u8(&c), 1);
	assert_int_equal(cursor_u16(&c), 0x0302);
	assert_int_equal(cursor_u32(&c), 0x07060504);
	assert_int_equal(cursor_u64(&c), 0x0f0e0d0c0b0a0908);
	assert_int_equal(cursor_left(&c), 0);
	assert_int_equal(cursor_offset(&c), 15);
	assert_false(c.failed);
}

static void test_failure_sticks(void **state)
{
	(void)state;
	static const uint8_t bytes[] = {1, 2, 3};
	struct cursor c = cursor_over(bytes, sizeof bytes);
	assert_int_equal(cursor_u32(&c), 0);
	assert_true(c.failed);
	assert_int_equal(cursor_u8(&c), 0);
	assert_int_equal(cursor_left(&c), 0);
	assert_null(cursor_bytes(&c, 0));
	assert_string_equal(cursor_str(&c), "");
	cursor_seek(&c, 0);
	assert_int_equal(cursor_u8(&c), 0);
	assert_true(c.failed);
}

static void test_nothing(void **state)
{
	(void)state;
	struct cursor c = cursor_over(NULL, 0);
	assert_int_equal(cursor_left(&c), 0);
	cursor_seek(&c, 0);
	cursor_skip(&c, 0);
	assert_false(c.failed);
	assert_int_equal(cursor_u8(&c), 0);
	assert_true(c.failed);
}

static void test_seek_skip_slice(void **state)
{
	(void)state;
	static const uint8_t bytes[] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct cursor c = cursor_over(bytes, sizeof bytes);
	cursor_skip(&c, 2);
	struct cursor s = cursor_slice(&c, 3);
	assert_int_equal(cursor_left(&s), 3);
	assert_int_equal(cursor_u8(&s), 2);
	cursor_seek(&s, 2);
	assert_int_equal(cursor_u8(&s), 4);
	assert_int_equal(cursor_u8(&s), 0);
	assert_true(s.failed);
	assert_int_equal(cursor_u8(&c), 5);
	cursor_seek(&c, 8);
	assert_false(c.failed);
	cursor_seek(&c, 9);
	assert_true(c.failed);

	c = cursor_over(bytes, sizeof bytes);
	s = cursor_slice(&c, 9);
	assert_true(c.failed);
	assert_true(s.failed);
	assert_int_equal(cursor_left(&s), 0);
	c = cursor_over(bytes, sizeof bytes);
	cursor_skip(&c, SIZE_MAX);
	assert_true(c.failed);
}

static void test_strings(void **state)
{
	(void)state;
	static const char bytes[] = {'a', 'b', 0, 0, 'c'};
	struct cursor c = cursor_over(bytes, sizeof bytes);
	assert_string_equal(cursor_str(&c), "ab");
	assert_string_equal(cursor_str(&c), "");
	assert_false(c.failed);
	assert_string_equal(cursor_str(&c), ""); /* no NUL behind the c */
	assert_true(c.failed);
}

static void test_leb_round_trip(void **state)
{
	(void)state;
	struct buf b = {0};
	for (int bit = 0; bit < 64; bit++) {
		for (int d = -1; d <= 1; d++) {
			uint64_t v = ((uint64_t)1 << bit) + (uint64_t)d;
			b.n = 0;
			buf_uleb(&b, v);
			buf_sleb(&b, (int64_t)v);
			buf_sleb(&b, (int64_t)(0 - v));
			struct cursor c = cursor_over(b.p, b.n);
			assert_int_equal(cursor_uleb(&c), v);
			assert_true(cursor_sleb(&c) == (int64_t)v);
			assert_true(cursor_sleb(&c) == (int64_t)(0 - v));
			assert_int_equal(cursor_left(&c), 0);
			assert_false(c.failed);
		}
	}
	buf_deinit(&b);
}

static void test_leb_limits(void **state)
{
	(void)state;
	uint8_t most[10], eleven[11];
	memset(most, 0xff, sizeof most);
	most[9] = 1;
	struct cursor c = cursor_over(most, sizeof most);
	assert_int_equal(cursor_uleb(&c), UINT64_MAX);
	most[9] = 2; /* the 65th bit */
	c = cursor_over(most, sizeof most);
	assert_int_equal(cursor_uleb(&c), 0);
	assert_true(c.failed);
	most[9] = 1; /* not the sign */
	c = cursor_over(most, sizeof most);
	assert_int_equal(cursor_sleb(&c), 0);
	assert_true(c.failed);
	most[9] = 0x7f;
	c = cursor_over(most, sizeof most);
	assert_true(cursor_sleb(&c) == -1);
	assert_false(c.failed);

	memset(eleven, 0x80, sizeof eleven);
	eleven[10] = 0;
	c = cursor_over(eleven, sizeof eleven);
	cursor_uleb(&c);
	assert_true(c.failed);
	c = cursor_over(eleven, sizeof eleven);
	cursor_sleb(&c);
	assert_true(c.failed);
	c = cursor_over(eleven, 3); /* cut off */
	assert_int_equal(cursor_uleb(&c), 0);
	assert_true(c.failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_failure_sticks),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_seek_skip_slice),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_leb_round_trip),
		cmocka_unit_test(test_leb_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
