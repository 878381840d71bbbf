/*
 * Constant data of libraries and programs, relocated and not.
 */
#include "image/data.h"

#include <errno.h>

#include "base/err.h"
#include "image/image.h"
#include "image/workshop.h"

static const char text[] =
	".text\n.globl f\n.type f, @function\nf: ret\n.size f, .-f\n"
	".section .rodata\n.globl numbers\n.balign 8\nnumbers: .quad 0x1122334455667788\n"
	".section .data.rel.ro, \"aw\"\n.globl pointers\n.balign 8\n"
	"pointers: .quad here\n .quad outside\n .quad 7\nhere: .quad here\n"
	" .hidden inside\n.quad inside\n"
	".text\n.globl inside\n.type inside, @function\ninside: ret\n.size inside, .-inside\n"
	".data\n.globl variable\nvariable: .quad 5\n";

static struct image_data *open_data(struct image **im)
{
	struct err e = {0};
	struct image_data *d;
	if (image_open_path(in_workshop("code"), im, &e))
		fail_msg("%s", e.text);
	assert_int_equal(image_data_open(*im, &d), 0);
	return d;
}

static void check_library(void)
{
	struct image *im;
	struct image_data *d = open_data(&im);
	uint64_t word = 0, pointers = address_in("code", "pointers");
	const struct code_slot *code;

	assert_int_equal(image_data_read(d, address_in("code", "numbers"), &word, 8), 0);
	assert_int_equal(word, 0x1122334455667788);
	assert_int_equal(image_data_read(d, pointers, &word, 8), 0);
	assert_int_equal(word, pointers + 24);
	assert_int_equal(image_data_read(d, pointers + 8, &word, 8), -ENOENT);
	assert_int_equal(image_data_read(d, pointers + 12, &word, 8), -ENOENT);
	assert_int_equal(image_data_read(d, pointers + 16, &word, 8), 0);
	assert_int_equal(word, 7);
	assert_int_equal(image_data_read(d, address_in("code", "variable"), &word, 8), -ENOENT);
	assert_int_equal(image_data_read(d, UINT64_MAX - 3, &word, 8), -ENOENT);
	assert_int_equal(image_data_code_slots(d, &code), 1);
	assert_int_equal(code[0].target, address_in("code", "inside"));
	assert_false(image_data_is_fixed(d));
	image_data_destroy(d);
	image_destroy(im);
}

static void test_library(void **state)
{
	(void)state;
	write_text("code.s", text);
	shell("gcc -shared -nostdlib -o code code.s -Wl,-z,relro -Wl,-z,now");
	check_library();
	shell("gcc -shared -nostdlib -o code code.s -Wl,-z,relro -Wl,-z,now "
	      "-Wl,-z,pack-relative-relocs"
	      " 2>/dev/null || true");
	check_library();
}

static void test_fixed(void **state)
{
	(void)state;
	struct image *im;
	uint64_t word;
	write_text("code.s", text);
	shell("gcc -no-pie -static -nostdlib -o code code.s -Wl,-e,f "
	      "-Wl,--unresolved-symbols=ignore-all");
	struct image_data *d = open_data(&im);
	assert_true(image_data_is_fixed(d));
	assert_int_equal(image_data_read(d, address_in("code", "numbers"), &word, 8), 0);
	image_data_destroy(d);

	/* What is gone or is another file now has no data. */
	image_release(im);
	shell("rm code");
	assert_int_equal(image_data_open(im, &d), -ENOENT);
	image_destroy(im);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_library),
		cmocka_unit_test(test_fixed),
	};
	return cmocka_run_group_tests(tests, open_workshop, close_workshop);
}
