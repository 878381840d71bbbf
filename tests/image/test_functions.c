#include "image/functions.h"

#include <elf.h>
#include <fcntl.h>

#include "base/err.h"
#include "image/image.h"
#include "image/workshop.h"

static const char cold_c[] =
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"__attribute__((cold, noinline)) void complain(const char *what, long n)\n"
	"{ fprintf(stderr, \"%s %ld\\n\", what, n); }\n"
	"__attribute__((cold, noinline, noreturn)) static void give_up(const char *what)\n"
	"{ complain(what, 1); abort(); }\n"
	"/* The cold half is entered in the middle of the frame. */\n"
	"__attribute__((noinline)) long framed(long a, long b)\n"
	"{ char text[64]; snprintf(text, sizeof text, \"%ld\", a);\n"
	"  long n = strtol(text, NULL, 16) * b;\n"
	"  if (__builtin_expect(n < 0, 0)) { complain(text, n); complain(\"x\", a); n = -n; }\n"
	"  return n + atol(text); }\n"
	"/* The cold half is entered as a function is. */\n"
	"__attribute__((noinline)) long bare(long a)\n"
	"{ if (__builtin_expect(a < 0, 0)) { complain(\"bare\", a); give_up(\"bare\"); }\n"
	"  return a * 3; }\n"
	"__attribute__((noinline)) static long twice(long a)\n"
	"{ for (long i = 0; i < a; i++) {\n"
	"    if (__builtin_expect(framed(i, a) == 12345, 0)) { complain(\"1\", i); give_up(\"t\"); "
	"}\n"
	"    if (__builtin_expect(bare(i) == 54321, 0)) give_up(\"two\"); }\n"
	"  return a; }\n"
	"int main(int argc, char **argv)\n"
	"{ (void)argv; printf(\"%ld\\n\", framed(argc, 7) + bare(argc) + twice(argc)); return 0; "
	"}\n";

/* Landing pads go to the cold half, too. */
static const char throw_cc[] =
	"#include <stdexcept>\n#include <string>\n#include <vector>\n"
	"__attribute__((noinline)) long f(std::vector<std::string> &v, long n)\n"
	"{ try { std::string s(n, 'x'); v.push_back(s); if (v.size() > 9) throw "
	"std::runtime_error(s);\n"
	"    return v.size(); } catch (const std::logic_error &) { v.clear(); return -1; } }\n"
	"int main(int argc, char **) { std::vector<std::string> v; long t = 0;\n"
	"  for (int i = 0; i < argc; i++) t += f(v, i); return t; }\n";

static const char assembly_s[] = ".globl _start, second\n"
				 ".text\n"
				 "_start: call first\n"
				 "1: jmp second\n"
				 ".type first, @function\n"
				 "first: nop\n"
				 "inside: ret\n"
				 ".size first, . - first\n"
				 ".type entry, @function\n"
				 ".p2align 4\n"
				 "nested: nop\n"
				 ".type nested, @function\n"
				 "entry: ret\n"
				 ".size nested, . - nested\n"
				 ".size entry, . - entry\n"
				 ".p2align 4\n"
				 "second: mov $60, %eax\n"
				 "xor %edi, %edi\n"
				 "syscall\n"
				 ".section .note.GNU-stack,\"\",@progbits\n";

static int build(void **state)
{
	if (open_workshop(state) < 0)
		return -1;
	write_text("cold.c", cold_c);
	write_text("throw.cc", throw_cc);
	write_text("asm.s", assembly_s);
	shell("gcc -O2 -o cold cold.c");
	shell("g++ -O2 -o throw throw.cc");
	shell("gcc -nostdlib -static -o asm asm.s");
	shell("for f in cold throw asm; do strip -o $f.stripped $f; done");
	return 0;
}

static struct image *open_image(const char *name)
{
	struct image *im;
	struct err e = {0};
	if (image_open_path(in_workshop(name), &im, &e) < 0)
		fail_msg("%s", e.text);
	return im;
}

static const struct procedure *find(struct image *im, const char *name)
{
	const struct procedure *all;
	size_t n = image_procedures(im, &all);
	for (size_t i = 0; i < n; i++) {
		if (all[i].name && !strcmp(all[i].name, name))
			return &all[i];
	}
	fail_msg("no %s", name);
	return NULL;
}

static void assert_same_ranges(const struct procedure *a, const struct procedure *b)
{
	assert_int_equal(a->start, b->start);
	assert_int_equal(a->nranges, b->nranges);
	assert_memory_equal(a->ranges, b->ranges, a->nranges * sizeof *a->ranges);
}

