/*
 * Burns CPU time at the end of two call paths, or crashes there and tells what a crash report
 * would: PC, SP and where the stack begins. Usage: crasher SECONDS | crasher crash left|right
 */
#include "burn.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone, no_icf, optimize("no-optimize-sibling-calls")))

static volatile int crashes;
static volatile int *volatile nowhere;

APART void bottom(double seconds);
APART void left(double seconds);
APART void right(double seconds);

void bottom(double seconds)
{
	if (crashes)
		*nowhere = 1;
	burn_here(seconds);
}

void left(double seconds)
{
	bottom(seconds);
	__asm__ volatile("");
}

void right(double seconds)
{
	volatile char frame[100];

	frame[0] = 0;
	bottom(seconds);
	frame[0]++;
}

/* The 28th field; the name before it has no spaces. */
static unsigned long start_of_stack(void)
{
	FILE *f = fopen("/proc/self/stat", "r");
	char word[64];
	unsigned long start = 0;

	for (int i = 1; f && i <= 28 && fscanf(f, "%63s", word) == 1; i++)
		if (i == 28)
			start = strtoul(word, NULL, 10);
	return start;
}

static void tell(int signal, siginfo_t *info, void *context)
{
	const ucontext_t *c = context;
	unsigned long pc = (unsigned long)c->uc_mcontext.gregs[REG_RIP];
	Dl_info where;

	(void)signal, (void)info;
	dladdr((void *)pc, &where);
	printf("crasher+0x%lx,0x%lx,0x%lx\n", pc - (unsigned long)where.dli_fbase,
		(unsigned long)c->uc_mcontext.gregs[REG_RSP], start_of_stack());
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_sigaction = tell, .sa_flags = SA_SIGINFO};
	double seconds = argc == 2 ? atof(argv[1]) : 0;

	sigaction(SIGSEGV, &action, NULL);
	crashes = argc > 2;
	if (argc < 3 || !strcmp(argv[2], "left"))
		left(seconds / 2);
	if (argc < 3 || !strcmp(argv[2], "right"))
		right(seconds / 2);
	return 0;
}
