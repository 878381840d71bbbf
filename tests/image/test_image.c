#include "image/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "image/workshop.h"

static const char program_c[] =
	"int twice(int a) { return 2 * a; }\n"
	"int main(int argc, char **argv) { (void)argv; return twice(argc); }\n";

static int build(void **state)
{
	if (open_workshop(state) < 0)
		return -1;
	write_text("program.c", program_c);
	shell("gcc -O1 -o program program.c");
	shell("gcc -O1 -Wl,--build-id=none -o unlabelled program.c");
	return 0;
}

static struct image *open_image(const char *path)
{
	struct image *im;
	struct err e = {0};
	if (image_open_path(path, &im, &e) < 0)
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
	return NULL;
}

/* ---- identity ---- */

static void test_id_text(void **state)
{
	(void)state;
	struct image_id id = {.size = 3, .bytes = {0xab, 0, 0x12}}, back;
	char text[IMAGE_ID_TEXT];
	assert_string_equal(image_id_text(&id, text), "ab0012");
	assert_true(image_id_parse(text, &back));
	assert_true(image_id_equal(&id, &back));
	id.is_hash = true;
	assert_string_equal(image_id_text(&id, text), "hash:ab0012");
	assert_false(image_id_equal(&id, &back));
	assert_true(image_id_parse(text, &back));
	assert_true(image_id_equal(&id, &back));
	id = (struct image_id){0};
	assert_string_equal(image_id_text(&id, text), "");
	assert_true(image_id_parse("", &back));
	assert_int_equal(back.size, 0);

	id = (struct image_id){.size = 32, .is_hash = true};
	assert_true(strlen(image_id_text(&id, text)) < IMAGE_ID_TEXT);
	static const char *const bad[] = {"abc", "xy", "hash:", "AB",
		"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(image_id_parse(bad[i], &back));
}

static void test_identity(void **state)
{
	(void)state;
	char text[IMAGE_ID_TEXT], expected[64];
	shell("readelf -n program | sed -n 's/.*Build ID: //p' | tr -d '\\n' > id");
	assert_int_equal(io_read_line(AT_FDCWD, in_workshop("id"), expected, sizeof expected), 0);
	struct image *im = open_image(in_workshop("program"));
	assert_string_equal(image_id_text(image_id(im), text), expected);
	assert_int_equal(image_kind(im), IMAGE_ELF);

	int fd = open(in_workshop("program"), O_RDONLY);
	struct image_id id;
	assert_int_equal(image_identify(fd, &id, NULL), 0);
	assert_true(image_id_equal(&id, image_id(im)));
	close(fd);
	image_destroy(im);
}

static void test_hash(void **state)
{
	(void)state;
	shell("cp unlabelled copy; strip -o bare unlabelled; gcc -O1 -Dmain=main "
	      "-Wl,--build-id=none"
	      " -o changed -xc - <<E\nint twice(int a) { return 3 * a; }\n"
	      "int main(int argc, char **argv) { (void)argv; return twice(argc); }\nE\n");
	struct image *a = open_image(in_workshop("unlabelled")),
		     *b = open_image(in_workshop("copy"));
	struct image *c = open_image(in_workshop("bare")), *d = open_image(in_workshop("changed"));
	assert_true(image_id(a)->is_hash);
	assert_true(image_id(a)->size >= 16);
	assert_true(image_id_equal(image_id(a), image_id(b)));
	assert_true(image_id_equal(image_id(a), image_id(c))); /* stripping leaves the code */
	assert_false(image_id_equal(image_id(a), image_id(d)));
	image_destroy(a);
	image_destroy(b);
	image_destroy(c);
	image_destroy(d);
}

/* ---- what an open image answers ---- */

static void test_segments(void **state)
{
	(void)state;
	struct image *im = open_image(in_workshop("program"));
	const struct segment *s;
	assert_int_equal(image_segments(im, &s), 1);
	uint64_t vaddr;
	assert_true(segments_vaddr(s, 1, s->offset + 5, &vaddr));
	assert_int_equal(vaddr, s->vaddr + 5);
	assert_false(segments_vaddr(s, 1, s->offset - 1, &vaddr));
	assert_false(segments_vaddr(s, 1, s->offset + s->size, &vaddr));
	image_destroy(im);
}

static void test_code(void **state)
{
	(void)state;
	static const uint8_t twice[] = {0x8d, 0x04, 0x3f, 0xc3}; /* lea (%rdi,%rdi),%eax; ret */
	shell("cp program moved");
	struct image *im = open_image(in_workshop("moved"));
	const struct procedure *p = find(im, "twice");
	struct buf code = {0};
	assert_int_equal(image_code(im, p->ranges, &code), 0);
	assert_int_equal(code.n, sizeof twice);
	assert_memory_equal(code.p, twice, sizeof twice);

	struct range outside = {.start = 0x10, .size = 4}, long_one = {p->start, 1 << 20};
	assert_int_equal(image_code(im, &outside, &code), -ENOENT);
	assert_int_equal(image_code(im, &long_one, &code), -ENOENT);

	/* Released, it goes by the path as long as that is the same image. */
	image_release(im);
	assert_int_equal(image_code(im, p->ranges, &code), 0);
	assert_int_equal(code.n, 2 * sizeof twice);
	shell("cp unlabelled moved.new && mv moved.new moved");
	assert_int_equal(image_code(im, p->ranges, &code), -ENOENT);
	assert_string_equal(image_procedure_at(im, p->start)->name, "twice");
	buf_deinit(&code);
	image_destroy(im);
}

/* The caller may close its descriptor; a deleted file is read all the same. */
static void test_deleted(void **state)
{
	(void)state;
	shell("cp program deleted");
	int fd = open(in_workshop("deleted"), O_RDONLY);
	struct image *im;
	assert_int_equal(image_open("/nowhere/deleted", fd, &im, NULL), 0);
	close(fd);
	unlink(in_workshop("deleted"));
	assert_non_null(find(im, "twice"));
	image_release(im);
	assert_non_null(find(im, "twice"));
	image_destroy(im);
}

static void test_label(void **state)
{
	(void)state;
	struct procedure p = {.start = 0x4330};
	char text[32];
	assert_string_equal(procedure_label(&p, "/usr/bin/gzip", text, sizeof text), "gzip!0x4330");
	assert_string_equal(procedure_label(&p, "[vdso]", text, sizeof text), "[vdso]!0x4330");
	p.name = "deflate";
	assert_string_equal(procedure_label(&p, "/usr/bin/gzip", text, sizeof text), "deflate");
	assert_string_equal(procedure_label(&p, "/usr/bin/gzip", text, 4), "def");
}

static void test_memory(void **state)
{
	(void)state;
	struct image *im = open_image("/proc/self/exe");
	size_t before = image_memory(im);
	image_release(im);
	size_t after = image_memory(im);
	const struct procedure *all;
	size_t n = image_procedures(im, &all);
	assert_true(after > before);
	assert_true(after < n * 100);
	image_destroy(im);
}

/* ---- files of this machine that nobody here wrote ---- */

static void check_coverage(struct image *im)
{
	const struct procedure *all;
	size_t n = image_procedures(im, &all);
	for (size_t i = 0; i < n; i++) {
		if (i)
			assert_true(all[i].start > all[i - 1].start);
		assert_int_equal(all[i].ranges[0].start, all[i].start);
		for (uint32_t r = 0; r < all[i].nranges; r++) {
			const struct range *range = &all[i].ranges[r];
			assert_ptr_equal(image_procedure_at(im, range->start), &all[i]);
			assert_ptr_equal(
				image_procedure_at(im, range->start + range->size - 1), &all[i]);
		}
	}
}

static void test_libraries(void **state)
{
	(void)state;
	static const struct {
		const char *path, *name;
		size_t least;
	} files[] = {{"/bin/gzip", NULL, 100}, {"/lib/x86_64-linux-gnu/libc.so.6", "printf", 2000},
		{"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "operator new(unsigned long)", 3000},
		{"/lib64/ld-linux-x86-64.so.2", NULL, 100}};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		if (access(files[i].path, R_OK) < 0)
			continue;
		struct image *im = open_image(files[i].path);
		const struct procedure *all;
		assert_true(image_procedures(im, &all) > files[i].least);
		assert_false(image_id(im)->is_hash);
		if (files[i].name)
			assert_non_null(find(im, files[i].name));
		check_coverage(im);
		image_destroy(im);
	}
}

/* ---- damage ---- */

static int open_bytes(const void *p, size_t n, struct image **out, struct err *e)
{
	int fd = memfd_create("damaged", MFD_CLOEXEC);
	assert_int_equal(write(fd, p, n), n);
	int r = image_open("damaged", fd, out, e);
	close(fd);
	return r;
}

static void expect_refusal(const void *p, size_t n, int code, const char *words)
{
	struct image *im;
	struct err e = {0};
	assert_int_equal(open_bytes(p, n, &im, &e), code);
	assert_int_equal(e.code, code);
	assert_non_null(strstr(e.text, "damaged"));
	if (!strstr(e.text, words))
		fail_msg("\"%s\" does not say \"%s\"", e.text, words);
	assert_null(strchr(e.text, '\n'));
}

static void test_other_files(void **state)
{
	(void)state;
	struct image *im;
	struct err e;
	expect_refusal("", 0, -ENOEXEC, "not an ELF");
	expect_refusal("#!/bin/sh\n", 10, -ENOEXEC, "not an ELF");
	expect_refusal("\x7f"
		       "ELF\x02",
		5, -EBADMSG, "ends in its ELF header");
	Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
		.e_machine = EM_AARCH64,
		.e_type = ET_DYN};
	expect_refusal(&h, sizeof h, -ENOEXEC, "x86-64");
	h.e_machine = EM_X86_64;
	h.e_type = ET_REL;
	expect_refusal(&h, sizeof h, -ENOEXEC, "program");
	h.e_type = ET_DYN;
	h.e_phnum = 1000;
	h.e_phentsize = sizeof(Elf64_Phdr);
	expect_refusal(&h, sizeof h, -EBADMSG, "program headers");
	h.e_phnum = 4;
	h.e_phoff = UINT64_MAX - 8;
	expect_refusal(&h, sizeof h, -EBADMSG, "program headers");
	h.e_phnum = 0;
	assert_int_equal(
		open_bytes(&h, sizeof h, &im, &e), 0); /* without segments: nothing in it */
	assert_null(image_procedure_at(im, 0));
	image_destroy(im);
	assert_int_equal(image_open_path("/nowhere", &im, &e), -ENOENT);
	assert_int_equal(image_open_path("/", &im, &e), -ENOEXEC);
	assert_int_equal(image_open_path("/dev/null", &im, &e), -ENOEXEC);
}

