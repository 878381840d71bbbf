/*
 * What snippets call. Two words on the stack above the return address are the values, and the first
 * of them gets the result; all registers and flags are left alone. C may change the rest: vector
 * registers are not used, and nothing needs an aligned stack.
 */
	.macro keep reg
	push \reg
	.cfi_adjust_cfa_offset 8
	.endm

	.macro put_back reg
	pop \reg
	.cfi_adjust_cfa_offset -8
	.endm

/* rt_call_NAME runs rt_NAME(first, second). */
	.macro routine name
	.globl rt_call_\name
	.type rt_call_\name, @function
	.p2align 4
rt_call_\name:
	.cfi_startproc
	keep %rax
	lahf
	seto %al
	keep %rax
	keep %rcx
	keep %rdx
	keep %rsi
	keep %rdi
	keep %r8
	keep %r9
	keep %r10
	keep %r11
	pushfq /* for the direction of strings */
	.cfi_adjust_cfa_offset 8
	cld
	mov 96(%rsp), %rdi
	mov 104(%rsp), %rsi
	call rt_\name
	mov %rax, 96(%rsp)
	testb $4, 1(%rsp)
	jz 1f
	std
1:
	lea 8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	put_back %r11
	put_back %r10
	put_back %r9
	put_back %r8
	put_back %rdi
	put_back %rsi
	put_back %rdx
	put_back %rcx
	put_back %rax
	add $0x7f, %al /* overflows when al is 1 */
	sahf
	put_back %rax
	ret
	.cfi_endproc
	.size rt_call_\name, . - rt_call_\name
	.endm

	.text
	routine thread_block
	routine context_enter
	routine context_path
	routine path
	routine path_second
	routine metric
	routine ended
	routine burst_room
	routine burst_turn

	.section .note.GNU-stack, "", @progbits
