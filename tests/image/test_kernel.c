#include "image/kernel.h"

#include <elf.h>
#include <errno.h>

#include "base/buf.h"
#include "base/err.h"
#include "image/image.h"
#include "image/workshop.h"

static const char kallsyms[] = "0000000000000000 A fixed_percpu_data\n"
			       "ffffffff9a000000 T _stext\n"
			       "ffffffff9a000000 T _text\n"
			       "ffffffff9a000000 T startup_64\n"
			       "ffffffff9a000100 t local_alias\n"
			       "ffffffff9a000100 T __do_work\n"
			       "ffffffff9a000100 T do_work\n"
			       "ffffffff9a000100 W weak_work\n"
			       "ffffffff9a000200 t last_function\n"
			       "ffffffff9a001000 T _etext\n"
			       "ffffffff9a800000 D some_data\n"
			       "ffffffff9b000000 T _sinittext\n"
			       "ffffffff9b000000 t early_setup\n"
			       "ffffffff9b000100 T _einittext\n";

static const char modules[] = "ext4 999424 2 - Live 0xffffffffc0300000\n"
			      "jbd2 196608 1 ext4, Live 0xffffffffc0200000\n";

static const char module_symbols[] = "ffffffffc0300010 t ext4_read\t[ext4]\n"
				     "ffffffffc0300050 t ext4_write\t[ext4]\n"
				     "ffffffffc0400000 d ext4_data\t[ext4]\n"
				     "ffffffffc0200000 T jbd2_start\t[jbd2]\n"
				     "ffffffffc0500100 t bpf_prog_one\t[bpf]\n"
				     "ffffffffc0500400 t bpf_prog_two\t[bpf]\n";

static const uint8_t notes[] = {4, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 'G', 'N', 'U', 0, 1, 2, 0,
	0, /* other */
	4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xde, 0xad, 0xbe, 0xef};

static int make_root(void **state)
{
	if (open_workshop(state) < 0)
		return -1;
	shell("mkdir -p proc sys/kernel sys/module/ext4/notes");
	write_bytes("sys/kernel/notes", notes, sizeof notes);
	write_bytes("sys/module/ext4/notes/.note.gnu.build-id", notes + 20, sizeof notes - 20);
	return 0;
}

static void write_kallsyms(const char *a, const char *b)
{
	struct buf text = {0};
	buf_printf(&text, "%s%s", a, b);
	write_bytes("proc/kallsyms", text.p, text.n);
	buf_deinit(&text);
}

static struct kernel *create(bool expect_hidden)
{
	struct kernel *k;
	struct err e = {0};
	bool hidden;
	assert_int_equal(kernel_create(workshop, &k, &hidden, &e), 0);
	assert_int_equal(hidden, expect_hidden);
	return k;
}

/* The name of the procedure at an address, by way of image, offset and virtual address. */
static const char *name_at(struct kernel *k, uint64_t address, const char *path, uint64_t expected)
{
	uint64_t offset, vaddr;
	struct image *im = kernel_image_at(k, address, &offset);
	assert_string_equal(image_path(im), path);
	assert_int_equal(offset, expected);
	const struct segment *segments;
	size_t n = image_segments(im, &segments);
	if (!segments_vaddr(segments, n, offset, &vaddr))
		return NULL;
	const struct procedure *p = image_procedure_at(im, vaddr);
	return p ? p->name : NULL;
}

