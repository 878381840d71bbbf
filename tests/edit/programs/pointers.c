/* Tables of 8-byte addresses, which the loader relocates. */
// edited: main
#include <stdio.h>

/* rodata with addresses needs relocations, as .data.rel.ro in a PIE. */
int by_address(unsigned n, int x);
asm(".text\n"
    ".type by_address, @function\n"
    "by_address: .cfi_startproc\n"
    "	cmp $3, %edi\n"
    "	ja 9f\n"
    "	mov %edi, %edi\n"
    "	lea 8f(%rip), %rdx\n"
    "	jmp *(%rdx,%rdi,8)\n"
    "1:	lea 1(%rsi), %eax\n"
    "	ret\n"
    "2:	lea 2(%rsi,%rsi), %eax\n"
    "	ret\n"
    "3:	lea 3(%rsi,%rsi,2), %eax\n"
    "	ret\n"
    "9:	mov $-9, %eax\n"
    "	ret\n"
    "	.cfi_endproc\n"
    ".size by_address, . - by_address\n"
    ".section .data.rel.ro, \"aw\"\n"
    ".p2align 3\n"
    "8:	.quad 1b, 2b, 3b, 9b\n"
    ".text\n");

int main(void)
{
	for (unsigned i = 0; i < 6; i++)
		printf("%d\n", by_address(i, 50));
	return 0;
}
