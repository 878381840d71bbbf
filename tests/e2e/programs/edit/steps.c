/*
 * Runs work() one instruction at a time and walks the stack at each of them: from everywhere the
 * frame of main must be found. Prints how often it was not, and what work() returned.
 * Usage: steps [ROUNDS]
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unwind.h>

#define NOINLINE __attribute__((noinline, noclone))

enum { TRAP_FLAG = 0x100 };

static _Unwind_Word goal; /* main's */
static volatile int stepping;
static unsigned long steps, lost;

struct search {
	int found;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg)
{
	struct search *s = arg;
	s->found |= _Unwind_GetCFA(context) == goal;
	return s->found ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* The next instruction traps as well, as long as we are stepping. */
static void on_trap(int number, siginfo_t *info, void *arg)
{
	ucontext_t *context = arg;
	struct search s = {0};
	(void)number;
	(void)info;
	if (stepping)
		context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
	else
		context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	_Unwind_Backtrace(step, &s);
	steps++;
	lost += !s.found;
}

static NOINLINE unsigned leaf(unsigned x)
{
	unsigned room[8]; /* in the red zone */
	for (unsigned i = 0; i < 8; i++)
		room[i] = x * i;
	__asm__ volatile("" ::"r"(room) : "memory");
	for (unsigned i = 0; i < 8; i++)
		x ^= room[(i * 3) % 8];
	return x;
}

static NOINLINE unsigned switched(unsigned x)
{
	switch (x % 7) {
	case 0:
		return leaf(x) + 1;
	case 1:
		return x * 3;
	case 2:
		return leaf(x + 1) ^ leaf(x);
	case 3:
		return x >> 2;
	case 4:
		return leaf(leaf(x));
	case 5:
		return x - 5;
	}
	return ~x;
}

static NOINLINE unsigned aligned(unsigned x)
{
	_Alignas(64) volatile unsigned room[16];
	volatile unsigned char *more = __builtin_alloca(16 + x % 64);
	for (unsigned i = 0; i < 16; i++)
		room[i] = switched(x + i);
	more[3] = (unsigned char)x;
	return room[x % 16] + more[3];
}

static int compare(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
	return x < y ? -1 : x > y;
}

static NOINLINE unsigned recursive(unsigned n)
{
	unsigned list[4] = {n * 7 % 5, n * 3 % 5, n, 2};
	if (n == 0)
		return aligned(n);
	qsort(list, 4, sizeof *list, compare);
	return recursive(n - 1) * 31 + aligned(list[n % 4]);
}

static NOINLINE unsigned work(unsigned n)
{
	unsigned sum = 0;
	stepping = 1;
	raise(SIGTRAP);
	for (unsigned i = 0; i < n; i++)
		sum = sum * 5 + recursive(i);
	stepping = 0;
	return sum;
}

int main(int argc, char **argv)
{
	_Unwind_Backtrace(step, &(struct search){1}); /* loads what it needs */
	goal = (_Unwind_Word)__builtin_dwarf_cfa();
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	sigaction(SIGTRAP, &action, NULL);
	unsigned sum = work(argc > 1 ? (unsigned)atoi(argv[1]) : 6);
	printf("lost %lu of %s, sum %u\n", lost, steps > 1000 ? "many" : "few", sum);
	fprintf(stderr, "%lu steps\n", steps);
	return 0;
}
