/*
 * Rows must say what the section says, on the C library that is installed, whether functions are
 * found by the linker's table or by going through the section.
 */
#include "image/frames.h"

#include "image/cfi.h"
#include "image/eh_index.h"
#include "image/image.h"
#include "image/workshop.h"

#include <errno.h>
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
	uint64_t start, end;

	assert_non_null(r);
	assert_ptr_equal(frames_around(f, c->until - 1, &start, &end), r);
	assert_true(start <= c->pc && end >= c->until);
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

/* The C library's section, its frames by the table and, of the same bytes, without. */
struct library {
	struct image *im;
	struct elf_file file;
	struct eh_section section;
	struct frames *by_table, *by_scan;
	int fd;
};

static void open_library(struct library *l)
{
	struct eh_section *s = &l->section;

	l->fd = open(libc_path(), O_RDONLY | O_CLOEXEC);
	assert_int_equal(image_open_path(libc_path(), &l->im, NULL), 0);
	assert_int_equal(frames_open(l->im, &l->by_table), 0);
	assert_int_equal(elf_file_open(&l->file, l->fd, "libc", NULL), 0);
	assert_int_equal(eh_section_read(&l->file, s), 0);
	frames_create(s->bytes.p, s->bytes.n, s->vaddr, s->terminated, &l->by_scan);
}

static void close_library(struct library *l)
{
	frames_destroy(l->by_table);
	frames_destroy(l->by_scan);
	bytes_deinit(&l->section.bytes);
	elf_file_close(&l->file);
	close(l->fd);
	image_destroy(l->im);
}

static void test_all_rows(void **state)
{
	struct library l;
	struct eh_reader reader;
	struct eh_fde fde;
	size_t rows = 0;

	(void)state;
	open_library(&l);
	eh_reader_init(&reader, l.section.bytes.p, l.section.bytes.n, l.section.vaddr,
		l.section.terminated);
	while (eh_reader_next(&reader, &fde)) {
		struct cfi_row initial;
		struct cfi c;

		cfi_initial(&reader.cie, &initial);
		cfi_init(&c, &reader.cie, &initial, &fde);
		while (cfi_next(&c)) {
			check_row(l.by_table, &reader.cie, &c);
			check_row(l.by_scan, &reader.cie, &c);
			rows++;
		}
		cfi_deinit(&c);
	}
	assert_true(rows > 1000 && frames_rows(l.by_table) > 1000);
	assert_int_equal(frames_rows(l.by_table), frames_rows(l.by_scan));
	assert_true(frames_rules(l.by_table) < rows / 4);
	assert_null(frames_at(l.by_table, 0));
	assert_null(frames_at(l.by_table, UINT64_MAX));
	close_library(&l);
}

/* The linker's table has all functions. */
static void test_table(void **state)
{
	struct library l;
	struct eh_index table, scan;
	struct eh_reader reader;

	(void)state;
	open_library(&l);
	assert_int_equal(eh_index_read(&l.file, &l.section, &table), 0);
	eh_reader_init(&reader, l.section.bytes.p, l.section.bytes.n, l.section.vaddr,
		l.section.terminated);
	eh_index_scan(&reader, &scan);
	assert_true(table.list.n > 1000 && table.list.n == scan.list.n);
	assert_int_equal(table.low, scan.low);
	for (size_t i = 0; i < scan.list.n; i++) {
		assert_int_equal(table.list.p[i].at, scan.list.p[i].at);
		assert_int_equal(eh_index_find(&scan, scan.low + scan.list.p[i].at), i);
	}
	/* Of a section that is shorter than the table says, nothing is believed. */
	l.section.bytes.n /= 2;
	assert_int_equal(eh_index_read(&l.file, &l.section, &scan), -ENOENT);
	l.section.bytes.n *= 2;
	eh_index_deinit(&table);
	eh_index_deinit(&scan);
	close_library(&l);
}

/* Who asks for one function does not wait for the others. */
static void test_only_what_is_asked_for(void **state)
{
	struct library l;
	struct eh_reader reader;
	struct eh_fde fde;

	(void)state;
	open_library(&l);
	eh_reader_init(&reader, l.section.bytes.p, l.section.bytes.n, l.section.vaddr,
		l.section.terminated);
	for (unsigned i = 0; i < 100; i++)
		assert_true(eh_reader_next(&reader, &fde));
	assert_int_equal(frames_rows(l.by_table), 0);
	assert_non_null(frames_at(l.by_table, fde.start));
	assert_in_range(frames_rows(l.by_table), 1, 500);
	close_library(&l);
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
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_only_what_is_asked_for),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
