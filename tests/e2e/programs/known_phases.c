/*
 * A branch that goes the one way a thousand times and then the other a thousand times; each way
 * half of all times, but one is much slower than the other. Says the branch, where it goes when
 * taken and when not, as addresses in the file. Usage: known_phases SECONDS
 */
#include "burn.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

extern const char __executable_start[];
extern const char *const phases_places[3];
void phases(uint64_t iterations);

/* Slow: divisions that wait for each other. */
__asm__(".text\n"
	".globl phases\n"
	".type phases,@function\n"
	"phases:\n"
	"	movl $7, %ecx\n"
	"	movl $1, %eax\n"
	"1:	testl $1024, %edi\n"
	"2:	jz 4f\n"
	"3:	xorl %edx, %edx\n"
	"	orq $1, %rax\n"
	"	divq %rcx\n"
	"	xorl %edx, %edx\n"
	"	divq %rcx\n"
	"	xorl %edx, %edx\n"
	"	divq %rcx\n"
	"	xorl %edx, %edx\n"
	"	divq %rcx\n"
	"4:	decq %rdi\n"
	"	jnz 1b\n"
	"	ret\n"
	".size phases,.-phases\n"
	".section .data.rel.ro.local,\"aw\"\n"
	".balign 8\n"
	"phases_places: .quad 2b, 4b, 3b\n"
	".text\n");

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;

	printf("phases");
	for (int i = 0; i < 3; i++)
		printf(" 0x%lx", (unsigned long)(phases_places[i] - __executable_start));
	printf("\n");
	fflush(stdout);
	for (double end = burn_cpu_seconds() + seconds; burn_cpu_seconds() < end;)
		phases(2048000);
	return 0;
}
