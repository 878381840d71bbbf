/*
 * Snippets: golden code for known places; random snippets at random places, run by the machine and
 * compared with what their statements mean.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "edit/snippet.h"
#include "isa/decode.h"
#include "isa/form.h"

#define NO_LIVE   0u
#define LIVE_REGS ((uint32_t)REGS_ALL)
#define ALL_FLAGS LIVE_FLAGS(FORM_FLAGS)
#define NOWHERE                                                          \
	{                                                                \
		[0 ... SNIPPET_VARIABLES - 1] = { REG_NONE, REG_RSP, 0 } \
	}

static struct snippet_code code;

static struct snippet *made(const char *text)
{
	struct snippet *s = NULL;
	struct err e = {0};

	if (snippet_create(text, &s, &e))
		fail_msg("%s", e.text);
	return s;
}

/* ---- golden code ---- */

/* Addresses of the program are 0x1000 and on, the code is at 0. */
static bool fixed;

static const char *lowered(const char *text, uint32_t live, unsigned red_zone)
{
	static char out[1024];
	const uint64_t arguments[8] = {0x1000, 0x2000, 3, 4};
	struct snippet_place place = {
		.live = live, .red_zone = (uint8_t)red_zone, .fixed = fixed, .variable = NOWHERE};
	struct snippet *s = made(text);
	char line[96];
	size_t n = 0;

	assert_int_equal(snippet_lower(s, arguments, &place, &code), 0);
	for (size_t i = 0; i < code.fixups.n; i++) {
		uint32_t by = (uint32_t)(code.fixups.p[i].target - code.fixups.p[i].end);
		memcpy(code.bytes.p + code.fixups.p[i].offset, &by, 4);
	}
	out[0] = 0;
	for (size_t at = 0; at < code.bytes.n; at += n) {
		n = isa_text(code.bytes.p + at, code.bytes.n - at, at, ISA_INTEL, NULL, NULL, line,
			sizeof line);
		strcat(strcat(out, at ? "; " : ""), line);
	}
	snippet_destroy(s);
	return out;
}

/* Without the comments of rip-relative operands. */
static void expect(const char *text, uint32_t live, unsigned red_zone, const char *expected)
{
	const char *got = lowered(text, live, red_zone);
	char plain[1024];
	size_t n = 0;

	for (const char *p = got; *p;) {
		if (!strncmp(p, "        # ", 10)) {
			p += strcspn(p, ";");
		} else {
			plain[n++] = *p;
			p += *p == ' ' && p[1] == ' ' ? strspn(p, " ") : 1;
		}
	}
	plain[n] = 0;
	assert_string_equal(plain, expected);
}

static void test_counters(void **state)
{
	(void)state;
	expect("[a0] += 1", NO_LIVE, 128, "inc QWORD PTR [rip+0xff9]");
	expect("[a0] += 1", LIVE_ALL & ~(1u << 8), 0,
		"mov r8,QWORD PTR [rip+0xff9]; lea r8,[r8+0x1]; mov QWORD PTR [rip+0xfee],r8");
	expect("[a0] += 1", LIVE_REGS | LIVE_FLAGS(FORM_CF), 128, "inc QWORD PTR [rip+0xff9]");
	expect("[a0] += a2", LIVE_REGS, 128, "add QWORD PTR [rip+0xff8],0x3");
	expect("[a0] += 1", LIVE_ALL, 120,
		"mov QWORD PTR [rsp-0x80],rcx; mov rcx,QWORD PTR [rip+0xff4]; lea rcx,[rcx+0x1]; "
		"mov QWORD PTR [rip+0xfe9],rcx; mov rcx,QWORD PTR [rsp-0x80]");
	expect("t0 = tls[a2]; [t0 + a3] += 1", NO_LIVE, 0,
		"mov rcx,QWORD PTR fs:0x3; add QWORD PTR [rcx+0x4],0x1");
	expect("t0 = tls[a2]; [t0 + a3] += 1", LIVE_FLAGS(FORM_CF), 0,
		"mov rcx,QWORD PTR fs:0x3; inc QWORD PTR [rcx+0x4]");
	expect("atomic [a0] += 1", LIVE_REGS, 128, "lock inc QWORD PTR [rip+0xff8]");
	expect("atomic [a0] += 1", LIVE_ALL & ~(1u << REG_RDX), 128,
		"mov rdx,rax; lahf; seto al; lock inc QWORD PTR [rip+0xff1]; add al,0x7f; sahf; "
		"mov rax,rdx");
}

