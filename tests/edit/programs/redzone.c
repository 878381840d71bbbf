/* A leaf that keeps its locals below the stack pointer over branches. */
// edited: leaf
#include <stdio.h>

long leaf(long n);
asm(".text\n"
    ".type leaf, @function\n"
    "leaf: .cfi_startproc\n"
    "	movq $0, -8(%rsp)\n"
    "	movq $1, -16(%rsp)\n"
    "	mov %rdi, -128(%rsp)\n"
    "1:	cmpq $0, -128(%rsp)\n"
    "	je 2f\n"
    "	mov -16(%rsp), %rax\n"
    "	mov -8(%rsp), %rdx\n"
    "	mov %rax, -8(%rsp)\n"
    "	add %rdx, %rax\n"
    "	mov %rax, -16(%rsp)\n"
    "	decq -128(%rsp)\n"
    "	jmp 1b\n"
    "2:	mov -8(%rsp), %rax\n"
    "	ret\n"
    "	.cfi_endproc\n"
    ".size leaf, . - leaf\n");

int main(void)
{
	for (long i = 0; i < 90; i += 11)
		printf("%ld\n", leaf(i));
	return 0;
}
