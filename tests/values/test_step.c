#include "values/step.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { CODE = 0x1000, DATA = 0x8000, STACK = 0xf000, SIZE = 0x10000 };
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

static uint8_t memory[SIZE];
static struct interp m;
static struct steps steps;

static int read_word(void *arg, uint64_t address, uint64_t *word)
{
	(void)arg;
	if (address > SIZE - 8)
		return -EFAULT;
	memcpy(word, memory + address, 8);
	return 0;
}

/* A burst of n instructions from a state that is known but for what the test changes after it. */
static void begin(const void *code, size_t bytes)
{
	memset(memory + CODE, 0x90, 256);
	memcpy(memory + CODE, code, bytes);
	interp_begin(&m, read_word, NULL);
	memset(m.r, 0, sizeof m.r);
	interp_set_flags(&m, 0);
	m.ip = CODE;
	m.r[RSP] = STACK;
	m.r[RBX] = DATA;
	m.known_xmm = 0xffff;
	steps_begin(&steps);
}

static void run(unsigned n)
{
	steps_look(&steps, &m);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(interp_step(&m), INTERP_GOES_ON);
		steps_add(&steps, &m);
	}
	steps_contexts(&steps);
}

#define CODE_OF(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static const struct culprit_step *only(const void *code, size_t bytes)
{
	begin(code, bytes);
	m.r[RCX] = 2;
	run(1);
	return &steps.step[0];
}

static void registers(void **state)
{
	const struct culprit_step *s;

	(void)state;
	s = only(CODE_OF(0x48, 0x01, 0xc8)); /* add rax, rcx */
	assert_int_equal(s->reads, 1 << RAX | 1 << RCX);
	assert_int_equal(s->writes, 1 << RAX);
	assert_int_equal(s->value, 2);
	s = only(CODE_OF(0x89, 0xc8)); /* mov eax, ecx */
	assert_int_equal(s->reads, 1 << RCX);
	assert_int_equal(s->writes, 1 << RAX);
	s = only(CODE_OF(0x88, 0xc8)); /* mov al, cl: keeps the rest */
	assert_int_equal(s->reads, 1 << RAX | 1 << RCX);
	s = only(CODE_OF(0x39, 0xc8)); /* cmp eax, ecx */
	assert_int_equal(s->writes, 0);
	s = only(CODE_OF(0x48, 0x8d, 0x14, 0x8b)); /* lea rdx, [rbx+rcx*4] */
	assert_int_equal(s->reads, 1 << RBX | 1 << RCX);
	assert_int_equal(s->writes, 1 << RDX);
	s = only(CODE_OF(0xf7, 0xe1)); /* mul ecx */
	assert_int_equal(s->reads, 1 << RAX | 1 << RCX);
	assert_int_equal(s->writes, 1 << RAX | 1 << RDX);
	s = only(CODE_OF(0x49, 0x89, 0xc8)); /* mov r8, rcx */
	assert_int_equal(s->writes, 1 << 8);
	assert_int_equal(s->registers[RCX], 2);
	assert_int_equal(s->known, 0xffff);
}

static void memory_operands(void **state)
{
	const struct culprit_step *s;

	(void)state;
	s = only(CODE_OF(0x42, 0x8b, 0x44, 0x8b, 0x08)); /* mov eax, [rbx+r9*4+8] */
	assert_int_equal(s->has & (CULPRIT_LOADS | CULPRIT_STORES), CULPRIT_LOADS);
	assert_int_equal(s->load, DATA + 8);
	assert_int_equal(s->load_size, 4);
	assert_int_equal(s->address, 1 << RBX | 1 << 9);
	assert_int_equal(s->opcode, 0x8b);
	s = only(CODE_OF(0x0f, 0xb6, 0x03)); /* movzx eax, byte [rbx] */
	assert_int_equal(s->load_size, 1);
	assert_int_equal(s->opcode, 0x1b6);
	s = only(CODE_OF(0x66, 0x89, 0x43, 0x02)); /* mov [rbx+2], ax */
	assert_int_equal(s->has & (CULPRIT_LOADS | CULPRIT_STORES), CULPRIT_STORES);
	assert_int_equal(s->store, DATA + 2);
	assert_int_equal(s->store_size, 2);
	assert_int_equal(s->prefix, CULPRIT_66);
	s = only(CODE_OF(0xff, 0x33)); /* push [rbx] */
	assert_int_equal(s->load, DATA);
	assert_int_equal(s->store, STACK - 8);
	s = only(CODE_OF(0x0f, 0x11, 0x0b)); /* movups [rbx], xmm1 */
	assert_int_equal(s->store_size, 16);
	s = only(CODE_OF(0xf0, 0x01, 0x0b)); /* lock add [rbx], ecx */
	assert_true(s->has & CULPRIT_DRAINS);
	s = only(CODE_OF(0x87, 0x0b)); /* xchg [rbx], ecx */
	assert_true(s->has & CULPRIT_DRAINS);
	s = only(CODE_OF(0x01, 0x0b));
	assert_false(s->has & CULPRIT_DRAINS);
}

