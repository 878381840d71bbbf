/* Segments are added to programs and libraries of every make, which must run as before. */
#include "edit/elf_out.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/xattr.h>

#include "base/buf.h"
#include "base/err.h"
#include "edit/note.h"
#include "image/elf_file.h"
#include "image/workshop.h"

static int build(void **state)
{
	if (open_workshop(state) < 0)
		return -1;
	write_text("a.c", "#include <stdio.h>\n"
			  "#include <stdlib.h>\n"
			  "#include <string.h>\n"
			  "static char large[3 << 20];\n"
			  "static int one(int x) { return x + 1; }\n"
			  "static int two(int x) { return x + 2; }\n"
			  "static int (*table[])(int) = {one, two, one};\n"
			  "__thread int mine = 7;\n"
			  "int sum(int n) { return table[n % 3](n) + large[n] + mine; }\n"
			  "int main(int argc, char **argv)\n"
			  "{\n"
			  "	if (argc > 2) large[5] = 1;\n"
			  "	printf(\"%d %s\\n\", sum(argc), getenv(\"WORD\"));\n"
			  "	return argc + 2;\n"
			  "}\n");
	write_text("lib.c",
		"#include <stdio.h>\n"
		"static int ready;\n"
		"int counted[1000] = {1};\n"
		"static const char *const words[] = {\"no\", \"yes\"};\n"
		"__attribute__((constructor)) static void begin(void) { ready = 1; }\n"
		"void tell(void) { printf(\"ready: %s %d\\n\", words[ready], counted[0]); }\n");
	write_text("use.c", "void tell(void);\nint main(void) { tell(); return 5; }\n");
	return 0;
}

/* push, lea, pop: nothing; then a jump to what ran first. */
static void put_start(struct buf *code, uint64_t at, uint64_t then)
{
	static const uint8_t body[] = {0x50, 0x48, 0x8d, 0x05, 0, 0, 0, 0, 0x58};
	size_t from = code->n;
	int32_t distance;

	buf_put(code, body, sizeof body);
	if (!then) {
		buf_u8(code, 0xc3);
		return;
	}
	buf_u8(code, 0xe9);
	distance = (int32_t)(then - (at + from + sizeof body + 5));
	buf_u32(code, (uint32_t)distance);
}

