/*
 * What instructions read, write and compute.
 */
#include "isa/form.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct form form(const char *code, size_t n)
{
	struct form f;
	assert_int_equal(isa_form(code, n, 0x1000, &f), 0);
	assert_int_equal(f.length, n);
	return f;
}
#define FORM(bytes) form(bytes, sizeof bytes - 1)

enum { RAX = 1, RCX = 2, RDX = 4, RBX = 8, RSP = 16, RSI = 64, RDI = 128 };

static void test_forms(void **state)
{
	(void)state;
	struct form f = FORM("\x0f\xb6\x57\x03"); /* movzbl 3(%rdi), %edx */
	assert_int_equal(f.op, FORM_MOVE);
	assert_int_equal(f.to.reg, REG_RDX);
	assert_int_equal(f.to.size, 4);
	assert_int_equal(f.from.type, FORM_MEMORY);
	assert_int_equal(f.from.size, 1);
	assert_int_equal(f.base, REG_RDI);
	assert_int_equal(f.index, REG_NONE);
	assert_int_equal(f.displacement, 3);
	assert_true(f.loads && !f.stores);

	f = FORM("\x48\x63\x04\x82"); /* movslq (%rdx,%rax,4), %rax */
	assert_int_equal(f.op, FORM_MOVE_SIGNED);
	assert_int_equal(f.base, REG_RDX);
	assert_int_equal(f.index, REG_RAX);
	assert_int_equal(f.scale, 4);
	assert_int_equal(f.reads, RAX | RDX);
	assert_int_equal(f.kills, 0); /* it is read, too */

	f = FORM("\x48\x8d\x15\x10\x00\x00\x00"); /* lea 0x10(%rip), %rdx */
	assert_int_equal(f.op, FORM_ADDRESS);
	assert_int_equal(f.displacement, 0x1017);
	assert_int_equal(f.base, REG_NONE);
	assert_int_equal(f.kills, RDX);
	assert_false(f.loads);

	f = FORM("\x83\xf8\xff"); /* cmp $-1, %eax */
	assert_int_equal(f.op, FORM_COMPARE);
	assert_int_equal(f.immediate, -1);
	assert_int_equal(f.writes, 0);
	assert_int_equal(f.flags_killed, FORM_FLAGS);

	f = FORM("\xff\x24\xc5\x00\x20\x40\x00"); /* jmp *0x402000(,%rax,8) */
	assert_int_equal(f.kind, INSN_JUMP_INDIRECT);
	assert_int_equal(f.op, FORM_TRANSFER);
	assert_int_equal(f.from.type, FORM_MEMORY);
	assert_int_equal(f.displacement, 0x402000);

	f = FORM("\x0f\x87\x00\x00\x00\x00"); /* ja */
	assert_int_equal(f.condition, 7);
	assert_int_equal(f.flags_read, FORM_CF | FORM_ZF);
	assert_int_equal(FORM("\xe3\x00").condition, FORM_NO_CONDITION); /* jrcxz */

	f = FORM("\x88\xe0"); /* mov %ah, %al */
	assert_int_equal(f.from.type, FORM_HIGH);
	assert_int_equal(f.from.reg, REG_RAX);
	assert_int_equal(FORM("\x48\x98").op, FORM_MOVE_SIGNED);           /* cdqe */
	assert_int_equal(FORM("\xff\xc8").immediate, -1);                  /* dec %eax */
	assert_true(FORM("\x64\x8b\x04\x25\x28\x00\x00\x00").other_space); /* mov %fs:0x28 */
	assert_true(FORM("\x67\x8b\x00").other_space);                     /* mov (%eax), %eax */
}

static void test_effects(void **state)
{
	(void)state;
	struct form f = FORM("\x31\xc0"); /* xor %eax, %eax */
	assert_int_equal(f.reads, 0);
	assert_int_equal(f.kills, RAX);
	f = FORM("\x30\xc0"); /* xor %al, %al leaves the rest */
	assert_int_equal(f.reads, RAX);
	assert_int_equal(f.kills, 0);
	f = FORM("\x0f\x44\xc1"); /* cmove %ecx, %eax */
	assert_int_equal(f.kills, 0);
	assert_int_equal(f.writes, RAX);
	assert_int_equal(f.flags_read, FORM_ZF);
	f = FORM("\xd3\xe0"); /* shl %cl, %eax: by 0 it leaves the flags */
	assert_int_equal(f.flags_killed, 0);
	assert_true(f.flags_written & FORM_CF);
	assert_true(f.reads & RCX);
	f = FORM("\xf3\x48\xab"); /* rep stos */
	assert_int_equal(f.reads, RAX | RCX | RDI);
	assert_int_equal(f.kills, 0);
	assert_true(f.stores);
	f = FORM("\xf7\xf1"); /* div %ecx */
	assert_int_equal(f.reads, RAX | RCX | RDX);
	assert_int_equal(f.writes, RAX | RDX);
	f = FORM("\x50"); /* push %rax */
	assert_int_equal(f.op, FORM_PUSH);
	assert_true(f.stores);
	assert_true(f.reads & RSP && f.writes & RSP);
	f = FORM("\x0f\xc6\xc0\x00"); /* shufps: no general register */
	assert_int_equal(f.reads | f.writes, 0);
	assert_int_equal(f.op, FORM_OTHER);
}

static void test_bad(void **state)
{
	(void)state;
	struct form f;
	assert_int_equal(isa_form("\x06", 1, 0, &f), -EBADMSG);
	assert_int_equal(isa_form("\x0f", 1, 0, &f), -EBADMSG);
	assert_int_equal(isa_form("", 0, 0, &f), -EBADMSG);
}

/* Compilers fill gaps with these. */
static void test_fillers(void **state)
{
	(void)state;
	static const char *const fillers[] = {"\x90", "\x66\x90", "\x0f\x1f\x00",
		"\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", "\xcc"};
	static const size_t sizes[] = {1, 2, 3, 10, 1};
	struct insn insn;
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(isa_decode(fillers[i], sizes[i], 0, &insn), 0);
		assert_true(insn.filler);
	}
	assert_int_equal(isa_decode("\x49\x90", 2, 0, &insn), 0); /* xchg %r8, %rax */
	assert_false(insn.filler);
	assert_int_equal(isa_decode("\xc3", 1, 0, &insn), 0);
	assert_false(insn.filler);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_effects),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_fillers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
