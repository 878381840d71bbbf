#include "image/cfi.h"

#include <errno.h>

#include "image/lsda.h"
#include "image/workshop.h"

/* CFA = rsp + 8, return address at CFA - 8. */
static const uint8_t cie_code[] = {0x0c, 7, 8, 0x80 | 16, 1};

struct scene {
	struct eh_cie cie;
	struct cfi_row initial;
	struct cfi cfi;
};

static void begin(struct scene *s, const void *code, size_t n)
{
	struct eh_fde fde = {.start = 0x1000, .size = 0x100, .instructions = cursor_over(code, n)};

	*s = (struct scene){.cie = {.code_align = 1,
				    .data_align = -8,
				    .return_column = CFI_RIP,
				    .instructions = cursor_over(cie_code, sizeof cie_code)}};
	assert_true(cfi_initial(&s->cie, &s->initial));
	cfi_init(&s->cfi, &s->cie, &s->initial, &fde);
}

static void expect_row(struct scene *s, uint64_t pc, uint64_t until, int64_t reg, int64_t offset)
{
	assert_true(cfi_next(&s->cfi));
	assert_int_equal(s->cfi.pc, pc);
	assert_int_equal(s->cfi.until, until);
	assert_int_equal(s->cfi.row.cfa.kind, CFI_REGISTER);
	assert_int_equal(s->cfi.row.cfa.value, reg);
	assert_int_equal(s->cfi.row.cfa_offset, offset);
}

static void test_rows(void **state)
{
	(void)state;
	static const uint8_t code[] = {0x41, 0x0e, 16, 0x86, 2, /* push %rbp */
		0x43, 0x0d, 6,                                  /* mov %rsp, %rbp */
		0x0a, 0x02, 0x80, 0x0c, 7, 8, 0xc6,             /* pop %rbp; behind ret: */
		0x41, 0x2e, 32, 0x0b, 0x03, 0x40, 0x00, 0x13, 1};
	struct scene s;

	begin(&s, code, sizeof code);
	expect_row(&s, 0x1000, 0x1001, 7, 8);
	assert_int_equal(s.cfi.row.registers[CFI_RIP].kind, CFI_OFFSET);
	assert_int_equal(s.cfi.row.registers[CFI_RIP].value, -8);
	expect_row(&s, 0x1001, 0x1004, 7, 16);
	assert_int_equal(s.cfi.row.registers[6].value, -16);
	expect_row(&s, 0x1004, 0x1084, 6, 16);
	expect_row(&s, 0x1084, 0x1085, 7, 8);
	assert_int_equal(s.cfi.row.registers[6].kind, CFI_UNSPECIFIED);
	expect_row(&s, 0x1085, 0x10c5, 6, 16);
	assert_int_equal(s.cfi.row.registers[6].value, -16);
	assert_int_equal(s.cfi.row.args_size, 32);
	expect_row(&s, 0x10c5, 0x1100, 6, -8);
	assert_false(cfi_next(&s.cfi));
	assert_false(s.cfi.failed);
	cfi_deinit(&s.cfi);
}

/* As libgcc: an expression leaves the offset alone, for the register that comes next. */
static void test_expression(void **state)
{
	(void)state;
	static const uint8_t code[] = {0x0f, 2, 0x77, 8, 0x10, 3, 2, 0x76, 0x78, 0x41, 0x0d, 10};
	struct scene s;

	begin(&s, code, sizeof code);
	assert_true(cfi_next(&s.cfi));
	assert_int_equal(s.cfi.row.cfa.kind, CFI_VAL_EXPRESSION);
	assert_int_equal(s.cfi.row.cfa.size, 2);
	assert_memory_equal(s.cfi.row.cfa.expression, "\x77\x08", 2);
	assert_int_equal(s.cfi.row.registers[3].kind, CFI_EXPRESSION);
	expect_row(&s, 0x1001, 0x1100, 10, 8);
	cfi_deinit(&s.cfi);
}

static void test_damage(void **state)
{
	(void)state;
	static const struct {
		uint8_t code[4];
		size_t n;
	} bad[] = {
		{{0x0b}, 1},          /* nothing was remembered */
		{{0x0f, 9, 0x77}, 3}, /* an expression that is cut off */
		{{0x80 | 40, 1}, 2},  /* no such register */
		{{0x01, 0, 0, 0}, 4}, /* set_loc */
		{{0x3f}, 1},
		{{0x0e}, 1},
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct scene s;
		begin(&s, bad[i].code, bad[i].n);
		assert_false(cfi_next(&s.cfi));
		assert_true(s.cfi.failed);
		cfi_deinit(&s.cfi);
	}
}

static void test_lsda(void **state)
{
	(void)state;
	/* No LPStart; types end 15 bytes on; sites by uleb: [2, 6) to pad 16, action 1; [8, 9). */
	static const uint8_t bytes[] = {
		0xff, 0x9b, 15, 0x01, 8, 2, 4, 16, 1, 8, 1, 0, 0, 1, 0, 1, 2, 3, 4, 0, 0, 0};
	struct lsda l;
	struct lsda_site site;

	assert_int_equal(lsda_open(bytes, sizeof bytes, 0x2000, 0x1000, &l), 0);
	assert_int_equal(l.types, 0x9b);
	assert_int_equal(l.types_end, 18);
	assert_int_equal(l.actions, 13);
	assert_true(lsda_next(&l, &site));
	assert_int_equal(site.start, 0x1002);
	assert_int_equal(site.size, 4);
	assert_int_equal(site.pad, 0x1010);
	assert_int_equal(site.action, 1);
	assert_true(lsda_next(&l, &site));
	assert_int_equal(site.start, 0x1008);
	assert_int_equal(site.pad, 0);
	assert_false(lsda_next(&l, &site));
	assert_false(l.sites.failed);
	for (size_t n = 0; n < 13; n++) /* cut off */
		assert_int_equal(lsda_open(bytes, n, 0x2000, 0x1000, &l), -EBADMSG);
	assert_int_equal(lsda_open("\xff\xff\x01\x02\x80\x80", 6, 0, 0, &l), 0);
	assert_false(lsda_next(&l, &site));
	assert_true(l.sites.failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_expression),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_lsda),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
