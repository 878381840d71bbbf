/*
 * Branches that are taken in a quarter, half and nine tenths of the cases, by chance, in three
 * procedures. Says for each its name, the branch, where it goes when taken and when not, as
 * addresses in the file. Usage: known_edges SECONDS
 */
#include "burn.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

extern const char __executable_start[];

/* A random number (Marsaglia's xorshift) whose lower half is below the limit, or is not. */
#define CHOOSER(name, limit)                                      \
	extern const char *const name##_places[3];                \
	void name(uint64_t *seed, uint64_t iterations);           \
	__asm__(".text\n"                                         \
		".globl " #name "\n"                              \
		".type " #name ",@function\n" #name ":\n"         \
		"	movq (%rdi), %rax\n"                            \
		"1:	movq %rax, %rdx\n"                            \
		"	shlq $13, %rdx\n"                               \
		"	xorq %rdx, %rax\n"                              \
		"	movq %rax, %rdx\n"                              \
		"	shrq $7, %rdx\n"                                \
		"	xorq %rdx, %rax\n"                              \
		"	movq %rax, %rdx\n"                              \
		"	shlq $17, %rdx\n"                               \
		"	xorq %rdx, %rax\n"                              \
		"	cmpl $" #limit ", %eax\n"                 \
		"2:	jb 4f\n"                                      \
		"3:	incq %rcx\n"                                  \
		"4:	decq %rsi\n"                                  \
		"	jnz 1b\n"                                       \
		"	movq %rax, (%rdi)\n"                            \
		"	ret\n"                                          \
		".size " #name ",.-" #name "\n"                   \
		".section .data.rel.ro.local,\"aw\"\n"            \
		".balign 8\n" #name "_places: .quad 2b, 4b, 3b\n" \
		".text\n")

CHOOSER(quarter, 0x40000000);
CHOOSER(half, 0x80000000);
CHOOSER(most, 0xe6666666);

static void tell(const char *name, const char *const places[3])
{
	printf("%s", name);
	for (int i = 0; i < 3; i++)
		printf(" 0x%lx", (unsigned long)(places[i] - __executable_start));
	printf("\n");
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	uint64_t seed = 88172645463325252;

	tell("quarter", quarter_places);
	tell("half", half_places);
	tell("most", most_places);
	for (double end = burn_cpu_seconds() + seconds; burn_cpu_seconds() < end;) {
		quarter(&seed, 100000);
		half(&seed, 100000);
		most(&seed, 100000);
	}
	return 0;
}