static void test_truncated(void **state)
{
	(void)state;
	struct buf file = {0};
	assert_int_equal(io_read_file(AT_FDCWD, in_workshop("program"), 1 << 20, &file), 0);
	struct image *im = open_image(in_workshop("program"));
	const struct segment *s;
	image_segments(im, &s);
	expect_refusal(file.p, s->offset + s->size - 1, -EBADMSG, "executable segment");

	/* What follows the code may be missing: section headers are then none. */
	struct image *cut;
	assert_int_equal(open_bytes(file.p, s->offset + s->size, &cut, NULL), 0);
	const struct procedure *all;
	assert_int_equal(image_procedures(cut, &all), 1);
	assert_int_equal(all[0].source, PROCEDURE_GAP);
	image_destroy(cut);
	image_destroy(im);
	buf_deinit(&file);
}

/* A damaged .eh_frame takes its extents away and nothing else. */
static void test_bad_eh_frame(void **state)
{
	(void)state;
	shell("seq 1000 1020 > noise; cp program bad; objcopy --update-section"
	      " .eh_frame=noise bad 2>/dev/null || objcopy --remove-section .eh_frame bad");
	struct image *im = open_image(in_workshop("bad"));
	assert_non_null(find(im, "twice"));
	assert_int_equal(find(im, "twice")->ranges[0].size, 4);
	image_destroy(im);
}

