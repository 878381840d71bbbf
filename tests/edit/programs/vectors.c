/* Code in which every register is alive, over branches and a loop. */
// edited: every
#include <stdio.h>
#include <string.h>

/* The sums of registers that were all set from n, 16 general ones less rsp, and xmm0 to 15. */
unsigned long every(unsigned long n, unsigned long *sums);
asm(".text\n"
    ".type every, @function\n"
    "every: .cfi_startproc\n"
    "	push %rbx\n	.cfi_adjust_cfa_offset 8\n	.cfi_offset 3, -16\n"
    "	push %rbp\n	.cfi_adjust_cfa_offset 8\n	.cfi_offset 6, -24\n"
    "	push %r12\n	.cfi_adjust_cfa_offset 8\n	.cfi_offset 12, -32\n"
    "	push %r13\n	.cfi_adjust_cfa_offset 8\n	.cfi_offset 13, -40\n"
    "	push %r14\n	.cfi_adjust_cfa_offset 8\n	.cfi_offset 14, -48\n"
    "	push %r15\n	.cfi_adjust_cfa_offset 8\n	.cfi_offset 15, -56\n"
    "	mov %rdi, %rax\n"
    "	lea 1(%rdi), %rbx\n"
    "	lea 2(%rdi), %rcx\n"
    "	lea 3(%rdi), %rdx\n"
    "	lea 4(%rdi), %rbp\n"
    "	lea 5(%rdi), %r8\n"
    "	lea 6(%rdi), %r9\n"
    "	lea 7(%rdi), %r10\n"
    "	lea 8(%rdi), %r11\n"
    "	lea 9(%rdi), %r12\n"
    "	lea 10(%rdi), %r13\n"
    "	lea 11(%rdi), %r14\n"
    "	lea 12(%rdi), %r15\n"
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
    "	movq %rax, %xmm\\n\n"
    "	psllq $\\n, %xmm\\n\n"
    ".endr\n"
    "	cmp $1, %rdi\n"
    "1:	jb 2f\n" /* flags are alive, too */
    "	adc %rbx, %rax\n"
    "	xchg %rbx, %rcx\n"
    "	lea 1(%rdx,%rbp), %rdx\n"
    "	rol $5, %rbp\n"
    "	xor %r8, %r9\n"
    "	add %r10, %r8\n"
    "	lea (%r11,%r12), %r10\n"
    "	xor %r13, %r11\n"
    "	add %r14, %r12\n"
    "	add %r15, %r13\n"
    "	xor %rax, %r14\n"
    "	add %rdx, %r15\n"
    "	paddq %xmm0, %xmm1\n"
    "	pxor %xmm2, %xmm3\n"
    "	paddq %xmm4, %xmm5\n"
    "	pxor %xmm6, %xmm7\n"
    "	paddq %xmm8, %xmm9\n"
    "	pxor %xmm10, %xmm11\n"
    "	paddq %xmm12, %xmm13\n"
    "	pxor %xmm15, %xmm14\n"
    "	paddq %xmm13, %xmm15\n"
    "	sub $1, %rdi\n"
    "	jmp 1b\n"
    "2:	add %rbx, %rax\n	add %rcx, %rax\n	add %rdx, %rax\n	add %rbp, %rax\n"
    "	add %r8, %rax\n	add %r9, %rax\n	add %r10, %rax\n	add %r11, %rax\n"
    "	add %r12, %rax\n	add %r13, %rax\n	add %r14, %rax\n	add %r15, %rax\n"
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
    "	movq %xmm\\n, 8*\\n(%rsi)\n"
    ".endr\n"
    "	pop %r15\n	.cfi_adjust_cfa_offset -8\n	.cfi_restore 15\n"
    "	pop %r14\n	.cfi_adjust_cfa_offset -8\n	.cfi_restore 14\n"
    "	pop %r13\n	.cfi_adjust_cfa_offset -8\n	.cfi_restore 13\n"
    "	pop %r12\n	.cfi_adjust_cfa_offset -8\n	.cfi_restore 12\n"
    "	pop %rbp\n	.cfi_adjust_cfa_offset -8\n	.cfi_restore 6\n"
    "	pop %rbx\n	.cfi_adjust_cfa_offset -8\n	.cfi_restore 3\n"
    "	ret\n"
    "	.cfi_endproc\n"
    ".size every, . - every\n");

int main(void)
{
	for (unsigned long n = 0; n < 40; n += 13) {
		unsigned long sums[16];
		printf("%lx\n", every(n, sums));
		for (int i = 0; i < 16; i++)
			printf("%lx%c", sums[i], i == 15 ? '\n' : ' ');
	}
	return 0;
}