static void test_vmlinux(void **state)
{
	(void)state;
	write_kallsyms(kallsyms, "");
	write_text("proc/modules", "");
	struct kernel *k = create(false);
	assert_string_equal(name_at(k, 0xffffffff9a000000, "[kernel]", 0), "startup_64");
	assert_string_equal(name_at(k, 0xffffffff9a000180, "[kernel]", 0x180), "do_work");
	assert_string_equal(name_at(k, 0xffffffff9a000fff, "[kernel]", 0xfff), "last_function");
	assert_string_equal(name_at(k, 0xffffffff9b000001, "[kernel]", 0x1000001), "early_setup");
	assert_null(name_at(k, 0xffffffff9a001000, "[kernel]", 0x1000));
	assert_null(name_at(k, 0xffffffff99ffffff, "[kernel]", UINT64_MAX));

	uint64_t offset;
	struct image *im = kernel_image_at(k, 0xffffffff9a000180, &offset);
	assert_int_equal(image_kind(im), IMAGE_KERNEL);
	assert_int_equal(
		image_procedure_at(im, KERNEL_LINK_BASE + 0x180)->start, KERNEL_LINK_BASE + 0x100);
	char text[IMAGE_ID_TEXT];
	assert_string_equal(image_id_text(image_id(im), text), "deadbeef");
	kernel_destroy(k);
}

/* The kernel sorts its own symbols, and nobody promised it; modules' are in any order. */
static void test_not_in_order(void **state)
{
	(void)state;
	write_kallsyms("ffffffff9a000200 t last_function\n", kallsyms);
	write_text("proc/modules", "");
	struct kernel *k = create(false);
	assert_string_equal(name_at(k, 0xffffffff9a000000, "[kernel]", 0), "startup_64");
	assert_string_equal(name_at(k, 0xffffffff9a000180, "[kernel]", 0x180), "do_work");
	kernel_destroy(k);

	write_kallsyms(kallsyms, "ffffffffc0300050 t ext4_write\t[ext4]\n"
				 "ffffffffc0300010 t ext4_read\t[ext4]\n");
	write_text("proc/modules", modules);
	k = create(false);
	assert_string_equal(name_at(k, 0xffffffff9a000180, "[kernel]", 0x180), "do_work");
	assert_string_equal(name_at(k, 0xffffffffc0300020, "[ext4]", 0x20), "ext4_read");
	assert_string_equal(name_at(k, 0xffffffffc0300060, "[ext4]", 0x60), "ext4_write");
	kernel_destroy(k);
}

static void test_hidden(void **state)
{
	(void)state;
	write_text("proc/kallsyms", "0000000000000000 T _text\n0000000000000000 T do_work\n");
	struct kernel *k = create(true);
	uint64_t offset;
	struct image *im = kernel_image_at(k, 0xffffffff9a000180, &offset);
	assert_int_equal(offset, 0xffffffff9a000180);
	assert_int_equal(image_id(im)->size, 0);
	const struct procedure *p = image_procedure_at(im, offset);
	assert_non_null(p);
	assert_null(p->name);
	assert_ptr_equal(image_procedure_at(im, 0xffffffff9b000000), p); /* one row for all */
	assert_int_equal(kernel_refresh(k), -EAGAIN);
	kernel_destroy(k);

	unlink(in_workshop("proc/kallsyms"));
	kernel_destroy(create(true));
}

static void test_modules(void **state)
{
	(void)state;
	write_kallsyms(kallsyms, module_symbols);
	write_text("proc/modules", modules);
	struct kernel *k = create(false);
	assert_string_equal(name_at(k, 0xffffffffc0300050, "[ext4]", 0x50), "ext4_write");
	assert_string_equal(name_at(k, 0xffffffffc0300fff, "[ext4]", 0xfff), "ext4_write");
	assert_null(name_at(k, 0xffffffffc0300000, "[ext4]", 0)); /* in front of its first symbol */
	assert_string_equal(name_at(k, 0xffffffffc0200010, "[jbd2]", 0x10), "jbd2_start");
	assert_string_equal(
		name_at(k, 0xffffffffc0500200, "[bpf]", 0xffffffffc0500200), "bpf_prog_one");
	assert_null(name_at(k, 0xffffffffc0500000, "[kernel]", 0x26500000));

	uint64_t offset;
	char text[IMAGE_ID_TEXT];
	struct image *im = kernel_image_at(k, 0xffffffffc0300050, &offset);
	assert_int_equal(image_kind(im), IMAGE_MODULE);
	assert_string_equal(image_id_text(image_id(im), text), "deadbeef");
	kernel_destroy(k);
}