/* Any byte may be wrong: nothing crashes, and what is answered is consistent. */
static void test_bit_flips(void **state)
{
	(void)state;
	struct buf file = {0};
	unsigned seed = 7;
	assert_int_equal(io_read_file(AT_FDCWD, in_workshop("program"), 1 << 20, &file), 0);
	for (int round = 0; round < 300; round++) {
		uint8_t *copy = malloc(file.n);
		memcpy(copy, file.p, file.n);
		for (int i = 0; i < 8; i++) {
			size_t most = i < 4 ? 0x400 : file.n;
			copy[(unsigned)rand_r(&seed) % most] ^= (uint8_t)(1 << rand_r(&seed) % 8);
		}
		struct image *im;
		if (open_bytes(copy, file.n, &im, NULL) == 0) {
			check_coverage(im);
			image_destroy(im);
		}
		free(copy);
	}
	buf_deinit(&file);
}

/* The file shrinks after it was opened. */
static void test_shrinking(void **state)
{
	(void)state;
	shell("cp program shrinking");
	struct image *im = open_image(in_workshop("shrinking"));
	assert_int_equal(truncate(in_workshop("shrinking"), 100), 0);
	const struct procedure *all;
	image_procedures(im, &all);
	struct range r = {.start = 0x1000, .size = 16};
	struct buf code = {0};
	assert_int_equal(image_code(im, &r, &code), -EBADMSG);
	assert_int_equal(code.n, 0);
	buf_deinit(&code);
	image_destroy(im);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_id_text),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_deleted),
		cmocka_unit_test(test_label),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_libraries),
		cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_bad_eh_frame),
		cmocka_unit_test(test_bit_flips),
		cmocka_unit_test(test_shrinking),
	};
	return cmocka_run_group_tests(tests, build, close_workshop);
}
