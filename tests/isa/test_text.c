#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "isa/decode.h"

/* As objdump 2.40 prints them, symbols taken off. */
static const struct {
	uint64_t address;
	const char *bytes, *att, *intel;
} golden[] = {
#include "isa/golden.inc"
};

static size_t from_hex(const char *hex, uint8_t *bytes)
{
	size_t n = 0;
	for (char *end; *hex; hex = end)
		bytes[n++] = (uint8_t)strtoul(hex, &end, 16);
	return n;
}

static void test_golden(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
		uint8_t bytes[16];
		char text[256];
		size_t n = from_hex(golden[i].bytes, bytes);
		assert_int_equal(isa_text(bytes, n, golden[i].address, ISA_ATT, NULL, NULL, text,
					 sizeof text),
			n);
		assert_string_equal(text, golden[i].att);
		assert_int_equal(isa_text(bytes, n, golden[i].address, ISA_INTEL, NULL, NULL, text,
					 sizeof text),
			n);
		assert_string_equal(text, golden[i].intel);
	}
}

static bool name_one(void *arg, uint64_t address, char *name, size_t size)
{
	if (address != *(uint64_t *)arg)
		return false;
	snprintf(name, size, "foo+0x8");
	return true;
}

static void test_names(void **state)
{
	(void)state;
	static const uint8_t jne[] = {0x75, 0x06}, load[] = {0x48, 0x8b, 0x05, 0xe2, 0x2f, 0, 0};
	uint64_t known = 0x4338;
	char text[128];

	isa_text(jne, sizeof jne, 0x4330, ISA_ATT, name_one, &known, text, sizeof text);
	assert_string_equal(text, "jne    4338 <foo+0x8>");
	isa_text(jne, sizeof jne, 0x5330, ISA_INTEL, name_one, &known, text, sizeof text);
	assert_string_equal(text, "jne    5338");

	known = 0x1007 + 0x2fe2;
	isa_text(load, sizeof load, 0x1000, ISA_ATT, name_one, &known, text, sizeof text);
	assert_string_equal(text, "mov    0x2fe2(%rip),%rax        # 3fe9 <foo+0x8>");
	isa_text(load, sizeof load, 0x1000, ISA_INTEL, name_one, &known, text, sizeof text);
	assert_string_equal(text, "mov    rax,QWORD PTR [rip+0x2fe2]        # 3fe9 <foo+0x8>");
}

static void test_bad(void **state)
{
	(void)state;
	static const uint8_t bad[] = {0x06, 0x90}, cut[] = {0x48, 0x8b};
	char text[32];
	assert_int_equal(isa_text(bad, sizeof bad, 0, ISA_ATT, NULL, NULL, text, sizeof text), 1);
	assert_string_equal(text, "(bad)");
	assert_int_equal(isa_text(cut, sizeof cut, 0, ISA_ATT, NULL, NULL, text, sizeof text), 1);
	assert_string_equal(text, "(bad)");
	assert_int_equal(isa_text(bad, 0, 0, ISA_ATT, NULL, NULL, text, sizeof text), 0);
	assert_string_equal(text, "");
}

static void test_cut_to_size(void **state)
{
	(void)state;
	static const uint8_t load[] = {0x48, 0x8b, 0x05, 0xe2, 0x2f, 0, 0}, ret[] = {0xc3};
	const char *whole = "mov    0x2fe2(%rip),%rax        # 3fe9";
	for (size_t size = 0; size <= strlen(whole) + 1; size++) {
		char *text = malloc(size ? size : 1); /* ASan watches its end */
		assert_int_equal(
			isa_text(load, sizeof load, 0x1000, ISA_ATT, NULL, NULL, text, size), 7);
		if (size) {
			assert_int_equal(strlen(text), size - 1);
			assert_memory_equal(text, whole, size - 1);
		}
		isa_text(ret, sizeof ret, 0, ISA_ATT, NULL, NULL, text, size);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_cut_to_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