/* Addresses without CAP_SYSLOG, or a kernel without /proc/modules: symbols say where modules are.
 */
static void test_modules_without_addresses(void **state)
{
	(void)state;
	write_kallsyms(kallsyms, module_symbols);
	write_text("proc/modules", "ext4 999424 2 - Live 0x0000000000000000\n");
	struct kernel *k = create(false);
	assert_string_equal(name_at(k, 0xffffffffc0300050, "[ext4]", 0x50), "ext4_write");
	kernel_destroy(k);
}

static void test_refresh(void **state)
{
	(void)state;
	write_kallsyms(kallsyms, "");
	write_text("proc/modules", "");
	struct kernel *k = create(false);
	assert_int_equal(kernel_refresh(k), -EAGAIN);

	write_kallsyms(kallsyms, module_symbols);
	write_text("proc/modules", modules);
	assert_int_equal(kernel_refresh(k), 0);
	assert_string_equal(name_at(k, 0xffffffffc0300050, "[ext4]", 0x50), "ext4_write");
	uint64_t offset;
	struct image *im = kernel_image_at(k, 0xffffffffc0300050, &offset);

	/* Users of a module come and go: nothing changed. */
	write_text("proc/modules", "ext4 999424 3 - Live 0xffffffffc0300000\n"
				   "jbd2 196608 1 ext4, Live 0xffffffffc0200000\n");
	assert_int_equal(kernel_refresh(k), -EAGAIN);

	/* It is loaded again elsewhere: the same image. */
	write_kallsyms(kallsyms, "ffffffffc0700010 t ext4_read\t[ext4]\n");
	write_text("proc/modules", "ext4 999424 3 - Live 0xffffffffc0700000\n");
	assert_int_equal(kernel_refresh(k), 0);
	assert_ptr_equal(kernel_image_at(k, 0xffffffffc0700010, &offset), im);
	assert_int_equal(offset, 0x10);
	assert_null(name_at(k, 0xffffffffc0300050, "[kernel]", 0x26300050));
	assert_string_equal(name_at(k, 0xffffffff9a000180, "[kernel]", 0x180), "do_work");
	kernel_destroy(k);
}

/* A BPF program is loaded without a word: an address that nothing covers brings it to light. */
static void test_refresh_after_miss(void **state)
{
	(void)state;
	write_kallsyms(kallsyms, "");
	write_text("proc/modules", "");
	struct kernel *k = create(false);
	write_kallsyms(kallsyms, "ffffffffc0500100 t bpf_prog_one\t[bpf]\n");
	assert_int_equal(kernel_refresh(k), -EAGAIN);
	assert_null(name_at(k, 0xffffffffc0500110, "[kernel]", 0x26500110));
	assert_int_equal(kernel_refresh(k), 0);
	assert_string_equal(
		name_at(k, 0xffffffffc0500110, "[bpf]", 0xffffffffc0500110), "bpf_prog_one");

	uint64_t offset;
	kernel_image_at(k, 0xffffffffc0900000, &offset);
	assert_int_equal(kernel_refresh(k), 0); /* in vain */
	kernel_image_at(k, 0xffffffffc0900000, &offset);
	assert_int_equal(kernel_refresh(k), -EAGAIN); /* so not again at once */
	kernel_destroy(k);
}

static void test_odd_lines(void **state)
{
	(void)state;
	struct buf text = {0};
	buf_printf(&text,
		"%s\n\ngarbage\nffffffff9a000300\nffffffff9a000300 T\nffffffff9a000300 T \n"
		"ffffffff9a000300ff0 T too_long\nffffffff9a000310 ",
		kallsyms);
	for (int i = 0; i < 100000; i++)
		buf_u8(&text, 'x');
	buf_printf(&text, "\nffffffff9a000400 T after_it\nffffffff9a000500 T cut_off");
	write_bytes("proc/kallsyms", text.p, text.n);
	write_text("proc/modules", "");
	buf_deinit(&text);
	struct kernel *k = create(false);
	assert_string_equal(name_at(k, 0xffffffff9a000350, "[kernel]", 0x350), "last_function");
	assert_string_equal(name_at(k, 0xffffffff9a000600, "[kernel]", 0x600), "after_it");
	kernel_destroy(k);
}

