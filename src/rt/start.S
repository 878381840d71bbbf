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
	.cfi_startproc
	endbr64
	lea -8(%rsp), %rsp /* becomes where to go on */
	.cfi_adjust_cfa_offset 8
	pushfq
	.cfi_adjust_cfa_offset 8
	push %rax
	.cfi_adjust_cfa_offset 8
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	push %rcx
	.cfi_adjust_cfa_offset 8
	push %rdx
	.cfi_adjust_cfa_offset 8
	push %rsi
	.cfi_adjust_cfa_offset 8
	push %rdi
	.cfi_adjust_cfa_offset 8
	push %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	push %r8
	.cfi_adjust_cfa_offset 8
	push %r9
	.cfi_adjust_cfa_offset 8
	push %r10
	.cfi_adjust_cfa_offset 8
	push %r11
	.cfi_adjust_cfa_offset 8
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	cld
	and $-16, %rsp
	lea rt_header(%rip), %rdi
	call rt_main
	mov %rbp, %rsp
	.cfi_def_cfa_register %rsp
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
	.cfi_adjust_cfa_offset -8
	pop %r10
	.cfi_adjust_cfa_offset -8
	pop %r9
	.cfi_adjust_cfa_offset -8
	pop %r8
	.cfi_adjust_cfa_offset -8
	pop %rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	pop %rdi
	.cfi_adjust_cfa_offset -8
	pop %rsi
	.cfi_adjust_cfa_offset -8
	pop %rdx
	.cfi_adjust_cfa_offset -8
	pop %rcx
	.cfi_adjust_cfa_offset -8
	pop %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	pop %rax
	.cfi_adjust_cfa_offset -8
	popfq
	.cfi_adjust_cfa_offset -8
	lea 8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	jmp *-8(%rsp)
	.cfi_endproc

rt_return:
	.cfi_startproc
	endbr64
	ret
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
