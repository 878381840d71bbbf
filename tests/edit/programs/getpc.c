/* Code that asks where it is: calls of the next instruction, and its own return address. */
// edited: main
#include <stdio.h>

int by_pop(int), by_return(int);
asm(".text\n"
    ".type by_pop, @function\n"
    "by_pop: .cfi_startproc\n"
    "	call 1f\n"
    "1:	.cfi_adjust_cfa_offset 8\n"
    "	pop %rax\n"
    "	.cfi_adjust_cfa_offset -8\n"
    "	and $3, %edi\n"
    "	mov 2f-1b(%rax,%rdi,4), %eax\n"
    "	ret\n"
    "	.cfi_endproc\n"
    ".size by_pop, . - by_pop\n"
    "	.p2align 4\n"
    "2:	.long 11, 22, 33, 44\n"
    ".type thunk, @function\n"
    "thunk: .cfi_startproc\n"
    "	mov (%rsp), %rdx\n"
    "	ret\n"
    "	.cfi_endproc\n"
    ".size thunk, . - thunk\n");

int main(void)
{
	for (int i = 0; i < 4; i++)
		printf("%d\n", by_pop(i));
	return 0;
}