static void add_everything(struct elf_out *o)
{
	struct err e = {0};
	struct buf code = {0}, table = {0};
	uint64_t data = elf_out_data_at(o), text = elf_out_data(o, 5000);
	uint64_t then = elf_out_first(o);

	assert_true(text > data + 5000);
	assert_int_equal(text % 4096, 0);
	put_start(&code, text, then);
	size_t n = code.n;
	elf_out_segment(o, text, PF_R | PF_X, &code);
	assert_int_equal(code.n, 0);
	elf_out_section(o, ".culprit.text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, text, n, 64);
	elf_out_symbol(o, "added", text, n);
	buf_str(&table, "read only");
	elf_out_section(o, ".culprit.rodata", SHT_PROGBITS, SHF_ALLOC, text + 4096, table.n, 1);
	elf_out_segment(o, text + 4096, PF_R, &table);
	if (elf_out_start(o, text, &e))
		fail_msg("%s", e.text);
}

static void edit(const char *from, const char *to)
{
	struct elf_out *o = NULL;
	struct err e = {0};
	int fd = open(from[0] == '/' ? from : in_workshop(from), O_RDONLY);

	if (elf_out_create(from, fd, &o, &e))
		fail_msg("%s", e.text);
	close(fd);
	add_everything(o);
	elf_out_describe(o, "test", "more", 4);
	if (elf_out_write(o, in_workshop(to), &e))
		fail_msg("%s", e.text);
	elf_out_destroy(o);
}

/* readelf has nothing to say that it does not say of the original. */
static void inspect(const char *from, const char *to)
{
	shell("readelf -aW %s 2>&1 >/dev/null | sort -u >before", from);
	shell("cp %s inspected; readelf -aW inspected 2>&1 >/dev/null | sort -u >after", to);
	shell("comm -13 before after >new; test ! -s new || { cat new; false; }");
}

static void check_runs(const char *program)
{
	shell("code=0; WORD=hello ./a x y >want || code=$?; got=0; WORD=hello ./%s x y >got || "
	      "got=$?; "
	      "test $code = 5 -a $got = 5 && cmp want got",
		program);
}

static void check_program(const char *flags)
{
	shell("gcc -O1 %s -o a a.c", flags);
	edit("a", "b");
	check_runs("b");
	inspect("a", "b");
	shell("nm b | grep -q ' T added$'");
	shell("cp b c && strip c 2>said && test ! -s said && rm said");
	check_runs("c");
	shell("objcopy --strip-debug b c 2>said && test ! -s said && rm said");
	check_runs("c");
	shell("strip -o c a");
	edit("c", "b");
	check_runs("b");
	inspect("c", "b");
	shell("nm b | grep -q ' T added$'");
}

static void test_programs(void **state)
{
	static const char *const makes[] = {"-pie", "-no-pie", "-static", "-static-pie",
		"-Wl,-z,lazy", "-no-pie -Wl,-z,norelro", "-Wl,-z,pack-relative-relocs",
		"-Wl,-z,noseparate-code", "-Wl,-z,max-page-size=0x200000", "-g",
		"-Wl,--build-id=none", "-Wl,--emit-relocs", "-Wl,--hash-style=sysv"};

	(void)state;
	for (size_t i = 0; i < sizeof makes / sizeof *makes; i++)
		check_program(makes[i]);
}

static void test_libraries(void **state)
{
	static const char *const makes[] = {
		"", "-Wl,-z,now", "-nostartfiles", "-Wl,-z,pack-relative-relocs -nostartfiles"};

	(void)state;
	for (size_t i = 0; i < sizeof makes / sizeof *makes; i++) {
		shell("gcc -O1 -fPIC -shared %s -o libx.so lib.c", makes[i]);
		shell("gcc -o use use.c -L. -lx && mkdir -p e s");
		edit("libx.so", "e/libx.so");
		inspect("libx.so", "e/libx.so");
		shell("LD_LIBRARY_PATH=e ./use >got; test $? = 5");
		shell("echo 'ready: yes 1' | cmp got -");
		shell("strip -o s/libx.so e/libx.so && LD_LIBRARY_PATH=s ./use | cmp - got");
	}
}

static void test_stock(void **state)
{
	(void)state;
	edit("/bin/bash", "bash");
	shell("./bash -c 'echo $((6*7)); exit 3' >got; test $? = 3 && test $(cat got) = 42");
	edit("/bin/gzip", "gzip");
	shell("./gzip -c a.c | gzip -d | cmp - a.c");
	shell("cp gzip g && strip g && ./g -c a.c | gzip -d | cmp - a.c");
}

static void test_without_sections(void **state)
{
	(void)state;
	shell("gcc -O1 -o a a.c && cp a nosec");
	/* e_shoff, e_shentsize, e_shnum, e_shstrndx */
	shell("printf '\\0\\0\\0\\0\\0\\0\\0\\0' | dd of=nosec bs=1 seek=40 conv=notrunc "
	      "status=none");
	shell("printf '\\0\\0\\0\\0\\0\\0' | dd of=nosec bs=1 seek=58 conv=notrunc status=none");
	edit("nosec", "b");
	check_runs("b");
	shell("nm b | grep -q ' T added$'");
}

static void test_note(void **state)
{
	struct elf_file before, after;
	struct edit_note note;
	struct image_id old, new;

	(void)state;
	shell("gcc -O1 -o a a.c");
	edit("a", "b");
	int fa = open(in_workshop("a"), O_RDONLY), fb = open(in_workshop("b"), O_RDONLY);
	assert_int_equal(elf_file_open(&before, fa, "a", NULL), 0);
	assert_int_equal(elf_file_open(&after, fb, "b", NULL), 0);
	assert_int_equal(elf_file_identify(&before, &old), 0);
	assert_int_equal(elf_file_identify(&after, &new), 0);
	assert_int_equal(new.size, old.size);
	assert_false(image_id_equal(&old, &new));
	assert_false(edit_note_find(&before, &note));
	assert_true(edit_note_find(&after, &note));
	assert_true(image_id_equal(&note.original, &old));
	assert_string_equal(note.kind, "test");
	assert_int_equal(note.size, 4);
	assert_memory_equal(note.more, "more", 4);

	struct elf_out *o = NULL;
	struct err e = {0};
	assert_int_equal(elf_out_create("b", fb, &o, &e), -EEXIST);
	assert_non_null(strstr(e.text, "edited already (test, of "));
	elf_file_close(&before);
	elf_file_close(&after);
	close(fa);
	close(fb);
}

static void check_refused(const char *name, int code, const char *words)
{
	struct elf_out *o = NULL;
	struct err e = {0};
	int fd = open(in_workshop(name), O_RDONLY);

	assert_int_equal(elf_out_create(name, fd, &o, &e), code);
	if (!strstr(e.text, words))
		fail_msg("%s", e.text);
	close(fd);
}

static void test_refusals(void **state)
{
	(void)state;
	shell("gcc -O1 -o a a.c && cp a suid && chmod u+s suid");
	check_refused("suid", -EPERM, "set-user-ID");
	shell("cp a signed && printf '~Module signature appended~\\n' >>signed");
	check_refused("signed", -EPERM, "signature");
	if (setxattr(in_workshop("a"), "security.ima", "x", 1, 0) == 0) /* not without privilege */
		check_refused("a", -EPERM, "IMA");
	check_refused("a.c", -ENOEXEC, "not an ELF file");
	shell("gcc -c -o a.o a.c && head -c 9000 suid >cut && chmod 755 cut");
	check_refused("a.o", -ENOEXEC, "neither");
	check_refused("cut", -EBADMSG, "damaged");
}

static uint64_t address_of(const char *symbol)
{
	unsigned long at;

	shell("nm a | sed -n 's/ [td] %s$//p' >where", symbol);
	FILE *where = fopen(in_workshop("where"), "r");
	assert_non_null(where);
	assert_int_equal(fscanf(where, "%lx", &at), 1);
	fclose(where);
	return at;
}

/* Words that hold addresses, by RELA, by RELR, and as they are: let all of them call two(). */
static void check_pointers(const char *flags)
{
	struct elf_out *o = NULL;
	struct err e = {0};

	shell("gcc -O0 %s -o a a.c", flags);
	uint64_t two = address_of("two"), table = address_of("table");
	int fd = open(in_workshop("a"), O_RDONLY);
	assert_int_equal(elf_out_create("a", fd, &o, &e), 0);
	assert_int_equal(elf_out_pointer(o, table, two, &e), 0);
	assert_int_equal(elf_out_pointer(o, table + 16, two, &e), 0);
	if (elf_out_file(o)->header.e_type != ET_EXEC)
		assert_int_equal(elf_out_pointer(o, table + 4, two, &e), -ENOENT);
	assert_int_equal(elf_out_write(o, in_workshop("b"), &e), 0);
	shell("./a x y | grep -q '^11 ' && ./b x y | grep -q '^12 '");
	elf_out_destroy(o);
	close(fd);
}

static void test_pointers(void **state)
{
	(void)state;
	check_pointers("-pie");
	check_pointers("-pie -Wl,-z,pack-relative-relocs");
	check_pointers("-no-pie");
	check_pointers("-static-pie");
}

/* Neither the file nor a part of it is left. */
static void test_no_room(void **state)
{
	struct elf_out *o = NULL;
	struct err e = {0};
	struct rlimit old, small = {.rlim_cur = 1 << 16, .rlim_max = RLIM_INFINITY};

	(void)state;
	shell("gcc -O1 -o a a.c && mkdir empty");
	int fd = open(in_workshop("a"), O_RDONLY);
	assert_int_equal(elf_out_create("a", fd, &o, &e), 0);
	add_everything(o);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(elf_out_write(o, in_workshop("empty/b"), &e), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	shell("rmdir empty");
	assert_non_null(strstr(e.text, "empty/b: cannot write it"));
	elf_out_destroy(o);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_libraries),
		cmocka_unit_test(test_stock),
		cmocka_unit_test(test_without_sections),
		cmocka_unit_test(test_note),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_pointers),
		cmocka_unit_test(test_no_room),
	};
	return cmocka_run_group_tests(tests, build, close_workshop);
}
