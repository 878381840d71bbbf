#include "image/lines.h"

#include <errno.h>

#include "base/err.h"
#include "image/image.h"
#include "image/workshop.h"

static const char program_c[] = "int twice(int a)\n"
				"{\n"
				"\treturn 2 * a; /* line three */\n"
				"}\n"
				"int main(int argc, char **argv)\n"
				"{\n"
				"\t(void)argv;\n"
				"\treturn twice(argc);\n"
				"}";

static const char inlined_c[] =
	"static inline __attribute__((always_inline)) unsigned mix(unsigned x)\n"
	"{\n"
	"\treturn x ^ x << 13;\n"
	"}\n"
	"static inline __attribute__((always_inline)) unsigned both(unsigned x)\n"
	"{\n"
	"\treturn mix(x) * 7;\n"
	"}\n"
	"unsigned twice(unsigned x)\n"
	"{\n"
	"\tx /= 3;\n"
	"\treturn both(x) / 5;\n"
	"}\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"\t(void)argv;\n"
	"\treturn (int)twice((unsigned)argc);\n"
	"}";

static int build(void **state)
{
	unsetenv("DEBUGINFOD_URLS");
	if (open_workshop(state) < 0)
		return -1;
	write_text("program.c", program_c);
	shell("gcc -O1 -g -o program program.c && strip -o stripped program");
	write_text("inlined.c", inlined_c);
	shell("gcc -O1 -fno-inline-small-functions -fno-ipa-cp -g -o inlined inlined.c");
	shell("gcc -O1 -g -static -nostartfiles -Wl,-etwice -o fixed program.c");
	return 0;
}

static uint64_t start_of(const char *name)
{
	struct image *im;
	uint64_t start = 0;
	assert_int_equal(image_open_path(in_workshop(name), &im, NULL), 0);
	const struct procedure *all;
	size_t n = image_procedures(im, &all);
	for (size_t i = 0; i < n; i++) {
		if (all[i].name && !strcmp(all[i].name, "twice"))
			start = all[i].start;
	}
	assert_int_not_equal(start, 0);
	image_destroy(im);
	return start;
}

static struct lines *open_lines(const char *name)
{
	struct lines *l;
	struct err e = {0};
	if (lines_open(in_workshop(name), NULL, &l, &e) < 0)
		fail_msg("%s", e.text);
	return l;
}

/* Addresses are those of the file, whether it can be moved or not. */
static void test_lines(void **state)
{
	(void)state;
	static const char *const files[] = {"program", "fixed"};
	for (size_t i = 0; i < 2; i++) {
		struct lines *l = open_lines(files[i]);
		struct line line;
		assert_int_equal(lines_at(l, start_of(files[i]), &line), 0);
		assert_true(line.line == 2 || line.line == 3);
		assert_string_equal(line.file, in_workshop("program.c"));
		const char *file = line.file;
		assert_int_equal(lines_at(l, start_of(files[i]) + 1, &line), 0);
		assert_ptr_equal(line.file, file);
		assert_int_equal(lines_at(l, 1, &line), -ENOENT);
		assert_int_equal(lines_at(l, UINT64_MAX, &line), -ENOENT);
		lines_destroy(l);
	}
}

static void test_source(void **state)
{
	(void)state;
	struct lines *l = open_lines("program");
	const char *file = in_workshop("program.c");
	assert_string_equal(lines_source(l, file, 3), "\treturn 2 * a; /* line three */");
	assert_string_equal(lines_source(l, file, 9), "}");
	assert_string_equal(lines_source(l, file, 10), "");
	assert_string_equal(lines_source(l, file, 0), "");
	assert_string_equal(lines_source(l, file, -1), "");
	assert_string_equal(lines_source(l, "/nowhere/x.c", 1), "");
	assert_string_equal(lines_source(l, workshop, 1), "");
	shell("mv program.c program.d");
	assert_string_equal(lines_source(l, file, 1), "int twice(int a)"); /* was read once */
	shell("mv program.d program.c");
	shell("mkfifo pipe");
	assert_string_equal(lines_source(l, in_workshop("pipe"), 1), "");
	lines_destroy(l);
}

static void test_no_lines(void **state)
{
	(void)state;
	struct lines *l;
	struct err e = {0};
	assert_int_equal(lines_open(in_workshop("stripped"), NULL, &l, &e), -ENOENT);
	assert_non_null(strstr(e.text, "DEBUGINFOD_URLS"));
	assert_int_equal(lines_open(in_workshop("program.c"), NULL, &l, &e), -ENOEXEC);
	assert_int_equal(lines_open("/nowhere", NULL, &l, &e), -ENOENT);
}

static void test_identity(void **state)
{
	(void)state;
	struct image *im;
	struct lines *l;
	struct err e = {0};
	assert_int_equal(image_open_path(in_workshop("program"), &im, &e), 0);
	struct image_id id = *image_id(im);
	image_destroy(im);
	assert_int_equal(lines_open(in_workshop("program"), &id, &l, &e), 0);
	lines_destroy(l);
	id.bytes[0] ^= 1;
	assert_int_equal(lines_open(in_workshop("program"), &id, &l, &e), -ESTALE);
	assert_non_null(strstr(e.text, "replaced"));
}

static void test_debug_link(void **state)
{
	(void)state;
	shell("mkdir .debug; objcopy --only-keep-debug program .debug/linked.debug;"
	      "cp stripped linked; objcopy --add-gnu-debuglink=.debug/linked.debug linked");
	struct lines *l = open_lines("linked");
	struct line line;
	assert_int_equal(lines_at(l, start_of("program"), &line), 0);
	assert_string_equal(line.file, in_workshop("program.c"));
	lines_destroy(l);
}

/* Every line that the code of a function has, with those that inlined it. */
static void test_inlined(void **state)
{
	(void)state;
	struct lines *l = open_lines("inlined");
	uint64_t start = start_of("inlined");
	struct inlined_line list[8];
	bool deep = false, plain = false;
	for (uint64_t at = start; at < start + 24; at++) {
		size_t n = lines_inlined(l, at, list, 8);
		assert_in_range(n, 1, 3);
		if (strcmp(list[n - 1].function, "twice"))
			break; /* the next one */
		if (n == 1) {
			plain = true;
			continue;
		}
		assert_int_equal(list[n - 1].line, 12);
		assert_string_equal(list[n - 2].function, "both");
		if (n < 3)
			continue;
		deep = true;
		assert_string_equal(list[0].function, "mix");
		assert_int_equal(list[0].line, 3);
		assert_int_equal(list[1].line, 7);
		assert_string_equal(list[1].file, in_workshop("inlined.c"));
		assert_int_equal(lines_inlined(l, at, list, 2), 2); /* cut off */
	}
	assert_true(deep && plain);
	assert_int_equal(lines_inlined(l, 1, list, 8), 0);
	lines_destroy(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_source),
		cmocka_unit_test(test_inlined),
		cmocka_unit_test(test_no_lines),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_debug_link),
	};
	return cmocka_run_group_tests(tests, build, close_workshop);
}
