/* The rows put together must say what the section says, on the C library that is installed. */
#include "image/frames.h"

#include "image/cfi.h"
#include "image/image.h"
#include "image/workshop.h"

#include <fcntl.h>

static const char *libc_path(void)
{
	static const char *const paths[] = {
		"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"};

	for (size_t i = 0; i < 3; i++)
		if (access(paths[i], R_OK) == 0)
			return paths[i];
	return "/bin/sh";
}

static void check_save(
	const struct frames *f, const struct frame_save *s, const struct cfi_rule *rule)
{
	switch (rule->kind) {
	case CFI_OFFSET:
		assert_int_equal(s->how, FRAME_SAVED);
		assert_int_equal(s->value, rule->value);
		break;
	case CFI_EXPRESSION:
	case CFI_VAL_EXPRESSION:
		assert_int_equal(s->size, rule->size);
		assert_memory_equal(
			frames_expression(f, (uint32_t)s->value), rule->expression, rule->size);
		break;
	case CFI_UNDEFINED:
		assert_int_equal(s->how, FRAME_LOST);
		break;
	default:
		assert_int_equal(s->value, rule->value);
	}
}

static void check_row(const struct frames *f, const struct eh_cie *cie, const struct cfi *c)
{
	const struct frame_rule *r = frames_at(f, c->pc);
	unsigned saves = 0;

	assert_non_null(r);
	assert_ptr_equal(frames_at(f, c->until - 1), r);
	assert_int_equal(r->signal, cie->signal);
	if (c->row.cfa.kind == CFI_REGISTER) {
		assert_int_equal(r->base, c->row.cfa.value);
		assert_int_equal(r->offset, c->row.cfa_offset);
	} else {
		assert_int_equal(r->base, FRAME_BY_EXPRESSION);
	}
	for (unsigned i = 0; i < FRAME_REGISTERS; i++) {
		const struct cfi_rule *rule = &c->row.registers[i];

		if (rule->kind == CFI_UNSPECIFIED || rule->kind == CFI_SAME)
			continue;
		assert_int_equal(r->saves[saves].reg, i);
		check_save(f, &r->saves[saves++], rule);
	}
	assert_int_equal(r->nsaves, saves);
}

static void test_all_rows(void **state)
{
	struct image *im;
	struct frames *f;
	struct elf_file file;
	struct eh_section s;
	struct eh_reader reader;
	struct eh_fde fde;
	int fd = open(libc_path(), O_RDONLY | O_CLOEXEC);
	size_t rows = 0;

	(void)state;
	assert_int_equal(image_open_path(libc_path(), &im, NULL), 0);
	assert_int_equal(frames_open(im, &f), 0);
	assert_int_equal(elf_file_open(&file, fd, "libc", NULL), 0);
	assert_int_equal(eh_section_read(&file, &s), 0);
	eh_reader_init(&reader, s.bytes.p, s.bytes.n, s.vaddr, s.terminated);
	while (eh_reader_next(&reader, &fde)) {
		struct cfi_row initial;
		struct cfi c;

		cfi_initial(&reader.cie, &initial);
		cfi_init(&c, &reader.cie, &initial, &fde);
		while (cfi_next(&c)) {
			check_row(f, &reader.cie, &c);
			rows++;
		}
		cfi_deinit(&c);
	}
	assert_true(rows > 1000 && frames_rows(f) > 1000);
	assert_true(frames_rules(f) < rows / 4);
	assert_null(frames_at(f, 0));
	assert_null(frames_at(f, UINT64_MAX));
	bytes_deinit(&s.bytes);
	elf_file_close(&file);
	close(fd);
	frames_destroy(f);
	image_destroy(im);
}

static void test_nothing(void **state)
{
	struct frames *f;

	(void)state;
	frames_create("", 0, 0x1000, false, &f);
	assert_int_equal(frames_rows(f), 0);
	assert_null(frames_at(f, 0x1000));
	frames_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_rows),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