static void strings(void **state)
{
	(void)state;
	begin(CODE_OF(0xf3, 0xa5)); /* rep movsd */
	m.r[RCX] = 3;
	m.r[RSI] = DATA;
	m.r[RDI] = DATA + 0x100;
	run(1);
	assert_int_equal(steps.step[0].load, DATA);
	assert_int_equal(steps.step[0].store, DATA + 0x100);
	assert_int_equal(steps.step[0].load_size, 12);
	assert_int_equal(steps.step[0].store_size, 12);
	assert_int_equal(steps.step[0].reads, 1 << RCX | 1 << RSI | 1 << RDI);
}

static void vectors(void **state)
{
	const struct culprit_step *s = &steps.step[0];

	(void)state;
	begin(CODE_OF(0xf2, 0x0f, 0x58, 0xca)); /* addsd xmm1, xmm2 */
	m.xmm[1][0] = 11;
	m.xmm[2][0] = 22;
	run(1);
	assert_int_equal(s->opcode, 0x158);
	assert_int_equal(s->prefix, CULPRIT_F2);
	assert_int_equal(s->has & (CULPRIT_HAS_VECTOR0 | CULPRIT_HAS_VECTOR1),
		CULPRIT_HAS_VECTOR0 | CULPRIT_HAS_VECTOR1);
	assert_int_equal(s->vector[0][0], 11);
	assert_int_equal(s->vector[1][0], 22);
	begin(CODE_OF(0xc5, 0xeb, 0x59, 0x0b)); /* vmulsd xmm1, xmm2, [rbx] */
	m.xmm[2][0] = 33;
	run(1);
	assert_int_equal(s->encoding, CULPRIT_VEX);
	assert_int_equal(s->opcode, 0x159);
	assert_int_equal(s->vector[0][0], 33);
	assert_false(s->has & CULPRIT_HAS_VECTOR1);
	assert_int_equal(s->load, DATA);
	assert_int_equal(s->load_size, 8);
	begin(CODE_OF(0xf2, 0x0f, 0x58, 0xca));
	m.known_xmm = 0;
	run(1);
	assert_false(s->has & (CULPRIT_HAS_VECTOR0 | CULPRIT_HAS_VECTOR1));
}

/* A call tells the context of what it enters, a return that of all it comes from. */
static void contexts(void **state)
{
	const uint64_t outside = CODE + 0x80;

	(void)state;
	begin(CODE_OF(0x90, 0xe8, 0x02, 0, 0, 0, 0x90, 0xc3, 0x90, 0xc3));
	/* 1000 nop; 1001 call 1008; 1006 nop; 1007 ret; 1008 nop; 1009 ret */
	memcpy(memory + STACK, &outside, 8);
	run(7);
	assert_int_equal(steps.step[0].context, outside);
	assert_int_equal(steps.step[1].context, outside);
	assert_int_equal(steps.step[2].context, CODE + 6);
	assert_int_equal(steps.step[3].context, CODE + 6);
	assert_int_equal(steps.step[4].context, outside);
	assert_int_equal(steps.step[5].context, outside);
	assert_int_equal(steps.step[6].pc, outside);
	assert_int_equal(steps.step[6].context, 0);
}

/* Without a look at the state before it the first step has no registers, the second has. */
static void unseen(void **state)
{
	(void)state;
	begin(CODE_OF(0x90, 0x90));
	for (unsigned i = 0; i < 2; i++) {
		interp_step(&m);
		steps_add(&steps, &m);
	}
	assert_int_equal(steps.step[0].known, 0);
	assert_int_equal(steps.step[1].known, 0xffff);
	assert_int_equal(steps.step[1].registers[RBX], DATA);
	assert_int_equal(steps.step[1].index, 1);
}

static void full(void **state)
{
	(void)state;
	begin(CODE_OF(0xeb, 0xfe)); /* jmp to itself */
	steps_look(&steps, &m);
	for (unsigned i = 0; i < STEPS_MAX; i++) {
		interp_step(&m);
		assert_non_null(steps_add(&steps, &m));
	}
	assert_null(steps_add(&steps, &m));
	assert_int_equal(steps.n, STEPS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers),
		cmocka_unit_test(memory_operands),
		cmocka_unit_test(strings),
		cmocka_unit_test(vectors),
		cmocka_unit_test(contexts),
		cmocka_unit_test(unseen),
		cmocka_unit_test(full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
