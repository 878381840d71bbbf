/* Functions with no room for a jump at their entry, and others that just have it. */
// edited: main five
#include <stdio.h>

int nothing(void), zero(void), same(int), five(void), sixteen(int), last(void);
asm(".text\n"
    ".macro function name\n"
    ".globl \\name\n"
    ".type \\name, @function\n"
    "\\name: .cfi_startproc\n"
    ".endm\n"
    ".macro end name\n"
    "	.cfi_endproc\n"
    ".size \\name, . - \\name\n"
    ".endm\n"
    "function nothing\n"
    "	ret\n"
    "end nothing\n"
    "function zero\n"
    "	xor %eax, %eax\n"
    "	ret\n"
    "end zero\n"
    "function same\n"
    "	mov %edi, %eax\n"
    "	ret\n"
    "end same\n"
    "function five\n"
    "	mov $5, %eax\n"
    "	ret\n"
    "end five\n"
    "function sixteen\n"
    "	lea 1(%rdi,%rdi), %eax\n"
    "	test %eax, %eax\n"
    "	jle 1f\n"
    "	add $3, %eax\n"
    "	neg %eax\n"
    "1:	ret\n"
    "end sixteen\n"
    "function last\n"
    "	xor %eax, %eax\n"
    "	ret\n"
    "end last\n");

int main(void)
{
	nothing();
	printf("%d %d %d %d %d %d\n", zero(), same(3), five(), sixteen(4), sixteen(-4), last());
	return 0;
}
