#include "image/symbols.h"

#include <fcntl.h>

#include "image/image.h"
#include "image/workshop.h"

static int compare(int rank_a, const char *a, int rank_b, const char *b)
{
	return symbol_name_compare(rank_a, a, strlen(a), rank_b, b, strlen(b));
}

static void test_choice(void **state)
{
	(void)state;
	assert_true(compare(0, "__long_global", 1, "weak") < 0);
	assert_true(compare(1, "weak", 2, "a") < 0);
	assert_true(compare(0, "_read", 0, "__read") < 0);
	assert_true(compare(0, "read", 0, "_r") < 0);
	assert_true(compare(0, "read", 0, "libc_read") < 0);
	assert_true(compare(0, "read", 0, "reap") < 0);
	assert_int_equal(compare(0, "read", 0, "read"), 0);
	assert_true(compare(0, "reap", 0, "read") > 0);
}

static void test_names(void **state)
{
	(void)state;
	char text[] = "\0read@@GLIBC_2.2.5\0@only\0unterminated";
	struct bytes strings = {.p = (uint8_t *)text, .n = sizeof text - 1};
	uint16_t n;
	symbol_name(&strings, 0, &n);
	assert_int_equal(n, 0);
	assert_memory_equal(symbol_name(&strings, 1, &n), "read", 4);
	assert_int_equal(n, 4);
	symbol_name(&strings, 19, &n);
	assert_int_equal(n, 0);
	symbol_name(&strings, 25, &n);
	assert_int_equal(n, 12);
	symbol_name(&strings, sizeof text, &n);
	assert_int_equal(n, 0);
	symbol_name(&strings, UINT64_MAX, &n);
	assert_int_equal(n, 0);

	struct bytes a = {.p = malloc(10000), .n = 10000};
	memset(a.p, 'a', a.n);
	symbol_name(&a, 0, &n);
	assert_int_equal(n, SYMBOL_NAME_MAX);
	free(a.p);
}

static const struct symbol *find(const struct symbols *s, const char *name)
{
	vec_each (it, &s->list) {
		if (it->name_size == strlen(name) && !memcmp(it->name, name, it->name_size))
			return it;
	}
	return NULL;
}

static void test_file(void **state)
{
	(void)state;
	write_text("a.c",
		"int data = 1;\n"
		"static int __attribute__((noinline, used)) hidden(void) { return data; }\n"
		"int __attribute__((noinline)) __visible(void) { return hidden() + 1; }\n"
		"int visible(void) __attribute__((alias(\"__visible\")));\n"
		"int a_weak(void) __attribute__((weak, alias(\"__visible\")));\n"
		"int main(void) { return visible(); }\n");
	shell("gcc -O1 -o a a.c");
	int fd = open(in_workshop("a"), O_RDONLY);
	struct elf_file f;
	struct symbols s = {0};
	assert_int_equal(elf_file_open(&f, fd, "a", NULL), 0);
	elf_file_read_sections(&f);
	symbols_read_file(&s, &f);
	assert_non_null(find(&s, "__visible"));
	assert_non_null(find(&s, "a_weak"));
	assert_null(find(&s, "data"));
	symbols_choose(&s);
	assert_null(find(&s, "__visible"));
	assert_null(find(&s, "a_weak"));
	assert_int_equal(find(&s, "visible")->rank, 0);
	assert_int_equal(find(&s, "hidden")->rank, 2);
	assert_true(find(&s, "hidden")->function);
	for (size_t i = 1; i < s.list.n; i++)
		assert_true(s.list.p[i - 1].start < s.list.p[i].start);
	symbols_deinit(&s);
	elf_file_close(&f);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_file),
	};
	return cmocka_run_group_tests(tests, open_workshop, close_workshop);
}
