#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "isa/decode.h"

enum { AT = 0x1000 };

static const struct {
	const char *bytes;
	uint8_t length;
	enum insn_kind kind;
	uint64_t target, memory;
} cases[] = {
	{"90", 1, INSN_PLAIN, 0, 0}, {"48 89 e5 cc", 3, INSN_PLAIN, 0, 0},
	{"eb fe", 2, INSN_JUMP, AT, 0}, {"e9 00 01 00 00", 5, INSN_JUMP, AT + 0x105, 0},
	{"75 10", 2, INSN_BRANCH, AT + 0x12, 0}, {"0f 84 00 00 00 00", 6, INSN_BRANCH, AT + 6, 0},
	{"e2 00", 2, INSN_BRANCH, AT + 2, 0},             /* loop */
	{"e3 02", 2, INSN_BRANCH, AT + 4, 0},             /* jrcxz */
	{"c7 f8 00 00 00 00", 6, INSN_BRANCH, AT + 6, 0}, /* xbegin */
	{"c6 f8 00", 3, INSN_PLAIN, 0, 0},                /* xabort */
	{"0f 01 d5", 3, INSN_PLAIN, 0, 0},                /* xend */
	{"e8 fb ff ff ff", 5, INSN_CALL, AT, 0},
	{"f2 e8 fa ff ff ff", 6, INSN_CALL, AT, 0}, /* bnd call */
	{"ff e0", 2, INSN_JUMP_INDIRECT, 0, 0},
	{"3e ff e0", 3, INSN_JUMP_INDIRECT, 0, 0}, /* notrack */
	{"ff 25 e2 2f 00 00", 6, INSN_JUMP_INDIRECT, 0, AT + 6 + 0x2fe2},
	{"ff 28", 2, INSN_JUMP_INDIRECT, 0, 0}, /* ljmp */
	{"ff d0", 2, INSN_CALL_INDIRECT, 0, 0}, {"ff 15 fa ff ff ff", 6, INSN_CALL_INDIRECT, 0, AT},
	{"ff 18", 2, INSN_CALL_INDIRECT, 0, 0}, /* lcall */
	{"c3", 1, INSN_RETURN, 0, 0}, {"f3 c3", 2, INSN_RETURN, 0, 0},
	{"c2 08 00", 3, INSN_RETURN, 0, 0}, {"cb", 1, INSN_RETURN, 0, 0},
	{"48 cf", 2, INSN_RETURN, 0, 0},                                    /* iretq */
	{"48 0f 07", 3, INSN_RETURN, 0, 0},                                 /* sysretq */
	{"0f 05", 2, INSN_SYSCALL, 0, 0}, {"0f 34", 2, INSN_SYSCALL, 0, 0}, /* sysenter */
	{"cd 80", 2, INSN_SYSCALL, 0, 0}, {"0f 0b", 2, INSN_TRAP, 0, 0}, {"f4", 1, INSN_TRAP, 0, 0},
	{"cc", 1, INSN_TRAP, 0, 0}, {"f1", 1, INSN_TRAP, 0, 0}, /* int1 */
	{"48 8d 05 00 01 00 00", 7, INSN_PLAIN, 0, AT + 0x107},
	{"c5 f8 10 05 00 01 00 00", 8, INSN_PLAIN, 0, AT + 0x108},        /* VEX */
	{"62 f1 7c 48 10 05 00 01 00 00", 10, INSN_PLAIN, 0, AT + 0x10a}, /* EVEX */
	{"83 3d 00 01 00 00 07", 7, INSN_PLAIN, 0, AT + 0x107}, /* an immediate behind it */
	{"67 8b 05 00 00 00 f0", 7, INSN_PLAIN, 0, 0xf0001007}, /* eip wraps at 32 bits */
	{"8b 45 00", 3, INSN_PLAIN, 0, 0},                      /* rbp, not rip */
	{"8b 04 25 00 01 00 00", 7, INSN_PLAIN, 0, 0},          /* absolute */
	{"0f 20 05", 3, INSN_PLAIN, 0, 0}, /* mov cr0: the mod field means nothing */
};

static size_t from_hex(const char *hex, uint8_t *bytes)
{
	size_t n = 0;
	for (char *end; *hex; hex = end)
		bytes[n++] = (uint8_t)strtoul(hex, &end, 16);
	return n;
}

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint8_t bytes[16];
		size_t n = from_hex(cases[i].bytes, bytes);
		struct insn insn;
		assert_int_equal(isa_decode(bytes, n, AT, &insn), 0);
		assert_int_equal(insn.address, AT);
		assert_int_equal(insn.length, cases[i].length);
		assert_int_equal(insn.kind, cases[i].kind);
		assert_int_equal(insn.target, cases[i].target);
		assert_int_equal(insn.memory, cases[i].memory);
	}
}

/* Every proper prefix of an instruction is cut off, and *out keeps what it had. */
static void test_cut_off(void **state)
{
	(void)state;
	uint8_t bytes[16];
	size_t n = from_hex("62 f1 7c 48 10 05 00 01 00 00", bytes);
	for (size_t i = 0; i < n; i++) {
		struct insn insn = {.address = 77};
		uint8_t *exact = malloc(i ? i : 1); /* ASan watches its end */
		for (size_t k = 0; k < i; k++)
			exact[k] = bytes[k];
		assert_int_equal(isa_decode(exact, i, AT, &insn), -EBADMSG);
		assert_int_equal(insn.address, 77);
		free(exact);
	}
}

static void test_bad(void **state)
{
	(void)state;
	static const char *const bad[] = {"06", "0e", "62 00 00 00 00 00", "f0 90", "d6",
		"66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		uint8_t bytes[16];
		struct insn insn;
		size_t n = from_hex(bad[i], bytes);
		assert_int_equal(isa_decode(bytes, n, AT, &insn), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_bad),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