static void test_code(void **state)
{
	(void)state;
	write_kallsyms(kallsyms, module_symbols);
	write_text("proc/modules", modules);
	unlink(in_workshop("proc/kcore"));
	struct kernel *k = create(false);
	uint64_t offset;
	struct image *im = kernel_image_at(k, 0xffffffff9a000100, &offset);
	struct range r = {.start = KERNEL_LINK_BASE + 0x100, .size = 4};
	struct buf code = {0};
	assert_int_equal(image_code(im, &r, &code), -ENOENT);

	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segments[2];
		uint8_t bytes[0x200];
	} core = {.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
			  .e_type = ET_CORE,
			  .e_phoff = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 2}};
	core.segments[0] = (Elf64_Phdr){.p_type = PT_NOTE};
	core.segments[1] = (Elf64_Phdr){.p_type = PT_LOAD,
		.p_offset = offsetof(__typeof__(core), bytes),
		.p_vaddr = 0xffffffff9a000000,
		.p_filesz = sizeof core.bytes};
	memcpy(core.bytes + 0x100, "\x55\x48\x89\xe5", 4);
	write_bytes("proc/kcore", &core, sizeof core);
	assert_int_equal(image_code(im, &r, &code), 0);
	assert_int_equal(code.n, 4);
	assert_memory_equal(code.p, "\x55\x48\x89\xe5", 4);
	r.size = 0x101; /* past the segment */
	assert_int_equal(image_code(im, &r, &code), -ENOENT);
	assert_int_equal(code.n, 4);
	buf_deinit(&code);
	kernel_destroy(k);
}

/* The kernel that runs here, whatever it shows. */
static void test_this_machine(void **state)
{
	(void)state;
	struct kernel *k;
	bool hidden;
	struct err e;
	assert_int_equal(kernel_create("", &k, &hidden, &e), 0);
	uint64_t offset;
	struct image *im = kernel_image_at(k, 0xffffffff81000000, &offset);
	const struct procedure *all;
	if (!hidden)
		assert_true(image_procedures(im, &all) > 1000);
	kernel_destroy(k);
}

/* A copy of the symbols has names, and nothing of the machine that we are on. */
static void test_copy(void **state)
{
	(void)state;
	const struct image_id id = {.size = 2, .bytes = {7, 8}};
	struct kernel *k;
	struct buf out = {0};
	uint64_t offset;
	write_kallsyms(kallsyms, module_symbols);
	const char *path = in_workshop("proc/kallsyms");
	assert_int_equal(kernel_create_copy(path, &id, &k, NULL), 0);
	struct image *im = kernel_image_at(k, 0xffffffff9a000210, &offset);
	assert_int_equal(offset, 0x210);
	assert_true(image_id_equal(image_id(im), &id));
	const struct procedure *p = image_procedure_at(im, KERNEL_LINK_BASE + offset);
	assert_string_equal(p->name, "last_function");
	assert_int_equal(image_code(im, p->ranges, &out), -ENOENT);
	im = kernel_image_at(k, 0xffffffffc0300055, &offset);
	assert_string_equal(image_path(im), "[ext4]");
	assert_int_equal(image_id(im)->size, 0);
	kernel_destroy(k);
	assert_true(kernel_create_copy("/nonexistent", &id, &k, NULL) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vmlinux),
		cmocka_unit_test(test_not_in_order),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_modules_without_addresses),
		cmocka_unit_test(test_refresh),
		cmocka_unit_test(test_refresh_after_miss),
		cmocka_unit_test(test_odd_lines),
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_this_machine),
	};
	return cmocka_run_group_tests(tests, make_root, close_workshop);
}
