/* jrcxz, jecxz and loop reach 127 bytes only, and have no longer form. */
// edited: spin zero counted equal main
#include <stdio.h>

long spin(long n), zero(long n), counted(long n), equal(const char *s, long n);
asm(".text\n"
    ".type spin, @function\n"
    "spin: .cfi_startproc\n"
    "	mov %rdi, %rcx\n"
    "	xor %eax, %eax\n"
    "	jrcxz 2f\n"
    "1:	add %rcx, %rax\n"
    "	loop 1b\n"
    "2:	ret\n"
    "	.cfi_endproc\n"
    ".size spin, . - spin\n"
    ".type zero, @function\n"
    "zero: .cfi_startproc\n"
    "	mov %rdi, %rcx\n"
    "	mov $7, %eax\n"
    "	jecxz 1f\n" /* only the lower half */
    "	mov $8, %eax\n"
    "1:	ret\n"
    "	.cfi_endproc\n"
    ".size zero, . - zero\n"
    ".type counted, @function\n"
    "counted: .cfi_startproc\n" /* as far as it goes */
    "	mov %rdi, %rcx\n"
    "	xor %eax, %eax\n"
    "1:	inc %rax\n"
    "	test $1, %al\n"
    "	jz 2f\n"
    "	.fill 50, 1, 0x90\n"
    "	add $2, %rax\n"
    "2:	.fill 50, 1, 0x90\n"
    "	loop 1b\n"
    "	ret\n"
    "	.cfi_endproc\n"
    ".size counted, . - counted\n"
    ".type equal, @function\n"
    "equal: .cfi_startproc\n"
    "	mov %rsi, %rcx\n"
    "	xor %eax, %eax\n"
    "1:	inc %rax\n"
    "	cmpb $'x', -1(%rdi,%rax)\n"
    "	loope 1b\n"
    "	jne 2f\n"
    "	neg %rax\n"
    "2:	ret\n"
    "	.cfi_endproc\n"
    ".size equal, . - equal\n");

int main(void)
{
	for (long n = 0; n < 5; n++)
		printf("%ld %ld %ld\n", spin(n), zero(n << 31), counted(n + 1));
	printf("%ld %ld\n", equal("xxxyx", 5), equal("xxxx", 4));
	return 0;
}
