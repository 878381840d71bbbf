#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/utf8.h"

static void test_decode(void **state)
{
	(void)state;
	static const struct {
		const char *s;
		uint32_t c;
		size_t n;
	} cases[] = {
		{"a", 'a', 1},
		{"\x7f", 0x7f, 1},
		{"\xc2\x80", 0x80, 2},
		{"\xdf\xbf", 0x7ff, 2},
		{"\xe0\xa0\x80", 0x800, 3},
		{"\xed\x9f\xbf", 0xd7ff, 3},
		{"\xee\x80\x80", 0xe000, 3},
		{"\xef\xbf\xbf", 0xffff, 3},
		{"\xf0\x90\x80\x80", 0x10000, 4},
		{"\xf4\x8f\xbf\xbf", 0x10ffff, 4},
		{"\x80", UTF8_BAD, 1},             /* a continuation */
		{"\xc0\x80", UTF8_BAD, 1},         /* overlong */
		{"\xc1\xbf", UTF8_BAD, 1},         /* overlong */
		{"\xe0\x9f\xbf", UTF8_BAD, 1},     /* overlong */
		{"\xf0\x8f\xbf\xbf", UTF8_BAD, 1}, /* overlong */
		{"\xed\xa0\x80", UTF8_BAD, 1},     /* a surrogate */
		{"\xf4\x90\x80\x80", UTF8_BAD, 1}, /* too large */
		{"\xf5\x80\x80\x80", UTF8_BAD, 1},
		{"\xff", UTF8_BAD, 1},
		{"\xc3", UTF8_BAD, 1}, /* cut off */
		{"\xe2\x82", UTF8_BAD, 1},
		{"\xf0\x9f\x98", UTF8_BAD, 1},
		{"\xe2(\xa1", UTF8_BAD, 1},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t n = 0;
		assert_int_equal(utf8_decode(cases[i].s, &n), cases[i].c);
		assert_int_equal(n, cases[i].n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decode),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
