/*
 * A program that would notice if somebody held it and did so wrong. Usage: held MODE N; prints
 * what it found, which is the same whoever looks on.
 *
 *   calls N    N rounds of a little work and of calls that wait: none may fail
 *   timer N    works until a timer has rung N times
 *   stop N     stops a child N times, in two ways: it stands still until it is told to go on
 *   kill N     kills a child of two threads N times: its parent learns of it
 *   threads N  N threads at once, each of which computes what is known
 *   forks N    N children, one after the other, each of which computes what is known
 *   traced N   a child that is traced by its parent works for N seconds
 *   spin N     works for N seconds, and prints nothing
 *   narrow N   the same in 32-bit code
 *   heir N     works for N seconds, in a thread that outlives the first one, whom SIGUSR1 ends
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* The same for the same seed, on any machine. */
static uint64_t work(uint64_t seed, unsigned turns)
{
	uint64_t x = seed | 1;

	for (unsigned i = 0; i < turns; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		if (x & 64)
			x += 3;
	}
	return x;
}

/* ---- calls that wait ---- */

static int writer(int to, int rounds)
{
	struct timespec t = {0, 100000};

	for (int i = 0; i < rounds; i++) {
		nanosleep(&t, NULL);
		if (write(to, "x", 1) != 1)
			return 1;
	}
	return 0;
}

static int sleeps(void)
{
	struct timespec t = {0, 100000};

	return nanosleep(&t, NULL) ? errno : 0;
}

static int polls(void)
{
	struct pollfd none = {.fd = -1};

	return poll(&none, 1, 1) < 0 ? errno : 0;
}

static int waits(int epoll)
{
	struct epoll_event e;

	return epoll_wait(epoll, &e, 1, 1) < 0 ? errno : 0;
}

static int reads(int from)
{
	char byte;

	return read(from, &byte, 1) != 1 ? errno : 0;
}

static void calls(int rounds)
{
	int failed[4] = {0}, link[2], epoll = epoll_create1(0), status;
	uint64_t sum = 0;
	pid_t child;

	if (epoll < 0 || pipe(link))
		err(1, "pipe");
	child = fork();
	if (!child)
		_exit(writer(link[1], rounds));
	for (int i = 0; i < rounds; i++) {
		sum += work((uint64_t)i, 20000);
		failed[0] += sleeps() != 0;
		sum += work((uint64_t)i, 20000);
		failed[1] += polls() != 0;
		sum += work((uint64_t)i, 20000);
		failed[2] += reads(link[0]) != 0;
		sum += work((uint64_t)i, 20000);
		failed[3] += waits(epoll) != 0;
	}
	waitpid(child, &status, 0);
	printf("failed: nanosleep %d, poll %d, read %d, epoll_wait %d\n", failed[0], failed[1],
		failed[2], failed[3]);
	printf("%llx\n", (unsigned long long)sum);
}

/* ---- signals ---- */

static volatile sig_atomic_t rung;

static void ring(int number)
{
	(void)number;
	rung++;
}