static void test_names_join_halves(void **state)
{
	(void)state;
	struct image *im = open_image("cold");
	static const char *const split[] = {"framed", "bare", "twice"};
	for (size_t i = 0; i < 3; i++) {
		const struct procedure *p = find(im, split[i]);
		assert_int_equal(p->nranges, 2);
		assert_int_equal(p->source, PROCEDURE_SYMBOL);
		assert_ptr_equal(image_procedure_at(im, p->ranges[1].start), p);
	}
	assert_int_equal(find(im, "give_up")->nranges, 1);
	assert_int_equal(find(im, "complain")->nranges, 1);
	find(im, "_start");
	find(im, "_init");
	find(im, "_fini");
	find(im, "frame_dummy");
	image_destroy(im);
}

/* The functions of a stripped file are those of the file with its names. */
static void compare_stripped(const char *name, const char *stripped)
{
	struct image *whole = open_image(name), *bare = open_image(stripped);
	const struct procedure *all;
	size_t n = image_procedures(whole, &all), described = 0;
	for (size_t i = 0; i < n; i++) {
		const struct procedure *p = image_procedure_at(bare, all[i].start);
		assert_non_null(p);
		if (p->source == PROCEDURE_GAP) /* _init and others that have no FDE */
			continue;
		assert_same_ranges(&all[i], p);
		if (p->source == PROCEDURE_EH_FRAME)
			assert_null(p->name);
		described += p->source == PROCEDURE_EH_FRAME || p->source == PROCEDURE_SYMBOL;
	}
	assert_true(described >= 3);
	image_destroy(whole);
	image_destroy(bare);
}

static void test_code_joins_halves(void **state)
{
	(void)state;
	compare_stripped("cold", "cold.stripped");
	compare_stripped("throw", "throw.stripped");
}

static void test_other_links(void **state)
{
	(void)state;
	static const char *const flags[] = {
		"-no-pie", "-static-pie", "-shared -fPIC", "-Wl,-z,now,-z,noseparate-code"};
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		shell("gcc -O2 %s -o other cold.c && strip -o other.stripped other", flags[i]);
		compare_stripped("other", "other.stripped");
	}
}

static void test_plt(void **state)
{
	(void)state;
	struct image *im = open_image("cold.stripped");
	const struct procedure *p = find(im, "snprintf@plt");
	assert_int_equal(p->source, PROCEDURE_PLT);
	assert_int_equal(p->ranges[0].size, 16);
	assert_ptr_equal(image_procedure_at(im, p->start + 15), p);
	find(im, "abort@plt");
	find(im, ".plt");
	image_destroy(im);

	im = open_image("throw");
	find(im, "operator new(unsigned long)@plt");
	image_destroy(im);

	shell("gcc -O2 -fcf-protection=full -Wl,-z,ibtplt -o ibt cold.c");
	im = open_image("ibt");
	const struct procedure *all;
	size_t n = image_procedures(im, &all), stubs = 0;
	for (size_t i = 0; i < n; i++)
		stubs += all[i].name && !strcmp(all[i].name, "snprintf@plt");
	assert_int_equal(stubs, 2); /* in .plt and in .plt.sec */
	image_destroy(im);
}

/* Without section headers there are still .eh_frame_hdr and the dynamic symbols. */
static void test_no_section_headers(void **state)
{
	(void)state;
	shell("gcc -O2 -shared -fPIC -o headless cold.c && strip headless && cp headless headed");
	int fd = open(in_workshop("headless"), O_RDWR);
	Elf64_Ehdr h;
	assert_int_equal(pread(fd, &h, sizeof h, 0), sizeof h);
	h.e_shoff = h.e_shnum = h.e_shstrndx = 0;
	assert_int_equal(pwrite(fd, &h, sizeof h, 0), sizeof h);
	close(fd);
	struct image *headed = open_image("headed"), *headless = open_image("headless");
	assert_true(image_id_equal(image_id(headed), image_id(headless)));
	static const char *const names[] = {"framed", "bare", "complain", "main"};
	for (size_t i = 0; i < 4; i++)
		assert_same_ranges(find(headed, names[i]), find(headless, names[i]));
	image_destroy(headed);
	image_destroy(headless);
}

