/*
 * Loops of which it is known who is to blame for their time; culprits.txt says what 'why' must
 * find. Usage: culprits NAME SECONDS
 *
 * Each is a procedure of assembler that goes round rdi times over the memory at rsi. The absolute
 * symbol guilty_NAME is how far behind NAME the instruction stands that holds up the others.
 */
#include "burn.h"

#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Of the loop with this body; what runs before it sets up, rdi counts down. */
#define LOOP(name, before, body)                                                         \
	void name(uint64_t n, void *memory);                                             \
	__asm__(".text\n.p2align 6\n.globl " #name "\n.type " #name ",@function\n" #name \
		":\n" before ".p2align 6\n1:\n" body "	decq %rdi\n	jnz 1b\n	ret\n"       \
		".size " #name ",.-" #name "\n")

#define GUILTY(name) ".globl guilty_" #name "\nguilty_" #name " = . - " #name "\n"

/* ---- data caches and their TLB: the same load, in a list that fits or does not ---- */

#define CHASE(name) LOOP(name, "", GUILTY(name) "	movq (%rsi), %rsi\n")
CHASE(chase_memory);
CHASE(chase_cache);
CHASE(chase_pages);

/* ---- loads behind stores ---- */

/* Two halves are stored, the whole is loaded: it waits until both are in the cache. */
LOOP(forward_blocked, "",
	"	movl %eax, (%rsi)\n	movl %eax, 4(%rsi)\n" GUILTY(
		forward_blocked) "	movq (%rsi), %rax\n	addq $1, %rax\n");
LOOP(forward_fits, "",
	"	movq %rax, (%rsi)\n" GUILTY(
		forward_fits) "	movq (%rsi), %rax\n	addq $1, %rax\n");

/* The load is from another place, which differs from the store's by a multiple of 4096. */
#define ALIAS(name, distance)                                                                     \
	LOOP(name, "",                                                                            \
		"	movq %rax, (%rsi)\n" GUILTY(name) "	movq " #distance "(%rsi), %rax\n" \
							  "	addq $1, %rax\n")
ALIAS(alias_4k, 4096);
ALIAS(alias_none, 4160);

/* ---- branches: xorshift from a seed, which 0 leaves at 0 ---- */

#define BRANCH(name)                                                    \
	LOOP(name, "	movq (%rsi), %rax\n",                           \
		"	movq %rax, %rcx\n	shlq $13, %rcx\n	xorq %rcx, %rax\n" \
		"	movq %rax, %rcx\n	shrq $7, %rcx\n	xorq %rcx, %rax\n"  \
		"	movq %rax, %rcx\n	shlq $17, %rcx\n	xorq %rcx, %rax\n" \
		"	testl $0x10000, %eax\n	jne 2f\n" GUILTY(       \
			name) "	addq $3, %r8\n	addq $5, %r9\n2:\n	addq $7, %r10\n")
BRANCH(branch_random);
BRANCH(branch_always);

/* ---- slow instructions ---- */

LOOP(divide, "	movl $3, %ecx\n	movq $-1, %rax\n",
	"	xorl %edx, %edx\n" GUILTY(divide) "	divq %rcx\n	orq %rsi, %rax\n");
LOOP(locked_add, "", GUILTY(locked_add) "	lock addq $1, (%rsi)\n");
LOOP(fenced, "", "	movq %rdi, (%rsi)\n" GUILTY(fenced) "	mfence\n");

/* Products that are too small to be normal numbers; the memory holds both factors. */
#define PRODUCT(name)                                                    \
	LOOP(name, "	movsd (%rsi), %xmm1\n	movsd 8(%rsi), %xmm2\n", \
		"	movapd %xmm1, %xmm0\n" GUILTY(name) "	mulsd %xmm2, %xmm0\n")
PRODUCT(denormal);
PRODUCT(normal);

/* ---- stores that miss: each to another line, in an order that no prefetcher foresees ---- */

LOOP(store_burst, "	xorl %ecx, %ecx\n",
	GUILTY(store_burst) "	movq %rdi, (%rsi,%rcx)\n"
			    "	leaq 192(%rcx,%rcx,4), %rcx\n	andl $0x3ffffff, %ecx\n");

/* ---- code: pieces of one jump each, in an order like that ---- */

/*
 * COUNT (a power of two) pieces that stand SPACE bytes apart: each counts and goes to another. What
 * is between them never runs, and has few instructions since reports list them all.
 */
#define CODE(name, count, space)                                                                \
	void name(uint64_t n, void *memory);                                                    \
	__asm__(".text\n.p2align 12\n.globl " #name "\n.type " #name ",@function\n" #name ":\n" \
		"1:\n.set i, 0\n.rept " #count "\n"                                             \
		".org 1b + i * " #space ", 0xcc\n"                                              \
		"	addq $1, %rax\n"                                                              \
		".if i == " #count " - 1\n	decq %rdi\n	jz 2f\n.endif\n"                         \
		".set next, (i * 5 + 3) & (" #count " - 1)\n"                                   \
		"	jmp 1b + next * " #space "\n"                                           \
		".rept (" #space " - 32) / 15\n"                                                \
		".rept 5\n.byte 0x66\n.endr\n	nopw %cs:0x200(%rax,%rax)\n.endr\n"             \
		".set i, i + 1\n.endr\n"                                                        \
		"2:	ret\n.size " #name ",.-" #name "\n")
CODE(code_lines, 2048, 64);  /* 128 KB: more than the first cache holds, in few pages */
CODE(code_pages, 512, 4160); /* as many pages as lines: more than any TLB for code holds (256) */
CODE(code_fits, 128, 64);

/* ---- memory ---- */

enum { LINE = 64, PAGE = 4096 };

static void *get_memory(size_t size, bool huge)
{
	char *p = mmap(
		NULL, size + (2 << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		err(1, "%zu bytes", size);
	p = (char *)(((uintptr_t)p + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1));
	madvise(p, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(p, 0, size);
	return p;
}

/* A random cycle through all pieces of `step` bytes; lines shift so that they use all sets. */
static void *get_chain(size_t size, size_t step, bool huge)
{
	size_t n = size / step;
	uint32_t *order = malloc(n * sizeof *order);
	uint64_t seed = 1;
	char *p = get_memory(size, huge);

	if (!order)
		err(1, "memory");
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	for (size_t i = n - 1; i > 0; i--) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		uint32_t k = (seed >> 33) % i, t = order[i];
		order[i] = order[k];
		order[k] = t;
	}
	for (size_t i = 0; i < n; i++) {
		size_t a = order[i], b = order[(i + 1) % n];
		*(void **)(p + a * step + a * LINE % step) = p + b * step + b * LINE % step;
	}
	free(order);
	return p;
}

static void *get_word(uint64_t word)
{
	uint64_t *p = get_memory(2 * PAGE + LINE, false);

	*p = word;
	return p;
}

static void *get_factors(double a, double b)
{
	double *p = get_memory(PAGE, false);

	p[0] = a;
	p[1] = b;
	return p;
}

static void *memory_of(const char *name)
{
	if (!strcmp(name, "chase_memory"))
		return get_chain(64 << 20, LINE, true);
	if (!strcmp(name, "chase_cache"))
		return get_chain(16 << 10, LINE, false);
	if (!strcmp(name, "chase_pages"))
		return get_chain(32 << 20, PAGE, false);
	if (!strcmp(name, "store_burst"))
		return get_memory(64 << 20, true);
	if (!strcmp(name, "denormal"))
		return get_factors(1e-160, 1e-160);
	if (!strcmp(name, "normal"))
		return get_factors(1.5, 2.5);
	return get_word(strcmp(name, "branch_always") ? 88172645463325252u : 0);
}

/* ---- running ---- */

static const struct {
	const char *name;
	void (*run)(uint64_t n, void *memory);
} loops[] = {
	{"chase_memory", chase_memory},
	{"chase_cache", chase_cache},
	{"chase_pages", chase_pages},
	{"forward_blocked", forward_blocked},
	{"forward_fits", forward_fits},
	{"alias_4k", alias_4k},
	{"alias_none", alias_none},
	{"branch_random", branch_random},
	{"branch_always", branch_always},
	{"divide", divide},
	{"locked_add", locked_add},
	{"fenced", fenced},
	{"denormal", denormal},
	{"normal", normal},
	{"store_burst", store_burst},
	{"code_lines", code_lines},
	{"code_pages", code_pages},
	{"code_fits", code_fits},
};

/* In calls of some 200 ms, so that nearly all time is inside; says how long one round took. */
static void run(void (*loop)(uint64_t n, void *memory), void *memory, double seconds)
{
	double start = burn_cpu_seconds(), began;
	uint64_t slice = 1000, rounds = 0;

	for (double spent = 0; spent < 0.01; slice *= 2) {
		double before = burn_cpu_seconds();

		loop(slice, memory);
		spent = burn_cpu_seconds() - before;
	}
	slice *= 10;
	for (began = burn_cpu_seconds(); burn_cpu_seconds() < start + seconds; rounds += slice)
		loop(slice, memory);
	printf("%.3f ns a round\n", (burn_cpu_seconds() - began) / (double)rounds * 1e9);
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < sizeof loops / sizeof *loops; i++)
		if (!strcmp(argv[1], loops[i].name)) {
			run(loops[i].run, memory_of(loops[i].name), atof(argv[2]));
			return 0;
		}
	errx(2, "usage: culprits NAME SECONDS");
}
