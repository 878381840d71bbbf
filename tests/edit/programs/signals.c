/* Signal handlers in the middle of edited code: interrupted, repaired, left by longjmp. */
// edited: churn faults handle
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

static volatile sig_atomic_t ticks;
static sigjmp_buf out;

void handle(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)info;
	if (sig == SIGALRM)
		ticks++;
	else if (sig == SIGSEGV)
		siglongjmp(out, 5);
	else /* SIGILL: ud2 is skipped */
		u->uc_mcontext.gregs[REG_RIP] += 2;
}

__attribute__((noinline)) unsigned long churn(unsigned long n)
{
	unsigned long x = 88172645463325252ul, sum = 0;
	for (unsigned long i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		if (x & 1)
			sum += x % 1000;
		else
			sum ^= x;
	}
	return sum;
}

__attribute__((noinline)) int faults(volatile int *p, int n)
{
	int sum = n;
	asm volatile("ud2" : "+r"(sum));
	sum++;
	return *p + sum;
}

int main(void)
{
	struct sigaction act = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER};
	struct itimerval often = {{0, 500}, {0, 500}}, never;
	int n = 3;

	memset(&never, 0, sizeof never);
	sigaction(SIGALRM, &act, NULL);
	sigaction(SIGSEGV, &act, NULL);
	sigaction(SIGILL, &act, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	unsigned long sum = 0;
	while (ticks < 5)
		sum = churn(300000);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%lu\n", sum);
	printf("%d\n", faults(&n, 10));
	int r = sigsetjmp(out, 1);
	if (!r)
		faults(NULL, 1);
	printf("%d\n", r);
	return 0;
}
