#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* What the writer did, as a string. */
static char *finish(struct json *j, char **text)
{
	fclose(j->out);
	return *text;
}

static void begin(struct json *j, char **text, size_t *n)
{
	json_init(j, open_memstream(text, n));
}

static void test_layout(void **state)
{
	(void)state;
	struct json j;
	char *text;
	size_t n;
	begin(&j, &text, &n);
	json_open(&j, '{');
	json_kstr(&j, "name", "x");
	json_key(&j, "rows");
	json_open(&j, '[');
	for (int i = 0; i < 2; i++) {
		json_open(&j, '{');
		json_kint(&j, "n", -i);
		json_kaddr(&j, "at", 0x4330);
		json_key(&j, "path");
		json_open(&j, '[');
		json_str(&j, "a");
		json_str(&j, NULL);
		json_close(&j);
		json_close(&j);
	}
	json_close(&j);
	json_key(&j, "none");
	json_open(&j, '[');
	json_close(&j);
	json_key(&j, "inner");
	json_open(&j, '{');
	json_kbool(&j, "ok", true);
	json_kdouble(&j, "half", 0.5);
	json_kshare(&j, "third", 1.0 / 3);
	json_close(&j);
	json_kuint(&j, "last", UINT64_MAX);
	json_close(&j);
	assert_string_equal(finish(&j, &text),
		"{\n"
		"  \"name\": \"x\",\n"
		"  \"rows\": [\n"
		"    {\"n\": 0, \"at\": \"0x4330\", \"path\": [\"a\", null]},\n"
		"    {\"n\": -1, \"at\": \"0x4330\", \"path\": [\"a\", null]}\n"
		"  ],\n"
		"  \"none\": [],\n"
		"  \"inner\": {\n"
		"    \"ok\": true,\n"
		"    \"half\": 0.5,\n"
		"    \"third\": 0.333333333\n"
		"  },\n"
		"  \"last\": 18446744073709551615\n"
		"}\n");
	free(text);
}

/* Behind an array of rows, objects are laid out as before it. */
static void test_rows_end(void **state)
{
	(void)state;
	struct json j;
	char *text;
	size_t n;
	begin(&j, &text, &n);
	json_open(&j, '{');
	json_key(&j, "rows");
	json_open(&j, '[');
	json_open(&j, '{');
	json_close(&j);
	json_close(&j);
	json_key(&j, "a");
	json_open(&j, '{');
	json_key(&j, "b");
	json_open(&j, '{');
	json_kint(&j, "c", 1);
	json_close(&j);
	json_close(&j);
	json_close(&j);
	assert_string_equal(finish(&j, &text), "{\n"
					       "  \"rows\": [\n"
					       "    {}\n"
					       "  ],\n"
					       "  \"a\": {\n"
					       "    \"b\": {\n"
					       "      \"c\": 1\n"
					       "    }\n"
					       "  }\n"
					       "}\n");
	free(text);
}

static void test_rows_of_rows(void **state)
{
	(void)state;
	struct json j;
	char *text;
	size_t n;
	begin(&j, &text, &n);
	json_open(&j, '[');
	for (int i = 0; i < 2; i++) {
		json_open(&j, '[');
		json_int(&j, 1);
		json_int(&j, 2);
		json_close(&j);
	}
	json_close(&j);
	assert_string_equal(finish(&j, &text), "[\n  [1, 2],\n  [1, 2]\n]\n");
	free(text);
}

static void assert_string(const char *s, const char *expect)
{
	struct json j;
	char *text;
	size_t n;
	begin(&j, &text, &n);
	json_str(&j, s);
	assert_string_equal(finish(&j, &text), expect);
	free(text);
}

static void test_strings(void **state)
{
	(void)state;
	assert_string("", "\"\"");
	assert_string("a\"b\\c/", "\"a\\\"b\\\\c/\"");
	assert_string("\n\t\r\x01\x1f\x7f", "\"\\n\\t\\u000d\\u0001\\u001f\\u007f\"");
	assert_string("h\xc3\xa9 \xf0\x9f\x98\x80", "\"h\xc3\xa9 \xf0\x9f\x98\x80\"");
	assert_string("\xff.\xc3", "\"\xef\xbf\xbd.\xef\xbf\xbd\"");
	assert_string("\xef\xbf\xbd", "\"\xef\xbf\xbd\"");
	assert_string("\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void format(double v, char *to, size_t size)
{
	struct json j;
	char *text;
	size_t n;
	begin(&j, &text, &n);
	json_double(&j, v);
	snprintf(to, size, "%s", finish(&j, &text));
	free(text);
}

static void test_doubles(void **state)
{
	(void)state;
	static const double hard[] = {0.1, 1.0 / 3, 2.0 / 3, 1e-300, 5e-324, DBL_MAX, DBL_MIN, 1e22,
		123456789.123456789, 0.1 + 0.2, 9007199254740993.0, -1e-7, 4.35};
	char text[64];
	for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
		format(hard[i], text, sizeof text);
		assert_true(strtod(text, NULL) == hard[i]);
	}
	format(0.1, text, sizeof text);
	assert_string_equal(text, "0.1");
	format(0.1 + 0.2, text, sizeof text);
	assert_string_equal(text, "0.30000000000000004");
	format(3, text, sizeof text);
	assert_string_equal(text, "3");
	format(NAN, text, sizeof text);
	assert_string_equal(text, "null");
	format(-INFINITY, text, sizeof text);
	assert_string_equal(text, "null");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_rows_end),
		cmocka_unit_test(test_rows_of_rows),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_doubles),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
