/* Flags that are set in one block and used in others, all six of them. */
// edited: carries all
#include <stdio.h>

unsigned long carries(const unsigned long *a, const unsigned long *b, unsigned long *c, long n);
unsigned all(unsigned char a, unsigned char b);
asm(".text\n"
    ".type carries, @function\n"
    "carries: .cfi_startproc\n" /* the carry lives around the loop */
    "	xor %eax, %eax\n"
    "	clc\n"
    "1:	mov (%rdi,%rax,8), %r8\n"
    "	adc (%rsi,%rax,8), %r8\n"
    "	mov %r8, (%rdx,%rax,8)\n"
    "	inc %rax\n"
    "	dec %rcx\n"
    "	jnz 1b\n"
    "	setc %al\n"
    "	movzbl %al, %eax\n"
    "	ret\n"
    "	.cfi_endproc\n"
    ".size carries, . - carries\n"
    ".type all, @function\n"
    "all: .cfi_startproc\n"
    "	cmp %sil, %dil\n"
    "	jmp 2f\n"
    "1:	lahf\n"
    "	seto %al\n"
    "	movzwl %ax, %eax\n"
    "	ret\n"
    "2:	mov $0, %edx\n"
    "	js 3f\n"
    "	jp 1b\n"
    "	jo 1b\n"
    "3:	jc 1b\n"
    "	jnz 4f\n"
    "	jmp 1b\n"
    "4:	pushf\n"
    "	.cfi_adjust_cfa_offset 8\n"
    "	pop %rax\n"
    "	.cfi_adjust_cfa_offset -8\n"
    "	and $0x8d5, %eax\n"
    "	or $0x10000, %eax\n"
    "	ret\n"
    "	.cfi_endproc\n"
    ".size all, . - all\n");

int main(void)
{
	unsigned long a[] = {~0ul, ~0ul, 1}, b[] = {1, 0, ~0ul}, c[3];
	unsigned sum = 0;

	printf("%lu", carries(a, b, c, 3));
	printf(" %lx %lx %lx\n", c[0], c[1], c[2]);
	for (int i = 0; i < 256; i++)
		for (int k = 0; k < 256; k++)
			sum = sum * 31 + all((unsigned char)i, (unsigned char)k);
	printf("%u\n", sum);
	return 0;
}