static void timer(int n)
{
	struct sigaction by = {.sa_handler = ring};
	struct itimerval often = {{0, 500}, {0, 500}}, never = {0};
	uint64_t x = 1;

	sigaction(SIGALRM, &by, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (rung < n)
		x = work(x, 1000);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%d\n", n);
}

struct shared {
	volatile uint64_t turns;
};

static struct shared *share(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		err(1, "mmap");
	return p;
}

static void nap(unsigned us)
{
	struct timespec t = {0, us * 1000L};

	while (nanosleep(&t, &t))
		;
}

/* Whether it moves: soon, or not for a while. */
static int moves(struct shared *s, int expected)
{
	uint64_t before = s->turns;

	for (int i = 0; i < (expected ? 5000 : 10) && s->turns == before; i++)
		nap(1000);
	return s->turns != before;
}

static void stop(int n)
{
	static const int by[] = {SIGSTOP, SIGTSTP};
	struct shared *s = share();
	int moved = 0, stuck = 0, odd = 0, status;
	pid_t child = fork();

	if (!child) {
		setpgid(0, 0); /* else nobody might stop it as terminals do */
		for (;;)
			s->turns += work(s->turns, 1000) != 0;
	}
	moves(s, 1);
	for (int i = 0; i < n; i++) {
		kill(child, by[i % 2]);
		odd += waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status) ||
		       WSTOPSIG(status) != by[i % 2];
		moved += moves(s, 0);
		kill(child, SIGCONT);
		odd += waitpid(child, &status, WCONTINUED) != child || !WIFCONTINUED(status);
		stuck += !moves(s, 1);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	printf("moved %d, stuck %d, odd %d\n", moved, stuck, odd);
}

static void *spin(void *arg)
{
	struct shared *s = arg;

	for (;;)
		s->turns += work(s->turns, 1000) != 0;
	return NULL;
}

static void kill_often(int n)
{
	int odd = 0, status;

	alarm(60); /* who is not told of a child waits for ever */
	for (int i = 0; i < n; i++) {
		struct shared *s = share();
		pid_t child = fork();
		pthread_t other;

		if (!child) {
			pthread_create(&other, NULL, spin, s);
			spin(s);
		}
		moves(s, 1);
		nap(2000 + 997u * (unsigned)i % 5000);
		kill(child, SIGKILL);
		odd += waitpid(child, &status, 0) != child || !WIFSIGNALED(status) ||
		       WTERMSIG(status) != SIGKILL;
		munmap(s, 4096);
	}
	printf("killed %d, odd %d\n", n, odd);
}

/* ---- threads ---- */

static void *compute(void *arg)
{
	return (void *)(uintptr_t)work((uintptr_t)arg, 3000000);
}

static void threads(int n)
{
	pthread_t *list = calloc((size_t)n, sizeof *list);
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		if (pthread_create(&list[i], NULL, compute, (void *)(uintptr_t)i))
			errx(1, "pthread_create");
	for (int i = 0; i < n; i++) {
		void *x;

		pthread_join(list[i], &x);
		sum += (uintptr_t)x;
	}
	printf("%llx\n", (unsigned long long)sum);
	free(list);
}

static void forks(int n)
{
	int wrong = 0, status;
	uint8_t expected = (uint8_t)work(7, 300000);

	for (int i = 0; i < n; i++) {
		pid_t child = fork();

		if (!child)
			_exit((uint8_t)work(7, 300000));
		wrong += waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
			 WEXITSTATUS(status) != expected;
	}
	printf("%d children, %d wrong\n", n, wrong);
}

static void spin_for(int seconds)
{
	volatile uint64_t x = 1;

	for (double end = now() + seconds; now() < end;)
		x = work(x, 1000000);
}

/* Turns in 32-bit code; the stack pointer waits in memory. */
static void put_narrow(uint8_t *at, uint32_t turns)
{
	uint32_t here = (uint32_t)(uintptr_t)at, stack = here + 2048, way = here + 17;
	uint8_t code[64] = {0x48, 0x89, 0x24, 0x25, 0, 0, 0, 0, /* mov %rsp,stack */
		0x6a, 0x23, 0x68, 0, 0, 0, 0, 0x48, 0xcb,       /* lretq to 32 bits, the next */
		0xb9, 0, 0, 0, 0, 0x49, 0x75, 0xfd,             /* mov $turns,%ecx; dec; jne */
		0xea, 0, 0, 0, 0, 0x33, 0,                      /* ljmp to 64 bits, the next */
		0x48, 0x8b, 0x24, 0x25, 0, 0, 0, 0, 0xc3};      /* mov stack,%rsp; ret */

	memcpy(code + 4, &stack, 4);
	memcpy(code + 11, &way, 4);
	memcpy(code + 18, &turns, 4);
	way = here + 32;
	memcpy(code + 26, &way, 4);
	memcpy(code + 36, &stack, 4);
	memcpy(at, code, sizeof code);
}

static void narrow(int seconds)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (p == MAP_FAILED)
		err(1, "mmap");
	put_narrow(p, 50000000);
	for (double end = now() + seconds; now() < end;)
		__asm__ volatile("sub $128,%%rsp; call *%0; add $128,%%rsp"
				 :
				 : "b"(p)
				 : "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
				 "memory", "cc");
}

static void *inherit(void *seconds)
{
	spin_for((int)(intptr_t)seconds);
	exit(0);
}

static void heir(int seconds)
{
	pthread_t thread;
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (pthread_create(&thread, NULL, inherit, (void *)(intptr_t)seconds))
		errx(1, "pthread_create");
	sigwait(&set, &number);
	pthread_exit(NULL);
}

static void traced(int n)
{
	int status, number;
	pid_t child = fork();

	if (!child) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(1);
		raise(SIGSTOP);
		spin_for(n);
		_exit(42);
	}
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		number = WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
		ptrace(PTRACE_CONT, child, 0, (void *)(intptr_t)number);
	}
	printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(int n);
	} modes[] = {{"calls", calls}, {"timer", timer}, {"stop", stop}, {"kill", kill_often},
		{"threads", threads}, {"forks", forks}, {"traced", traced}, {"spin", spin_for},
		{"narrow", narrow}, {"heir", heir}};

	for (size_t i = 0; argc == 3 && i < sizeof modes / sizeof *modes; i++)
		if (!strcmp(argv[1], modes[i].name)) {
			modes[i].run(atoi(argv[2]));
			return 0;
		}
	errx(2, "usage: held calls|timer|stop|kill|threads|forks|traced|spin|narrow|heir N");
}
