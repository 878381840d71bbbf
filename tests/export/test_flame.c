#include "export/flame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *draw(const struct flame_box *boxes, size_t n, double total)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	flame_write(&(struct flame){.title = "a <b> & \"c\"",
			    .subtitle = "",
			    .unit = "calls",
			    .total = total,
			    .boxes = boxes,
			    .n = n},
		out);
	fclose(out);
	return text;
}

static void boxes_stand_on_their_callers(void **state)
{
	static const struct flame_box boxes[] = {
		{0, 100, "main", NULL},
		{1, 60, "left", "60 more"},
		{2, 10, "deep", NULL},
		{1, 30, "right", NULL},
	};
	char *svg = draw(boxes, 4, 0);

	(void)state;
	assert_non_null(strstr(svg,
		"main: 100.00%, 100 calls</title><rect x=\"10.00\" y=\"92.0\" width=\"1179.60\""));
	assert_non_null(
		strstr(svg, "left: 60.00%, 60 calls, 60 more</title><rect x=\"10.00\" y=\"74.0\""));
	assert_non_null(strstr(svg, "deep: 10.00%, 10 calls</title><rect x=\"10.00\" y=\"56.0\""));
	assert_non_null(
		strstr(svg, "right: 30.00%, 30 calls</title><rect x=\"718.00\" y=\"74.0\""));
	assert_non_null(strstr(svg, "</svg>"));
	free(svg);
}

static void narrow_ones_are_left_out(void **state)
{
	static const struct flame_box boxes[] = {
		{0, 1000000, "main", NULL},
		{1, 1, "speck", NULL},
		{2, 1, "above", NULL},
		{1, 500000, "wide", NULL},
	};
	char *svg = draw(boxes, 4, 0);

	(void)state;
	assert_null(strstr(svg, "speck"));
	assert_null(strstr(svg, "above"));
	assert_non_null(strstr(svg, "wide"));
	free(svg);
}

/* Whatever a name has in it, the file stays XML. */
static void names_are_escaped(void **state)
{
	static const struct flame_box boxes[] = {{0, 1, "operator<< <T&>(\"x\")\x01\xff", NULL}};
	char *svg = draw(boxes, 1, 1);

	(void)state;
	assert_non_null(strstr(svg, "operator&lt;&lt; &lt;T&amp;&gt;(&quot;x&quot;)??"));
	assert_non_null(strstr(svg, "a &lt;b&gt; &amp; &quot;c&quot;"));
	free(svg);
}

static void nothing_is_a_picture_too(void **state)
{
	char *svg = draw(NULL, 0, 0);

	(void)state;
	assert_non_null(strstr(svg, "<svg "));
	assert_non_null(strstr(svg, "</svg>"));
	free(svg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boxes_stand_on_their_callers),
		cmocka_unit_test(narrow_ones_are_left_out),
		cmocka_unit_test(names_are_escaped),
		cmocka_unit_test(nothing_is_a_picture_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
