/*
 * Liveness over calls: what compilers and authors of assembly take for granted between procedures.
 */
#include "base/mem.h"
#include "flow/assembled.h"
#include "flow/lives.h"

#define LOCAL(name, body) \
	".type " name ", @function\n" name ":\n" body ".size " name ", .-" name "\n"
#define FUNCTION(name, body) ".globl " name "\n" LOCAL(name, body)

#define REG(n) (1u << (n))
#define FLAGS  LIVE_FLAGS(FORM_FLAGS)

static struct lives *lives;
static struct lives_procedure *list;
static size_t nlist;

static void find_lives(const char *text)
{
	const struct procedure *ps;
	struct flow *f;

	assemble(text);
	nlist = image_procedures(built, &ps);
	list = xcalloc(nlist + 1, sizeof *list);
	for (size_t i = 0; i < nlist; i++) {
		list[i].procedure = &ps[i];
		if (ps[i].source != PROCEDURE_PLT && !program_flow(program, &ps[i], &f, NULL))
			list[i].flow = f;
	}
	lives_create(program, list, nlist, &lives);
}

static size_t number_of(const char *name)
{
	const struct procedure *p = find_procedure(name);

	for (size_t i = 0; i < nlist; i++)
		if (list[i].procedure->start == p->start)
			return i;
	fail();
	return 0;
}

static uint32_t before(const char *name, uint32_t insn)
{
	return liveness_before(lives_of(lives, number_of(name)), insn);
}

static void forget(void)
{
	lives_destroy(lives);
	for (size_t i = 0; i < nlist; i++)
		flow_destroy((struct flow *)list[i].flow);
	free(list);
}

/* -fipa-ra: g leaves r9 alone, so f keeps a value there; r10 is written by what g calls. */
static void test_kept(void **state)
{
	(void)state;
	find_lives(".text\n" FUNCTION("f", "mov $1, %r9d\n mov $2, %r10d\n call g\n"
					   " lea (%rax,%r9), %rax\n ret\n")
			LOCAL("g", "mov %edi, %ecx\n call h\n xor %ecx, %ecx\n mov $3, %eax\n"
				   " ret\n") LOCAL("h", "mov %ecx, %r10d\n ret\n"));
	assert_true(before("f", 2) & REG(9));
	assert_false(before("f", 2) & REG(10));
	assert_false(before("f", 0) & REG(9));
	assert_true(before("g", 2) & REG(9) && before("g", 4) & REG(9));
	assert_false(before("g", 4) & REG(10));
	assert_true(before("h", 1) & REG(9));
	assert_false(before("h", 1) & REG(8)); /* no caller has anything there */
	assert_true(lives_clobbers(lives, number_of("g")) & REG(10));
	assert_false(lives_clobbers(lives, number_of("g")) & REG(9));
	assert_true(lives_direct(lives, number_of("h")));
	assert_false(lives_direct(lives, number_of("f")));
	assert_false(before("f", 4) & REG(8)); /* nobody here calls it, so it is by the ABI */
	forget();
}

/* Only what the callee reads is needed before a call. */
static void test_arguments(void **state)
{
	(void)state;
	find_lives(".text\n" FUNCTION("f", "xor %eax, %eax\n call g\n ret\n")
			LOCAL("g", "lea (%rdi,%r11), %rdx\n jmp h\n") LOCAL(
				"h", "mov %r8, %rcx\n xor %esi, %esi\n xor %r9d, %r9d\n ret\n"));
	assert_true(before("f", 1) & REG(7) && before("f", 1) & REG(11) && before("f", 1) & REG(8));
	assert_false(before("f", 1) & (REG(6) | REG(1) | REG(9) | FLAGS));
	forget();
}

/* Hand-written: results in r8 and the carry flag, flags as an argument. */
static void test_custom(void **state)
{
	(void)state;
	find_lives(".text\n" FUNCTION("f", "add %rsi, %rdi\n call g\n adc %r8, %rdi\n ret\n")
			LOCAL("g", "setc %al\n mov $7, %r8d\n mov $7, %r9d\n bt $3, %rdx\n ret\n"));
	assert_int_equal(before("f", 1) & FLAGS, LIVE_FLAGS(FORM_CF));
	assert_true(before("g", 4) & REG(8) && before("g", 4) & LIVE_FLAGS(FORM_CF));
	assert_false(before("g", 4) & (REG(9) | LIVE_FLAGS(FORM_ZF)));
	assert_false(before("f", 0) & FLAGS);
	forget();
}

/* A thunk that returns to where it is told needs what that needs. */
static void test_thunk(void **state)
{
	(void)state;
	find_lives(".text\n" FUNCTION("f", "xor %eax, %eax\n call g\n ret\n")
			LOCAL("g", "push %r11\n ret\n"));
	assert_int_equal(before("f", 1), LIVE_ALL);
	forget();
}

static void test_recursion(void **state)
{
	(void)state;
	find_lives(".text\n" FUNCTION(
		"f", "mov %r9, %rcx\n test %edi, %edi\n je 1f\n call g\n 1: ret\n")
			LOCAL("g", "dec %edi\n call f\n mov %r8, %rdx\n ret\n"));
	assert_true(before("g", 1) & REG(9) && before("g", 1) & REG(8));
	assert_int_equal(
		lives_clobbers(lives, number_of("f")) & ~FLAGS, REG(1) | REG(2) | REG(4) | REG(7));
	forget();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_custom),
		cmocka_unit_test(test_thunk),
		cmocka_unit_test(test_recursion),
	};
	int r = cmocka_run_group_tests(tests, open_workshop, close_workshop);
	forget_built();
	return r;
}