static void test_assembly(void **state)
{
	(void)state;
	struct image *im = open_image("asm");
	const struct procedure *start = find(im, "_start"), *first = find(im, "first");
	assert_int_equal(start->ranges[0].size, first->start - start->start);
	assert_int_equal(first->ranges[0].size, 2);              /* a label inside is no function */
	assert_int_equal(find(im, "nested")->ranges[0].size, 2); /* nor is a second entry */
	assert_int_equal(find(im, "second")->ranges[0].size, 9);
	assert_null(image_procedure_at(im, start->start - 1));
	image_destroy(im);
}

/* Nothing describes it: the whole section is one procedure. */
static void test_nothing(void **state)
{
	(void)state;
	struct image *im = open_image("asm.stripped");
	const struct procedure *all;
	assert_int_equal(image_procedures(im, &all), 1);
	assert_int_equal(all[0].source, PROCEDURE_GAP);
	assert_ptr_equal(image_procedure_at(im, all[0].start + 20), &all[0]);
	char label[64];
	procedure_label(&all[0], image_path(im), label, sizeof label);
	char expected[64];
	snprintf(
		expected, sizeof expected, "asm.stripped!0x%llx", (unsigned long long)all[0].start);
	assert_string_equal(label, expected);
	image_destroy(im);
}

/* Names of two functions that share a cold half's name are told apart by the code. */
static void test_ambiguous_names(void **state)
{
	(void)state;
	shell("sed 's/long framed/static long framed/;s/int main/__attribute__((noinline)) int "
	      "main2/'"
	      " cold.c > a.c; sed 's/(cold, noinline)) void complain/(cold, noinline)) static void"
	      " complain/;s/long framed/static long framed/;s/long bare/static long bare/' cold.c "
	      "> b.c");
	shell("echo 'int main2(int, char **); __attribute__((constructor)) static void c(void)"
	      "{ main2(1, 0); }' >> b.c; gcc -O2 -o two a.c b.c && strip -o two.stripped two");
	compare_stripped("two", "two.stripped");
	struct image *im = open_image("two");
	const struct procedure *all;
	size_t n = image_procedures(im, &all), split = 0;
	for (size_t i = 0; i < n; i++)
		split += all[i].name && !strcmp(all[i].name, "framed") && all[i].nranges == 2;
	assert_int_equal(split, 2);
	image_destroy(im);
}

static void test_debug_file(void **state)
{
	(void)state;
	shell("mkdir -p .debug; objcopy --only-keep-debug cold .debug/linked.debug;"
	      "strip -o linked cold; objcopy --add-gnu-debuglink=.debug/linked.debug linked");
	struct image *im = open_image("linked");
	assert_int_equal(find(im, "twice")->nranges, 2);
	image_destroy(im);

	/* Of another build: not to be believed. */
	shell("gcc -O1 -o other cold.c; objcopy --only-keep-debug other .debug/linked.debug");
	im = open_image("linked");
	const struct procedure *all;
	size_t n = image_procedures(im, &all);
	for (size_t i = 0; i < n; i++)
		assert_true(!all[i].name || strcmp(all[i].name, "twice"));
	image_destroy(im);

	/* Without build-ids the checksum decides. */
	shell("gcc -O2 -Wl,--build-id=none -o plain cold.c; objcopy --only-keep-debug plain"
	      " .debug/plain.debug; strip -o bare plain;"
	      "objcopy --add-gnu-debuglink=.debug/plain.debug bare");
	im = open_image("bare");
	find(im, "twice");
	image_destroy(im);
	shell("echo x >> .debug/plain.debug");
	im = open_image("bare");
	n = image_procedures(im, &all);
	for (size_t i = 0; i < n; i++)
		assert_true(!all[i].name || strcmp(all[i].name, "twice"));
	image_destroy(im);
}

/* A debug file has names and extents, but no code. */
static void test_debug_file_itself(void **state)
{
	(void)state;
	shell("objcopy --only-keep-debug cold cold.debug");
	struct image *im = open_image("cold.debug"), *cold = open_image("cold");
	assert_true(image_id_equal(image_id(im), image_id(cold)));
	assert_int_equal(find(im, "twice")->start, find(cold, "twice")->start);
	image_destroy(im);
	image_destroy(cold);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_join_halves),
		cmocka_unit_test(test_code_joins_halves),
		cmocka_unit_test(test_other_links),
		cmocka_unit_test(test_plt),
		cmocka_unit_test(test_no_section_headers),
		cmocka_unit_test(test_assembly),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_ambiguous_names),
		cmocka_unit_test(test_debug_file),
		cmocka_unit_test(test_debug_file_itself),
	};
	return cmocka_run_group_tests(tests, build, close_workshop);
}
