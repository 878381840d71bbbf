#include "image/elf_file.h"

#include <errno.h>
#include <fcntl.h>

#include "image/image.h"
#include "image/workshop.h"

static int build(void **state)
{
	if (open_workshop(state) < 0)
		return -1;
	write_text("a.c", "int main(void) { return 0; }\n");
	shell("gcc -o a a.c");
	return 0;
}

static void test_sections(void **state)
{
	(void)state;
	int fd = open(in_workshop("a"), O_RDONLY);
	struct elf_file f;
	assert_int_equal(elf_file_open(&f, fd, "a", NULL), 0);
	assert_null(elf_file_section(&f, ".text"));
	elf_file_read_sections(&f);
	const Elf64_Shdr *text = elf_file_section(&f, ".text");
	assert_non_null(text);
	assert_string_equal(elf_file_section_name(&f, text), ".text");
	assert_null(elf_file_section(&f, ".nothing"));
	assert_false(elf_file_is_debug(&f));

	struct bytes code, again;
	uint64_t offset, left;
	assert_int_equal(elf_file_read_section(&f, text, &code), 0);
	assert_int_equal(code.n, text->sh_size);
	assert_true(elf_file_offset(&f, text->sh_addr, &offset, &left));
	assert_int_equal(offset, text->sh_offset);
	assert_int_equal(elf_file_read(&f, offset, code.n, &again), 0);
	assert_memory_equal(code.p, again.p, code.n);
	bytes_deinit(&code);
	bytes_deinit(&again);

	const Elf64_Shdr *bss = elf_file_section(&f, ".bss");
	assert_int_equal(elf_file_read_section(&f, bss, &code), -ENOENT);
	assert_int_equal(elf_file_read(&f, f.size, 1, &code), -EBADMSG);
	assert_int_equal(elf_file_read(&f, 1, UINT64_MAX, &code), -EBADMSG);
	assert_int_equal(elf_file_read(&f, UINT64_MAX, 2, &code), -EBADMSG);
	assert_false(elf_file_offset(&f, UINT64_MAX, &offset, &left));
	elf_file_close(&f);
	close(fd);
}

/* A file may claim, and even have, gigabytes; holes cost nothing to make. */
static void test_holes(void **state)
{
	(void)state;
	shell("cp a sparse && truncate -s 100G sparse");
	int fd = open(in_workshop("sparse"), O_RDONLY);
	struct elf_file f;
	struct bytes b;
	assert_int_equal(elf_file_open(&f, fd, "sparse", NULL), 0);
	assert_int_equal(elf_file_read(&f, 0, ELF_SECTION_MAX + 1, &b), -EFBIG);
	for (size_t i = 0; i < f.nsegments; i++) {
		if (f.segments[i].p_type == PT_NOTE)
			f.segments[i].p_type = PT_NULL;
		else if (f.segments[i].p_flags & PF_X)
			f.segments[i].p_filesz = f.size - f.segments[i].p_offset;
	}
	f.header.e_shnum = 0;
	struct image_id id;
	assert_int_equal(elf_file_identify(&f, &id), 0); /* hashes a bounded part */
	assert_true(id.is_hash);
	elf_file_close(&f);
	close(fd);
}

static void test_notes(void **state)
{
	(void)state;
	static const uint8_t good[] = {
		4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xab, 0xcd, 0xef, 0};
	struct image_id id;
	assert_true(notes_build_id(good, sizeof good, 4, &id));
	assert_int_equal(id.size, 3);
	assert_int_equal(id.bytes[2], 0xef);
	assert_true(notes_build_id(good, sizeof good - 1, 4, &id)); /* padding may be missing */
	for (size_t n = 0; n < sizeof good - 1; n++)
		assert_false(notes_build_id(good, n, 4, &id));
	uint8_t bad[sizeof good];
	memcpy(bad, good, sizeof good);
	bad[5] = 0xff; /* a descriptor of 64 KB */
	assert_false(notes_build_id(bad, sizeof bad, 4, &id));
	memcpy(bad, good, sizeof good);
	bad[4] = 0; /* an empty one */
	assert_false(notes_build_id(bad, sizeof bad, 4, &id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_notes),
	};
	return cmocka_run_group_tests(tests, build, close_workshop);
}
