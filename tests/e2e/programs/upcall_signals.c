/*
 * Programs that use signals, stacks, threads and processes in ways that a sampler inside the
 * process must not disturb: `upcall_signals MODE`. Each mode checks itself, prints "ok" and ends
 * with 0; what is wrong is said on standard error.
 */
#include "burn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;

#define CHECK(condition)                                                            \
	do {                                                                        \
		if (!(condition)) {                                                 \
			fprintf(stderr, "line %d: not %s\n", __LINE__, #condition); \
			exit(1);                                                    \
		}                                                                   \
	} while (0)

static volatile sig_atomic_t traps, faults, ticks;
static sigjmp_buf back;

static void on_action(int signal, void (*handler)(int), int flags)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = flags};

	sigemptyset(&a.sa_mask);
	CHECK(sigaction(signal, &a, NULL) == 0);
}

static void tick_every(int microseconds)
{
	struct itimerval t = {{0, microseconds}, {0, microseconds}};

	CHECK(setitimer(ITIMER_PROF, &t, NULL) == 0);
}

/* ---- handlers of its own ---- */

static void count_trap(int signal)
{
	(void)signal;
	traps++;
}

static void trap_info(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	CHECK(signal == SIGTRAP && info->si_code > 0);
	CHECK(((uint8_t *)uc->uc_mcontext.gregs[REG_RIP])[-1] == 0xcc);
	traps++;
}

