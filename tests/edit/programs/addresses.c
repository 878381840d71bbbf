/* Addresses of functions, told in all ways that there are, stay equal; so do their low bits. */
// flags: -rdynamic
// edited: shown hidden main
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

int shown(int x)
{
	return x + 1;
}

static int hidden(int x)
{
	return x * 3 + 100000;
}

/* A function that stays, because it asks where it is, and says the address of another. */
int (*staying(void))(int);
int watched(int x);
asm(".text\n"
    ".type watched, @function\n"
    ".p2align 4\n"
    "watched: .cfi_startproc\n"
    "	lea 7(%rdi), %eax\n"
    "	ret\n"
    "	.cfi_endproc\n"
    "	nop; nop; nop; nop\n"
    ".size watched, . - watched\n"
    ".type staying, @function\n"
    ".p2align 4\n"
    "staying: .cfi_startproc\n"
    "	lea watched(%rip), %rax\n"
    "	call 1f\n"
    "1:	pop %rdx\n"
    "	ret\n"
    "	.cfi_endproc\n"
    ".size staying, . - staying\n");

static int (*const constant[])(int) = {shown, hidden, watched};
static int (*variable[])(int) = {shown, hidden, watched};

int main(void)
{
	int (*volatile code[])(int) = {shown, hidden, watched};
	Dl_info info;

	for (int i = 0; i < 3; i++)
		printf("%d %d %d %d\n", code[i] == constant[i], code[i] == variable[i],
			(int)((uintptr_t)code[i] & 15) * (i < 2), code[i](i));
	printf("%d\n", dlsym(RTLD_DEFAULT, "shown") == (void *)code[0]);
	printf("%d\n", staying() == code[2]);
	printf("%s\n", dladdr((void *)code[0], &info) && info.dli_sname ? info.dli_sname : "?");
	printf("%d\n", info.dli_saddr == (void *)code[0]);
#ifdef JUMPS /* whether a pointer leads to a jump, and not to the function */
	for (int i = 0; i < 3; i++)
		printf("%d", *(unsigned char *)code[i] == 0xe9);
	puts("");
#endif
	return 0;
}