/* Where a file cannot be anywhere else its addresses are numbers. */
static void test_fixed(void **state)
{
	(void)state;
	fixed = true;
	expect("[a0] += 1", NO_LIVE, 0, "add QWORD PTR ds:0x1000,0x1");
	assert_int_equal(code.fixups.n, 0);
	expect("[a0] += 1", LIVE_REGS | LIVE_FLAGS(FORM_CF), 0, "inc QWORD PTR ds:0x1000");
	expect("t0 = tls[a2]; [a0 + t0*8] -= 1", NO_LIVE, 0,
		"mov rcx,QWORD PTR fs:0x3; dec QWORD PTR [rcx*8+0x1000]");
	expect("v0 = &[a0 + 8]", LIVE_ALL, 0, "mov QWORD PTR [rsp],0x1008");
	expect("t0 = &[a0]; [t0] += 1", NO_LIVE, 0, "mov ecx,0x1000; add QWORD PTR [rcx],0x1");
	fixed = false;
	expect("v0 = &[a0]", LIVE_ALL & ~(1u << REG_RCX), 0,
		"lea rcx,[rip+0xff9]; mov QWORD PTR [rsp],rcx");
}

static void test_branches(void **state)
{
	(void)state;
	expect("[a0] -= 1; if [a0] < 0 goto a1", NO_LIVE, 0, "dec QWORD PTR [rip+0xff9]; js 2000");
	assert_int_equal(code.fixups.n, 2);
	assert_true(code.fixups.p[1].jumps && !code.fixups.p[0].jumps);
	expect("t0 = [a0]; if t0 == a2 goto same; [a0] = a3; same:", NO_LIVE, 0,
		"mov rcx,QWORD PTR [rip+0xff9]; cmp rcx,0x3; je 1c; "
		"mov QWORD PTR [rip+0xfe4],0x4");
	expect("if [a0] > 5 goto a1", LIVE_REGS | LIVE_FLAGS(FORM_ZF), 0,
		"mov QWORD PTR [rsp-0x8],rax; lahf; cmp QWORD PTR [rip+0xff2],0x5; jg 1f; sahf; "
		"mov rax,QWORD PTR [rsp-0x8]; jmp 2a; sahf; mov rax,QWORD PTR [rsp-0x8]; jmp 2000");
}

/* Behind the way on; jumps to it and back are left to whom places it. */
static void test_apart(void **state)
{
	(void)state;
	expect("t0 = tls[a2]; if t0 == 0 goto no; on: [t0 + a3] += 1; apart; no: t0 = 5; goto on",
		NO_LIVE, 0,
		"mov rcx,QWORD PTR fs:0x3; test rcx,rcx; je 17; add QWORD PTR [rcx+0x4],0x1; "
		"mov ecx,0x5; jmp 12");
	assert_int_equal(code.apart, 0x17);
	assert_int_equal(code.fixups.n, 2);
	assert_true(code.fixups.p[0].across && code.fixups.p[1].across);
	expect("[a0] += 1", NO_LIVE, 0, "inc QWORD PTR [rip+0xff9]");
	assert_int_equal(code.apart, code.bytes.n);
}

/* Where the red zone is full the stack moves, and that is told. */
static void test_shifts(void **state)
{
	(void)state;
	expect("[a0] += 1", LIVE_ALL, 128,
		"lea rsp,[rsp-0x88]; mov QWORD PTR [rsp],rcx; mov rcx,QWORD PTR [rip+0xfed]; "
		"lea rcx,[rcx+0x1]; mov QWORD PTR [rip+0xfe2],rcx; mov rcx,QWORD PTR [rsp]; "
		"lea rsp,[rsp+0x88]");
	assert_int_equal(code.shifts.n, 2);
	assert_int_equal(code.shifts.p[0].offset, 8);
	assert_int_equal(code.shifts.p[0].pushed, 0x88);
	assert_int_equal(code.shifts.p[1].offset, code.bytes.n);
	assert_int_equal(code.shifts.p[1].pushed, 0);
}

static void test_refused(void **state)
{
	static const char *const texts[] = {"a0 = 1", "[a0] + 1", "t9 = 1", "[1] = 1",
		"[a0] = [a1]", "t0 = 1 t1", "if t0 = 1 goto a0", "goto there", "back: goto back",
		"[t0 + t1*3] = 1", "[t0 + t1 + t2] = 1", "atomic t0 += 1", "[a0 = 1", "t0 = a8",
		"if t0 == 1", "[a0] += 1 x", "apart; t0 = 1", "apart; goto a0; apart; goto a0",
		"apart; on: goto on"};
	struct snippet *s = NULL;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		e.text[0] = 0;
		if (snippet_create(texts[i], &s, &e) != -EINVAL)
			fail_msg("taken: %s", texts[i]);
		assert_true(strlen(e.text) > 10);
	}
	const uint64_t far[] = {1ull << 32};
	struct snippet_place place = {.variable = NOWHERE};
	s = made("t0 = 1; [t0 + a0] = 2");
	assert_int_equal(snippet_arguments(s), 1);
	assert_int_equal(snippet_lower(s, far, &place, &code), -ERANGE);
	snippet_destroy(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_branches),
		cmocka_unit_test(test_apart),
		cmocka_unit_test(test_shifts),
		cmocka_unit_test(test_refused),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);
	snippet_code_deinit(&code);
	return r;
}
