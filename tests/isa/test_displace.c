#include "isa/displace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "isa/decode.h"
#include "isa/form.h"

static const struct {
	const char *code;
	size_t n;
	int64_t by;
	const char *before, *after;
} cases[] = {
	{"\x48\x8b\x04\x24", 4, 256, "mov    (%rsp),%rax", "mov    0x100(%rsp),%rax"},
	{"\x48\x8b\x44\x24\x10", 5, 32, "mov    0x10(%rsp),%rax", "mov    0x30(%rsp),%rax"},
	{"\xc7\x45\xf8\x05\x00\x00\x00", 7, -48, "movl   $0x5,-0x8(%rbp)",
		"movl   $0x5,-0x38(%rbp)"},
	{"\x48\x8d\xac\x24\x00\x01\x00\x00", 8, -16, "lea    0x100(%rsp),%rbp",
		"lea    0xf0(%rsp),%rbp"},
	{"\xff\x74\x24\x08", 4, 16, "push   0x8(%rsp)", "push   0x18(%rsp)"},
	{"\x0f\x29\x44\x24\x20", 5, 64, "movaps %xmm0,0x20(%rsp)", "movaps %xmm0,0x60(%rsp)"},
	{"\xc5\xfd\x7f\x44\x24\xe0", 6, 64, "vmovdqa %ymm0,-0x20(%rsp)",
		"vmovdqa %ymm0,0x20(%rsp)"},
	/* whose displacement of 8 bits counts vectors */
	{"\x62\xf1\xfd\x48\x7f\x44\x24\x01", 8, 16, "vmovdqa64 %zmm0,0x40(%rsp)",
		"vmovdqa64 %zmm0,0x50(%rsp)"},
};

static void expect_text(const void *code, size_t n, const char *text)
{
	char got[128];

	assert_int_equal(isa_text(code, n, 0, ISA_ATT, NULL, NULL, got, sizeof got), n);
	assert_string_equal(got, text);
}

static void test_displace(void **state)
{
	uint8_t out[ISA_DISPLACED_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		expect_text(cases[i].code, cases[i].n, cases[i].before);
		size_t n = isa_displace(cases[i].code, cases[i].n, cases[i].by, out);
		expect_text(out, n, cases[i].after);
	}
	assert_int_equal(isa_displace("\x48\x89\xc3", 3, 16, out), 0);         /* no memory */
	assert_int_equal(isa_displace("\x48\x8b\x05\0\0\0\0", 7, 16, out), 0); /* rip-relative */
	assert_int_equal(isa_displace("\x48\x8b\x04\x24", 4, INT64_C(1) << 32, out), 0);
	assert_int_equal(isa_displace("\x06", 1, 16, out), 0);
}

static void test_memory(void **state)
{
	struct isa_memory m;

	(void)state;
	assert_int_equal(isa_memory("\x0f\x29\x44\x24\x20", 5, &m), 0);
	assert_true(m.present);
	assert_int_equal(m.base, REG_RSP);
	assert_int_equal(m.index, REG_NONE);
	assert_int_equal(m.displacement, 0x20);
	assert_int_equal(m.operands, 0);
	assert_int_equal(isa_memory("\x48\x89\xe5", 3, &m), 0); /* mov %rsp, %rbp */
	assert_false(m.present);
	assert_int_equal(m.operands, 1 << REG_RSP | 1 << REG_RBP);
	assert_int_equal(isa_memory("\x55", 1, &m), 0); /* push %rbp */
	assert_false(m.present);
	assert_int_equal(m.operands, 1 << REG_RBP);
	assert_int_equal(isa_memory("\x64\x48\x8b\x45\x10", 5, &m), 0);
	assert_true(m.other_space);
	assert_true(isa_memory("\x06", 1, &m) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_displace),
		cmocka_unit_test(test_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
