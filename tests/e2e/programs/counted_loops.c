/*
 * Loops that know how often they went round, in three procedures. Says for each its name, the
 * number of the register that counts, by how much, how often, and the CPU seconds that it took.
 * Usage: counted_loops SECONDS
 */
#include "burn.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE_MS = 40, TABLE = 1 << 16 };

/* A chain of multiplications; r10 counts down by one. */
void chain(uint64_t n);
__asm__(".text\n.globl chain\n.type chain,@function\n"
	"chain:	movq %rdi, %r10\n"
	"1:	imulq $3, %rax, %rax\n"
	"	imulq $5, %rax, %rax\n"
	"	decq %r10\n"
	"	jnz 1b\n"
	"	ret\n"
	".size chain,.-chain\n");

/* Loads that miss the first cache, but not the second, which is not shared; rcx goes up by 24. */
void look(uint64_t n, const uint32_t *table);
__asm__(".globl look\n.type look,@function\n"
	"look:	leaq (%rdi,%rdi,2), %rdi\n"
	"	shlq $3, %rdi\n"
	"	xorl %ecx, %ecx\n"
	"	xorl %eax, %eax\n"
	"1:	imulq $0x1e3779b1, %rcx, %rdx\n"
	"	addl %eax, %edx\n"
	"	andl $0xffff, %edx\n"
	"	movl (%rsi,%rdx,4), %eax\n"
	"	addq $24, %rcx\n"
	"	cmpq %rdi, %rcx\n"
	"	jne 1b\n"
	"	ret\n"
	".size look,.-look\n");

/* A division in half of the cases, by chance; r8 goes up by a cache line. */
void divide(uint64_t n);
__asm__(".globl divide\n.type divide,@function\n"
	"divide:	xorl %r8d, %r8d\n"
	"	shlq $6, %rdi\n"
	"	movl $88172645, %r9d\n"
	"1:	movq %r9, %rcx\n"
	"	shlq $13, %rcx\n"
	"	xorq %rcx, %r9\n"
	"	movq %r9, %rcx\n"
	"	shrq $7, %rcx\n"
	"	xorq %rcx, %r9\n"
	"	movq %r9, %rcx\n"
	"	shlq $17, %rcx\n"
	"	xorq %rcx, %r9\n"
	"	testl $0x10000, %r9d\n"
	"	je 2f\n"
	"	movq %r9, %rax\n"
	"	xorl %edx, %edx\n"
	"	movl $12345, %ecx\n"
	"	divq %rcx\n"
	"2:	addq $64, %r8\n"
	"	cmpq %rdi, %r8\n"
	"	jne 1b\n"
	"	ret\n"
	".size divide,.-divide\n");

static uint32_t *table;

static void run(int which, uint64_t n)
{
	if (which == 0)
		chain(n);
	else if (which == 1)
		look(n, table);
	else
		divide(n);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int number, stride;
	} loops[] = {{"chain", 10, -1}, {"look", 1, 24}, {"divide", 8, 64}};
	double seconds = argc > 1 ? atof(argv[1]) : 1, spent[3] = {0};
	uint64_t slice[3], done[3] = {0};

	table = malloc(TABLE * sizeof *table);
	memset(table, 7, TABLE * sizeof *table);
	for (int i = 0; i < 3; i++) {
		double start = burn_cpu_seconds();

		run(i, 1000000);
		slice[i] = 1000000 * (SLICE_MS / 1000. / (burn_cpu_seconds() - start));
	}
	for (double end = burn_cpu_seconds() + seconds; burn_cpu_seconds() < end;) {
		for (int i = 0; i < 3; i++) {
			double start = burn_cpu_seconds();

			run(i, slice[i]);
			spent[i] += burn_cpu_seconds() - start;
			done[i] += slice[i];
		}
	}
	for (int i = 0; i < 3; i++)
		printf("%s %d %d %lu %.6f\n", loops[i].name, loops[i].number, loops[i].stride,
			(unsigned long)done[i], spent[i]);
	return 0;
}
