/*
 * Live registers and flags of small functions.
 */
#include "base/buf.h"
#include "flow/assembled.h"
#include "flow/liveness.h"

#define FUNCTION(name, body)                                                                     \
	".globl " name "\n.type " name ", @function\n" name ":\n" body ".size " name ", .-" name \
	"\n"

enum { RAX = 1 << 0, RCX = 1 << 1, RDX = 1 << 2, RBX = 1 << 3, RSI = 1 << 6, RDI = 1 << 7 };

static struct flow *flow;
static struct buf code;

static struct liveness *live_of(const char *name)
{
	const struct procedure *p = find_procedure(name);
	struct liveness *l;

	flow = flow_of(name);
	code.n = 0;
	assert_int_equal(image_code(built, &p->ranges[0], &code), 0);
	struct flow_source source = {
		.ranges = p->ranges, .nranges = p->nranges, .entry = p->start, .code = code.p};
	liveness_create(flow, &source, &l);
	return l;
}

static void done(struct liveness *l)
{
	liveness_destroy(l);
	flow_destroy(flow);
}

static void test_straight(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("f", "mov %edi, %eax\n add %esi, %eax\n mov $5, %ecx\n"
					 " setc %dl\n ret\n"));
	struct liveness *l = live_of("f");
	assert_int_equal(
		liveness_written(l), RAX | RCX | RDX | 1 << REG_RSP | LIVE_FLAGS(FORM_FLAGS));
	uint32_t in = liveness_in(l, 0);
	assert_true(in & RDI && in & RSI && in & RBX);
	assert_false(in & (RAX | RCX));
	assert_true(in & RDX); /* setc leaves the rest of it */
	assert_false(in & LIVE_FLAGS(FORM_FLAGS));
	assert_true(liveness_before(l, 1) & RAX);
	assert_int_equal(liveness_before(l, 2) & LIVE_FLAGS(FORM_FLAGS), LIVE_FLAGS(FORM_CF));
	assert_false(liveness_before(l, 2) & RCX);
	assert_false(liveness_before(l, 3) & RCX);
	assert_true(liveness_before(l, 4) & (1 << 8)); /* r8: a caller may keep it there */
	done(l);
}

static void test_loop(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("f",
		"xor %eax, %eax\n mov $9, %ecx\n"
		"1: add %esi, %eax\n dec %ecx\n jne 1b\n xor %ecx, %ecx\n ret\n"));
	struct liveness *l = live_of("f");
	assert_false(liveness_in(l, 0) & (RAX | RCX));
	assert_true(liveness_in(l, 1) & RCX && liveness_in(l, 1) & RAX && liveness_in(l, 1) & RSI);
	assert_false(liveness_in(l, 2) & RCX);
	assert_true(liveness_in(l, 2) & RAX);
	done(l);
}

static void test_calls(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("f",
		"mov $1, %r11d\n mov $2, %r10d\n call g\n mov %r11d, %eax\n ret\n") FUNCTION("g",
		"ret\n") FUNCTION("h", "mov $1, %r11d\n call *%rax\n mov %r11d, %eax\n ret\n"));
	struct liveness *l = live_of("f");
	assert_true(liveness_before(l, 2) & 1 << 11);
	assert_true(liveness_before(l, 2) & RDI && liveness_before(l, 2) & 1 << 10);
	done(l);
	l = live_of("h");
	assert_false(liveness_before(l, 1) & 1 << 11);
	done(l);
}

/* What may be entered unseen may be where a call ends up. */
static void test_unseen(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("f", "mov $1, %ebx\n mov $2, %ecx\n call g\n xor %ebx, %ebx\n"
					 " ret\n mov %ebx, %eax\n xor %ebx, %ebx\n ret\n")
			FUNCTION("g", "ret\n") FUNCTION("h",
				"push %rdi\n xor %eax, %eax\n xor %ecx, %ecx\n jmp *(%rdi)\n"));
	struct liveness *l = live_of("f");
	assert_true(liveness_before(l, 2) & RBX);
	done(l);
	l = live_of("h");
	assert_int_equal(liveness_out(l, 0), LIVE_ALL);
	assert_false(liveness_in(l, 0) & (RAX | RCX));
	done(l);
}

static unsigned red_zone_of(const char *body)
{
	char text[1024];
	struct liveness *l;

	snprintf(text, sizeof text, ".text\n.globl f\n.type f, @function\nf:\n%s.size f, .-f\n",
		body);
	assemble(text);
	l = live_of("f");
	unsigned below = liveness_red_zone(l);
	done(l);
	return below;
}

static void test_red_zone(void **state)
{
	(void)state;
	assert_int_equal(red_zone_of("mov %edi, %eax\n ret\n"), 0);
	assert_int_equal(red_zone_of("mov %edi, -4(%rsp)\n movaps %xmm0, -24(%rsp)\n ret\n"), 24);
	assert_int_equal(red_zone_of("push %rbx\n mov %edi, -4(%rsp)\n pop %rbx\n ret\n"), 128);
	assert_int_equal(red_zone_of("lea -24(%rsp), %rax\n mov %rax, (%rdi)\n ret\n"), 128);
	assert_int_equal(red_zone_of("mov -120(%rsp,%rax,8), %rax\n ret\n"), 128);
	assert_int_equal(red_zone_of("push %rbp\n mov %rsp, %rbp\n mov %edi, -20(%rbp)\n"
				     " pop %rbp\n ret\n"),
		128);
	assert_int_equal(red_zone_of("push %rbp\n mov %rsp, %rbp\n sub $32, %rsp\n"
				     " mov %edi, -20(%rbp)\n call *%rax\n leave\n ret\n"),
		0);
	assert_int_equal(red_zone_of("sub $40, %rsp\n lea 8(%rsp), %rdi\n call *%rax\n"
				     " add $40, %rsp\n ret\n"),
		0);
}

/* A TLS descriptor keeps what other callees do not. */
static void test_descriptors(void **state)
{
	(void)state;
	assemble(".text\n" FUNCTION("f", "mov $1, %r11d\n lea 1f(%rip), %rax\n call *(%rax)\n"
					 " mov %r11d, %eax\n ret\n1: .quad 0\n")
			FUNCTION("h", "mov $1, %r11d\n mov (%rdi), %rax\n call *(%rax)\n"
				      " mov %r11d, %eax\n ret\n"));
	struct liveness *l = live_of("f");
	assert_true(liveness_before(l, 2) & 1 << 11);
	done(l);
	l = live_of("h");
	assert_false(liveness_before(l, 2) & 1 << 11);
	done(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_straight),
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_unseen),
		cmocka_unit_test(test_red_zone),
		cmocka_unit_test(test_descriptors),
	};
	int r = cmocka_run_group_tests(tests, open_workshop, close_workshop);
	forget_built();
	buf_deinit(&code);
	return r;
}
