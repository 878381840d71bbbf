#include "cmd/shorten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct sample {
	const char *text;
	size_t width;
	const char *want;
};

static void check(const struct sample *list, size_t n, char *(*shorten)(const char *, size_t))
{
	for (size_t i = 0; i < n; i++) {
		char *got = shorten(list[i].text, list[i].width);

		assert_string_equal(got, list[i].want);
		if (list[i].width)
			assert_true(text_columns(got) <= list[i].width);
		free(got);
	}
}

static void names_keep_their_beginning(void **state)
{
	static const struct sample list[] = {
		{"deflate", 0, "deflate"},
		{"deflate", 7, "deflate"},
		{"deflate", 6, "defla…"},
		{"deflate", 1, "…"},
		{"größe_der_welt", 5, "größ…"},
		{"", 3, ""},
	};

	(void)state;
	check(list, sizeof list / sizeof *list, shorten_name);
}

static void paths_keep_their_end(void **state)
{
	static const struct sample list[] = {
		{"/usr/lib/libfoo.so", 0, "/usr/lib/libfoo.so"},
		{"/usr/lib/libfoo.so", 18, "/usr/lib/libfoo.so"},
		{"/usr/lib/libfoo.so", 17, "…/lib/libfoo.so"},
		{"/usr/lib/libfoo.so", 12, "…/libfoo.so"},
		{"/usr/lib/libfoo.so", 8, "…bfoo.so"},
		{"/opt/größe/ß", 4, "…/ß"},
		{"directory/", 5, "…ory/"},
	};

	(void)state;
	check(list, sizeof list / sizeof *list, shorten_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_keep_their_beginning),
		cmocka_unit_test(paths_keep_their_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
