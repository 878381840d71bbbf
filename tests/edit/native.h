/*
 * Runs code that was made on the machine itself, from a state to a state.
 */
#ifndef CULPRIT_TESTS_EDIT_NATIVE_H
#define CULPRIT_TESTS_EDIT_NATIVE_H

#include <stdint.h>

/* Registers by number, then the flags; rsp too. */
struct native {
	uint64_t r[16], flags;
};

extern struct native native_in, native_out;
extern void *native_code;
extern char native_back[]; /* where the code jumps to when it is done */
void native_enter(void);

#define NATIVE_EACH(insn)                                                                         \
	insn(1, rcx) insn(2, rdx) insn(3, rbx) insn(5, rbp) insn(6, rsi) insn(7, rdi) insn(8, r8) \
		insn(9, r9) insn(10, r10) insn(11, r11) insn(12, r12) insn(13, r13) insn(14, r14) \
			insn(15, r15) insn(0, rax)
#define NATIVE_LOAD(n, reg)  "mov native_in+8*" #n "(%rip), %" #reg "\n"
#define NATIVE_STORE(n, reg) "mov %" #reg ", native_out+8*" #n "(%rip)\n"

/* In a program only once. */
#define NATIVE_DEFINE                                                                              \
	struct native native_in, native_out;                                                       \
	void *native_code;                                                                         \
	static uint64_t native_stack __attribute__((used));                                        \
	__asm__(".text\n.globl native_enter, native_back\nnative_enter:\n"                         \
		"push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"          \
		"mov %rsp, native_stack(%rip)\n"                                                   \
		"push native_in+8*16(%rip)\n popfq\n" NATIVE_EACH(                                 \
			NATIVE_LOAD) "mov native_in+8*4(%rip), %rsp\n jmp *native_code(%rip)\n"    \
				     "native_back:\n" NATIVE_EACH(                                 \
					     NATIVE_STORE) "mov %rsp, native_out+8*4(%rip)\n mov " \
							   "native_stack(%rip), %rsp\n"            \
							   "pushfq\n pop native_out+8*16(%rip)\n " \
							   "cld\n"                                 \
							   "pop %r15\n pop %r14\n pop %r13\n pop " \
							   "%r12\n pop %rbp\n pop %rbx\n ret\n");

#endif
