/* Functions with a second entry, and one that falls into the next. */
// edited: main
#include <stdio.h>

int outer(int), middle(int), first(int), second(int);
asm(".text\n"
    ".globl outer\n"
    ".type outer, @function\n"
    "outer: .cfi_startproc\n"
    "	add $100, %edi\n"
    "	imul $3, %edi, %edi\n"
    ".globl middle\n"
    ".type middle, @function\n"
    "middle:\n"
    "	lea 1(%rdi), %eax\n"
    "	cmp $50, %eax\n"
    "	jg 1f\n"
    "	neg %eax\n"
    "1:	ret\n"
    "	.cfi_endproc\n"
    ".size outer, . - outer\n"
    ".size middle, . - middle\n"
    ".globl first\n"
    ".type first, @function\n"
    "first: .cfi_startproc\n"
    "	add $7, %edi\n"
    "	xor $3, %edi\n"
    "	.cfi_endproc\n"
    ".size first, . - first\n"
    ".globl second\n"
    ".type second, @function\n"
    "second: .cfi_startproc\n"
    "	lea 2(%rdi,%rdi), %eax\n"
    "	add $9, %eax\n"
    "	ret\n"
    "	.cfi_endproc\n"
    ".size second, . - second\n");

int main(void)
{
	int (*volatile f)(int) = middle;
	for (int i = 0; i < 90; i += 30)
		printf("%d %d %d %d %d\n", outer(i), middle(i), f(i), first(i), second(i));
	return 0;
}
