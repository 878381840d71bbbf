#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/table.h"

static void assert_prints(const struct table *t, int width, const char *expect)
{
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	table_print(t, out, width);
	fclose(out);
	assert_string_equal(text, expect);
	free(text);
}

static void test_alignment(void **state)
{
	(void)state;
	struct table *t = table_create("><<");
	table_cell(t, "%s", "samples");
	table_cell(t, "%s", "image");
	table_cell(t, "%s", "procedure");
	table_row(t);
	table_header(t);
	table_cell(t, "%d", 12);
	table_cell(t, "%s", "libc.so.6");
	table_cell(t, "%s", "memcpy");
	table_row(t);
	table_cell(t, "%d", 3);
	table_row(t); /* missing cells are empty, and leave no blanks behind */
	assert_prints(t, 0,
		"samples  image      procedure\n"
		"     12  libc.so.6  memcpy\n"
		"      3\n");
	table_destroy(t);
}

static void test_rows_of_nothing(void **state)
{
	(void)state;
	struct table *t = table_create("<>");
	assert_prints(t, 0, "");
	table_row(t);
	assert_prints(t, 80, "\n");
	table_destroy(t);
	table_destroy(NULL);
}

static void test_last_column_is_cut(void **state)
{
	(void)state;
	struct table *t = table_create("<<");
	table_cell(t, "abc");
	table_cell(t, "0123456789012345");
	table_row(t);
	table_cell(t, "d");
	table_cell(t, "short");
	table_row(t);
	assert_prints(t, 0, "abc  0123456789012345\nd    short\n");
	assert_prints(t, 21, "abc  0123456789012345\nd    short\n");
	assert_prints(t, 20, "abc  012345678901234\nd    short\n");
	assert_prints(t, 3, "abc  0123456789\nd    short\n"); /* something must be left */
	table_destroy(t);
}

static void test_utf8(void **state)
{
	(void)state;
	struct table *t = table_create("<<");
	table_cell(t, "h\xc3\xa9");
	table_cell(t, "x");
	table_row(t);
	table_cell(t, "abcd");
	table_cell(t, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3"
		      "\xa9z");
	table_row(t);
	assert_prints(t, 16,
		"h\xc3\xa9    x\n"
		"abcd  "
		"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
		"\n");
	table_destroy(t);
}

/* A name may not steer the terminal; colours are ours and take no room. */
static void test_control_characters(void **state)
{
	(void)state;
	struct table *t = table_create("<<");
	table_cell(t, "a\nb\x1b]0;x\x07\xff");
	table_cell(t, "|");
	table_row(t);
	table_cell(t, "\x1b[31mred\x1b[0m");
	table_cell(t, "\x1b[1m0123456789ab\x1b[0m");
	table_row(t);
	table_cell(t, "\xc2\x9b"
		      "2J");
	table_row(t);
	assert_prints(t, 21,
		"a?b?]0;x?\xef\xbf\xbd  |\n"
		"\x1b[31mred\x1b[0m         \x1b[1m0123456789\x1b[0m\n"
		"?2J\n");
	table_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alignment),
		cmocka_unit_test(test_rows_of_nothing),
		cmocka_unit_test(test_last_column_is_cut),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_control_characters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
