/* Jump tables: of the compiler, masked, shared by two jumps, dense and inside a loop. */
// edited: dense masked shared nested
#include <stdio.h>

__attribute__((noinline)) int dense(unsigned n, int x)
{
	switch (n) {
	case 0: return x + 1;
	case 1: return x * 2;
	case 2: return x - 3;
	case 3: return x / 4;
	case 4: return x ^ 5;
	case 5: return x | 6;
	case 6: return x & 7;
	case 7: return x << 3;
	case 9: return x * 9;
	}
	return -1;
}

__attribute__((noinline)) int masked(unsigned n, int x)
{
	switch (n & 7) {
	case 0: return x + 11;
	case 1: return x * 12;
	case 2: return x - 13;
	case 3: return x / 14;
	case 4: return x ^ 15;
	case 5: return x | 16;
	case 6: return x & 17;
	case 7: return x << 4;
	}
	return -1;
}

/* An automaton: gcc duplicates the jump at the end of cases. */
__attribute__((noinline)) int nested(const char *s)
{
	int state = 0, sum = 0;
	for (; *s; s++) {
		switch (*s - 'a') {
		case 0: state = sum % 3; sum += 1; break;
		case 1: state = 2; sum += state * 3; break;
		case 2: state ^= 1; sum -= 5; break;
		case 3: sum ^= 0x55; break;
		case 4: sum <<= 1; state = 0; break;
		case 5: switch (state) {
			case 0: sum += 100; break;
			case 1: sum += 200; break;
			case 2: sum += 300; break;
			case 3: sum += 400; break;
			case 4: sum += 500; break;
			case 5: sum += 600; break;
			}
			break;
		default: sum += *s;
		}
	}
	return sum;
}

int shared(unsigned n, int x);
#ifdef __PIE__
asm(".text\n"
    ".type shared, @function\n"
    "shared: .cfi_startproc\n"
    "	cmp $3, %edi\n"
    "	ja 9f\n"
    "	mov %edi, %edi\n"
    "	lea 8f(%rip), %rdx\n"
    "	movslq (%rdx,%rdi,4), %rax\n"
    "	add %rdx, %rax\n"
    "	jmp *%rax\n"
    "1:	lea 1(%rsi), %eax\n"
    "	ret\n"
    "2:	lea 2(%rsi,%rsi), %eax\n"
    "	ret\n"
    "3:	inc %esi\n" /* again, by the same table */
    "	mov %esi, %eax\n"
    "	and $3, %eax\n"
    "	cmp $2, %eax\n"
    "	ja 9f\n"
    "	lea 8f(%rip), %rdx\n"
    "	movslq (%rdx,%rax,4), %rax\n"
    "	add %rdx, %rax\n"
    "	jmp *%rax\n"
    "9:	mov $-9, %eax\n"
    "	ret\n"
    "	.cfi_endproc\n"
    ".size shared, . - shared\n"
    ".section .rodata\n"
    ".p2align 2\n"
    "8:	.long 1b - 8b, 2b - 8b, 3b - 8b, 9b - 8b\n"
    ".text\n");
#else
asm(".text\n"
    ".type shared, @function\n"
    "shared: .cfi_startproc\n"
    "	cmp $3, %edi\n"
    "	ja 9f\n"
    "	mov %edi, %edi\n"
    "	jmp *8f(,%rdi,8)\n"
    "1:	lea 1(%rsi), %eax\n"
    "	ret\n"
    "2:	lea 2(%rsi,%rsi), %eax\n"
    "	ret\n"
    "3:	inc %esi\n"
    "	mov %esi, %eax\n"
    "	and $3, %eax\n"
    "	cmp $2, %eax\n"
    "	ja 9f\n"
    "	jmp *8f(,%rax,8)\n"
    "9:	mov $-9, %eax\n"
    "	ret\n"
    "	.cfi_endproc\n"
    ".size shared, . - shared\n"
    ".section .rodata\n"
    ".p2align 3\n"
    "8:	.quad 1b, 2b, 3b, 9b\n"
    ".text\n");
#endif

int main(void)
{
	for (unsigned i = 0; i < 12; i++)
		printf("%d %d %d\n", dense(i, 1000), masked(i, 1000), shared(i, (int)i));
	printf("%d\n", nested("abcdefafbfcfdfefzabbaf"));
	return 0;
}
