/*
 * CPU time in contexts that are hard to name, a tenth of it in each: behind a jump in place of a
 * call, at the bottom of a recursion, above frames whose size is not fixed, above one that was
 * never touched, after a longjmp, in a coroutine, in a signal handler on the program's stack and on
 * one of its own, in a child of vfork (which ends with its first sleep's time used up), called by
 * code that was made at run time. Usage: call_cases SECONDS
 */
#include "burn.h"

#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

BURNER(worker)

#define CASE __attribute__((noinline, noclone, no_icf, optimize("no-optimize-sibling-calls")))
#define KEEP __asm__ volatile("")

static double part;

/* By hand, so that it is a jump whatever the compiler thinks of it. */
CASE void jumped_to(void)
{
	worker(part);
	KEEP;
}
__asm__(".text\n.globl jumps\n.type jumps, @function\njumps:\n.cfi_startproc\njmp jumped_to\n"
	".cfi_endproc\n.size jumps, .-jumps\n");
void jumps(void);

CASE void in_jump(void)
{
	jumps();
	KEEP;
}

CASE void in_recursion(int depth)
{
	volatile char frame[100];

	frame[0] = 0;
	if (depth)
		in_recursion(depth - 1);
	else
		worker(part);
	frame[0]++;
}

CASE void in_alloca(int n)
{
	volatile char *room = alloca(64 + 48 * n);

	room[0] = 0;
	worker(part / 16);
	room[1] = 0;
}

/* The pages in the middle of its frame are not in memory. */
CASE void in_hollow(void)
{
	volatile char frame[90000];

	worker(part);
	frame[0] = 0;
}

static jmp_buf place;

CASE void leaves(int depth)
{
	volatile char frame[300];

	frame[0] = 0;
	if (depth)
		leaves(depth - 1);
	longjmp(place, 1);
}

CASE void in_longjmp(void)
{
	if (!setjmp(place))
		leaves(5);
	worker(part);
	KEEP;
}

static ucontext_t home, other;

CASE void in_coroutine(void)
{
	for (int i = 0; i < 8; i++) {
		worker(part / 8);
		swapcontext(&other, &home);
	}
}

CASE void coroutine(void)
{
	size_t size = 64 << 10;
	char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	getcontext(&other);
	other.uc_stack.ss_sp = stack;
	other.uc_stack.ss_size = size;
	other.uc_link = &home;
	makecontext(&other, in_coroutine, 0);
	for (int i = 0; i < 8; i++)
		swapcontext(&home, &other);
}

CASE void in_handler(int signal)
{
	(void)signal;
	worker(part);
	KEEP;
}

CASE void handled(int flags)
{
	struct sigaction a = {.sa_handler = in_handler, .sa_flags = flags};
	stack_t own = {.ss_size = 64 << 10};

	own.ss_sp = malloc(own.ss_size);
	sigaltstack(&own, NULL);
	sigaction(SIGUSR1, &a, NULL);
	raise(SIGUSR1);
	KEEP;
}

CASE void in_vfork(void)
{
	volatile char frame[500] = {0};
	pid_t child = vfork();

	if (child == 0) {
		worker(part);
		_exit(frame[0]);
	}
	waitpid(child, NULL, 0);
}

static CASE void called_by_made(void)
{
	worker(part);
	KEEP;
}

/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
static const unsigned char made[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
/* The same, and its second argument is the first of whom it calls. */
static const unsigned char by_other[] = {
	0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};

/* Who has a frame pointer, as what it made. */
__attribute__((noinline, noclone, optimize("no-omit-frame-pointer"))) void in_made(void)
{
	char *code = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(code, made, sizeof made);
	memcpy(code + 64, by_other, sizeof by_other);
	((void (*)(void *, void (*)(void)))(code + 64))(code, called_by_made);
	KEEP;
}

int main(int argc, char **argv)
{
	part = (argc > 1 ? atof(argv[1]) : 1) / 10;
	in_jump();
	in_recursion(20);
	for (int i = 0; i < 16; i++)
		in_alloca(i);
	in_hollow();
	in_longjmp();
	coroutine();
	handled(0);
	handled(SA_ONSTACK);
	in_vfork();
	in_made();
	return 0;
}