static void handlers(void)
{
	struct sigaction a = {.sa_sigaction = trap_info, .sa_flags = SA_SIGINFO}, old;

	sigemptyset(&a.sa_mask);
	CHECK(sigaction(SIGTRAP, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
	CHECK(sigaction(SIGTRAP, &a, &old) == 0 && old.sa_handler == SIG_DFL);
	for (int i = 0; i < 300; i++) {
		__asm__ volatile("int3");
		burn_here(0.0005);
	}
	CHECK(traps == 300);
	CHECK(signal(SIGTRAP, count_trap) == (void (*)(int))trap_info);
	raise(SIGTRAP);
	kill(getpid(), SIGTRAP);
	CHECK(traps == 302);
	CHECK(sigaction(SIGTRAP, NULL, &old) == 0 && old.sa_handler == count_trap);
	on_action(SIGTRAP, count_trap, (int)SA_RESETHAND);
	raise(SIGTRAP);
	CHECK(traps == 303);
	CHECK(sigaction(SIGTRAP, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
	CHECK(signal(SIGTRAP, SIG_IGN) == SIG_DFL);
	raise(SIGTRAP);
	burn_here(0.05);
	CHECK(traps == 303);
}

/* ---- faults ---- */

static void jump_back(int signal)
{
	faults++;
	siglongjmp(back, signal);
}

static void fault_often(volatile char *bad, int signal)
{
	volatile int i;

	for (i = 0; i < 2000; i++) {
		if (sigsetjmp(back, 1) == 0) {
			for (volatile int k = 0; k < 200; k++)
				;
			*bad;
			CHECK(!"a load from nowhere went on");
		}
	}
	CHECK(faults == 2000);
	CHECK(sigaction(signal, NULL, NULL) == 0);
}

static void segv(void)
{
	on_action(SIGSEGV, jump_back, 0);
	fault_often(NULL, SIGSEGV);
}

/* A page behind the end of its file, with a handler on a stack of its own. */
static void bus(void)
{
	stack_t stack = {.ss_size = 65536, .ss_sp = malloc(65536)};
	int fd = memfd_create("short", 0);
	char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

	CHECK(sigaltstack(&stack, NULL) == 0);
	on_action(SIGBUS, jump_back, SA_ONSTACK);
	fault_often(page, SIGBUS);
}

/* ---- signal stacks ---- */

static char *alternate;
static size_t alternate_size;

static void on_stack(int signal)
{
	char here[256];
	stack_t now;

	memset(here, signal, sizeof here);
	CHECK(&here[0] >= alternate && &here[0] < alternate + alternate_size);
	CHECK(sigaltstack(NULL, &now) == 0 && now.ss_sp == alternate);
	burn_here(0.0002);
	for (size_t i = 0; i < sizeof here; i++)
		CHECK(here[i] == signal);
	ticks++;
}

/* As small as the system allows with what the handler itself needs. */
static void use_small_stack(void)
{
	stack_t stack = {0};

	alternate_size = (size_t)sysconf(_SC_MINSIGSTKSZ) + 3072;
	alternate = malloc(alternate_size);
	stack.ss_sp = alternate;
	stack.ss_size = alternate_size;
	CHECK(sigaltstack(&stack, NULL) == 0);
}

static void altstack(void)
{
	stack_t off = {.ss_flags = SS_DISABLE}, now;

	use_small_stack();
	on_action(SIGPROF, on_stack, SA_ONSTACK | SA_RESTART);
	tick_every(4000);
	burn_here(0.5);
	CHECK(ticks > 2);
	tick_every(0);
	CHECK(sigaltstack(&off, &now) == 0 && now.ss_sp == alternate);
	burn_here(0.05);
	CHECK(sigaltstack(NULL, &now) == 0 && now.ss_flags & SS_DISABLE);
}

enum { SMALL = 4096, COROUTINES = 8 };
static ucontext_t scheduler, coroutine[COROUTINES];
static int rounds[COROUTINES];

static void coroutine_body(int n)
{
	for (;;) {
		volatile long x = n;

		for (int i = 0; i < 3000; i++)
			x += i;
		rounds[n]++;
		swapcontext(&coroutine[n], &scheduler);
	}
}

/* Stacks too small for a signal's frame, with signals on a stack of their own: as Go has it. */
static void coroutines(void)
{
	stack_t stack = {.ss_size = 32768, .ss_sp = malloc(32768)};
	unsigned char *room = mmap(NULL, COROUTINES * 2 * SMALL, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double end;

	CHECK(sigaltstack(&stack, NULL) == 0);
	for (int i = 0; i < COROUTINES; i++) {
		CHECK(mprotect(room + i * 2 * SMALL, SMALL, PROT_NONE) == 0);
		getcontext(&coroutine[i]);
		coroutine[i].uc_stack.ss_sp = room + i * 2 * SMALL + SMALL;
		coroutine[i].uc_stack.ss_size = SMALL;
		makecontext(&coroutine[i], (void (*)(void))coroutine_body, 1, i);
	}
	for (end = burn_cpu_seconds() + 0.4; burn_cpu_seconds() < end;) {
		for (int i = 0; i < COROUTINES; i++)
			swapcontext(&scheduler, &coroutine[i]);
	}
	for (int i = 1; i < COROUTINES; i++)
		CHECK(rounds[i] == rounds[0] && rounds[i] > 0);
}

/* ---- masks and jumps ---- */

static void masks(void)
{
	struct timespec none = {0, 0};
	sigset_t all, old, now;

	sigfillset(&all);
	CHECK(sigprocmask(SIG_SETMASK, &all, &old) == 0 && !sigismember(&old, SIGTRAP));
	burn_here(0.2);
	CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0 && sigismember(&now, SIGTRAP));
	CHECK(sigpending(&now) == 0 && !sigismember(&now, SIGTRAP));
	CHECK(sigtimedwait(&all, NULL, &none) < 0 && errno == EAGAIN);
	CHECK(pthread_sigmask(SIG_SETMASK, &old, &now) == 0 && sigismember(&now, SIGTRAP));
	CHECK(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0 && !sigismember(&now, SIGTRAP));
	burn_here(0.1);
}

static void jump_out(int signal)
{
	ticks++;
	siglongjmp(back, signal);
}

static void jumps(void)
{
	double end = burn_cpu_seconds() + 0.5;

	on_action(SIGPROF, jump_out, 0);
	sigsetjmp(back, 1);
	tick_every(4000);
	while (burn_cpu_seconds() < end)
		burn_here(0.001);
	tick_every(0);
	CHECK(ticks > 2);
}

/* ---- threads ---- */

static void *short_thread(void *arg)
{
	burn_here(0.001);
	return arg;
}

static void threads(void)
{
	for (int round = 0; round < 40; round++) {
		pthread_t t[8];
		pthread_attr_t a;

		pthread_attr_init(&a);
		pthread_attr_setstacksize(&a, 32768);
		for (int i = 0; i < 8; i++)
			CHECK(pthread_create(&t[i], &a, short_thread, t) == 0);
		for (int i = 0; i < 8; i++) {
			void *result;

			CHECK(pthread_join(t[i], &result) == 0 && result == t);
		}
	}
}

static atomic_int lock, stop;
static volatile long *_Atomic shared_page;

static void *unmapper(void *arg)
{
	while (!stop) {
		while (atomic_exchange(&lock, 1))
			;
		munmap((void *)shared_page, 4096);
		shared_page = mmap(
			NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		atomic_store(&lock, 0);
		for (volatile int i = 0; i < 100; i++)
			;
	}
	return arg;
}

/* Memory that goes away under whoever looks at it without the lock: in shadow nobody holds it. */
static void unmaps(void)
{
	double end = burn_cpu_seconds() + 0.5;
	pthread_t t;

	shared_page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pthread_create(&t, NULL, unmapper, NULL) == 0);
	while (burn_cpu_seconds() < end) {
		for (int i = 0; i < 1000; i++) {
			while (atomic_exchange(&lock, 1))
				;
			CHECK(*shared_page == 0);
			atomic_store(&lock, 0);
		}
	}
	stop = 1;
	CHECK(pthread_join(t, NULL) == 0);
}

/* ---- processes ---- */

static void expect(pid_t pid, int wanted)
{
	int status;

	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	if (status != wanted)
		fprintf(stderr, "status %x instead of %x\n", status, wanted);
	CHECK(status == wanted);
}

static void forks(void)
{
	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			burn_here(0.003);
			_exit(i);
		}
		expect(pid, i << 8);
	}
}

/* All of these run /bin/true with the signals of a fresh program. */
static void spawns(void)
{
	char *command[] = {"true", NULL};
	posix_spawnattr_t attributes;
	sigset_t all;
	pid_t pid;

	sigfillset(&all);
	on_action(SIGSEGV, jump_back, 0);
	on_action(SIGTRAP, count_trap, 0);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	for (int i = 0; i < 60; i++) {
		pid = vfork();
		if (pid == 0) {
			signal(SIGTRAP, SIG_DFL);
			signal(SIGSEGV, SIG_DFL);
			execv("/bin/true", command);
			_exit(127);
		}
		expect(pid, 0);
		CHECK(posix_spawn(&pid, "/bin/true", NULL, &attributes, command, environ) == 0);
		expect(pid, 0);
		CHECK(system("true") == 0);
	}
	raise(SIGTRAP); /* the child of vfork did not take our handlers with it */
	CHECK(traps == 1);
}

/* Blocks all, and executes itself to see what comes out when it unblocks. */
static void exec_blocked(void)
{
	char *command[] = {"upcall_signals", "unblock", NULL};
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	burn_here(0.05);
	execv("/proc/self/exe", command);
}

static void unblock(void)
{
	sigset_t now;

	CHECK(sigprocmask(SIG_SETMASK, NULL, &now) == 0 && sigismember(&now, SIGUSR1));
	sigemptyset(&now);
	sigprocmask(SIG_SETMASK, &now, NULL);
	burn_here(0.05);
}

/* A sandbox that allows read, write, exit and the end of signal handlers. */
static void sandbox(void)
{
	burn_here(0.02);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
	for (volatile long i = 0; i < 100000000; i++)
		;
	CHECK(write(1, "ok\n", 3) == 3);
	syscall(SYS_exit, 0);
}

/* The same as a filter, which leaves the clock alone: samples go on, without system calls. */
static void filter(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof *code, code};

	burn_here(0.02);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
	for (volatile long i = 0; i < 100000000; i++)
		;
	CHECK(write(1, "ok\n", 3) == 3);
	syscall(SYS_exit, 0);
}

static void closes(void)
{
	for (int i = 3; i < 1024; i++)
		close(i);
	for (int i = 3; i < 1000; i++)
		CHECK(dup(0) == i);
	burn_here(0.05);
	forks();
	for (int i = 3; i < 1000; i++)
		CHECK(fcntl(i, F_GETFD) == 0);
}

/* ---- deaths ---- */

static void die_segv(void)
{
	burn_here(0.02);
	*(volatile int *)NULL = 0;
}

static void die_trap(void)
{
	burn_here(0.02);
	__asm__ volatile("int3");
}

static void die_kill(void)
{
	burn_here(0.02);
	kill(getpid(), SIGSEGV);
	burn_here(1);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = {{"handlers", handlers}, {"segv", segv}, {"bus", bus}, {"altstack", altstack},
		{"coroutines", coroutines}, {"masks", masks}, {"jumps", jumps},
		{"threads", threads}, {"unmaps", unmaps}, {"forks", forks}, {"spawns", spawns},
		{"exec_blocked", exec_blocked}, {"unblock", unblock}, {"closes", closes},
		{"sandbox", sandbox}, {"filter", filter}, {"die_segv", die_segv},
		{"die_trap", die_trap}, {"die_kill", die_kill}};

	for (size_t i = 0; argc == 2 && i < sizeof modes / sizeof *modes; i++) {
		if (!strcmp(argv[1], modes[i].name)) {
			modes[i].run();
			puts("ok");
			return 0;
		}
	}
	return 2;
}
