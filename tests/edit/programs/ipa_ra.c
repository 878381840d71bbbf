/* Callers that know which registers their callee leaves alone. */
// flags: -O2 -fipa-ra
// edited: caller leaf keeper
#include <stdio.h>

int caller(int x);
asm(".text\n"
    ".type keeper, @function\n"
    "keeper: .cfi_startproc\n" /* writes eax alone */
    "	lea 1(%rdi), %eax\n"
    "	test $1, %al\n"
    "	jz 1f\n"
    "	add $2, %eax\n"
    "1:	ret\n"
    "	.cfi_endproc\n"
    ".size keeper, . - keeper\n"
    ".type caller, @function\n"
    "caller: .cfi_startproc\n"
    "	mov %edi, %ecx\n"
    "	lea 1(%rdi), %edx\n"
    "	lea 2(%rdi), %esi\n"
    "	lea 3(%rdi), %r8d\n"
    "	lea 4(%rdi), %r9d\n"
    "	lea 5(%rdi), %r10d\n"
    "	lea 6(%rdi), %r11d\n"
    "	movd %edi, %xmm3\n"
    "	call keeper\n"
    "	add %ecx, %eax\n"
    "	imul %edx, %eax\n"
    "	xor %esi, %eax\n"
    "	imul %r8d, %eax\n"
    "	add %r9d, %eax\n"
    "	imul %r10d, %eax\n"
    "	sub %r11d, %eax\n"
    "	movd %xmm3, %edx\n"
    "	add %edx, %eax\n"
    "	ret\n"
    "	.cfi_endproc\n"
    ".size caller, . - caller\n");

static __attribute__((noinline)) int leaf(int x)
{
	return x * x + 7;
}

__attribute__((noinline)) int many(int a, int b, int c, int d)
{
	int s = leaf(a);
	s = s * b + leaf(b);
	s = s * c + leaf(c);
	return s * d + leaf(s) + a;
}

int main(void)
{
	for (int i = 0; i < 5; i++)
		printf("%d %d\n", caller(i), many(i, i + 1, i + 2, i + 3));
	return 0;
}
