/* The header's place and the code that runs first: e_entry of a program, DT_INIT of a library. */
#include "rt/rt.h"

	.section .text.start, "ax"
	.globl rt_header
	.hidden rt_header
rt_header:
	.quad RT_MAGIC
	.fill RT_HEADER - 8, 1, 0

/* Saves what C may change; the stack is aligned apart, as the two uses differ in it. */
	.globl rt_start
rt_start:
	endbr64
	lea -8(%rsp), %rsp /* becomes where to go on */
	pushfq
	push %rax
	push %rbx
	push %rcx
	push %rdx
	push %rsi
	push %rdi
	push %rbp
	push %r8
	push %r9
	push %r10
	push %r11
	mov %rsp, %rbp
	cld
	and $-16, %rsp
	lea rt_header(%rip), %rdi
	call rt_main
	mov %rbp, %rsp
	lea rt_header(%rip), %rdi
	mov RT_NEXT(%rdi), %rax
	lea rt_return(%rip), %rcx
	mov %rdi, %rdx
	sub RT_ADDRESS(%rdi), %rdx
	add %rax, %rdx
	test %rax, %rax
	cmovz %rcx, %rdx
	mov %rdx, 96(%rsp)
	pop %r11
	pop %r10
	pop %r9
	pop %r8
	pop %rbp
	pop %rdi
	pop %rsi
	pop %rdx
	pop %rcx
	pop %rbx
	pop %rax
	popfq
	lea 8(%rsp), %rsp
	jmp *-8(%rsp)

rt_return:
	endbr64
	ret

	.section .note.GNU-stack, "", @progbits
