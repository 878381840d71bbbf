#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "collect/scout_internal.h"

/*
 * A child that works and makes the same call again and again, and is held.
 */

enum { SECONDS = 60, HOLDS = 200 };

extern const char call_here[]; /* the instruction */

static _Alignas(64) uint8_t vectors[EXCURSION_VECTORS];
static volatile int rung;

static void ring(int number)
{
	(void)number;
	rung++;
}

_Noreturn static void call_often(long number, long argument, bool signals)
{
	static char byte;
	struct sigaction by = {.sa_handler = ring, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 1000}, {0, 1000}};

	sigaction(SIGALRM, &by, NULL);
	if (signals)
		setitimer(ITIMER_REAL, &often, NULL);
	for (;;) {
		long result;

		for (volatile int i = 0; i < 100000; i++)
			;
		__asm__ volatile(".globl call_here\n"
				 "call_here: syscall"
				 : "=a"(result)
				 : "a"(number), "D"(argument), "S"(&byte), "d"(1)
				 : "rcx", "r11", "memory");
		if (result < 0)
			_exit(1);
	}
}

static pid_t child_that_calls(long number, long argument, bool signals)
{
	sigset_t children;
	pid_t child;

	alarm(SECONDS);
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, NULL);
	scout_threads_listen();
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		call_often(number, argument, signals);
	}
	return child;
}

static void hold(pid_t child)
{
	enum scout_hold held;

	while ((held = scout_thread_hold(child)) == SCOUT_LATE)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_int_equal(held, SCOUT_HELD);
}

static bool is_held(pid_t child)
{
	_cleanup_free_ char *path = xasprintf("/proc/%d/status", child);
	char text[2048] = {0};
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof text - 1) > 0);
	close(fd);
	return !strstr(text, "TracerPid:\t0\n");
}

static void end(pid_t child)
{
	int status;

	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	alarm(0);
}

static struct user_regs_struct at_call(long number)
{
	return (struct user_regs_struct){
		.rax = (uint64_t)number, .rip = (uint64_t)(uintptr_t)call_here};
}

static void test_call_is_passed(void **state)
{
	struct user_regs_struct at = at_call(SYS_getppid), r;
	pid_t child = child_that_calls(SYS_getppid, 0, false);

	(void)state;
	for (int i = 0; i < HOLDS; i++) {
		hold(child);
		assert_true(is_held(child));
		if (!scout_thread_pass_call(child, &at))
			continue; /* it was in the call when it was held */
		assert_true(scout_thread_state(child, &r, vectors));
		assert_int_equal(r.rip, at.rip + 2);
		assert_int_equal(r.rax, getpid());
		scout_thread_release(child);
		assert_false(is_held(child));
	}
	end(child);
}

/* It may be one that waits, or an execve that gives rights. */
static void test_another_call_is_not(void **state)
{
	struct user_regs_struct other = at_call(SYS_getpid), elsewhere = at_call(SYS_getppid);
	pid_t child = child_that_calls(SYS_getppid, 0, false);

	(void)state;
	elsewhere.rip += 2;
	for (int i = 0; i < HOLDS; i++) {
		hold(child);
		assert_false(scout_thread_pass_call(child, i % 2 ? &other : &elsewhere));
		assert_false(is_held(child));
	}
	end(child);
}

/* What the kernel has in rax then is nothing that a program ever sees. */
static void test_call_that_is_done_again(void **state)
{
	struct user_regs_struct at = at_call(SYS_read), r;
	int link[2];
	pid_t child;

	(void)state;
	assert_int_equal(pipe(link), 0);
	child = child_that_calls(SYS_read, link[0], true);
	for (int i = 0; i < HOLDS; i++) {
		assert_int_equal(write(link[1], "x", 1), 1);
		hold(child);
		if (scout_thread_pass_call(child, &at)) {
			assert_true(scout_thread_state(child, &r, vectors));
			assert_int_equal(r.rax, 1);
			scout_thread_release(child);
		}
		assert_false(is_held(child));
	}
	close(link[0]);
	close(link[1]);
	end(child);
}

struct descriptors {
	int file, link[2], plain[2], receives[2], sends[2];
};

static void make(struct descriptors *d)
{
	struct timeval limit = {.tv_usec = 10000};

	d->file = memfd_create("file", 0);
	assert_true(d->file >= 0);
	assert_int_equal(pipe(d->link), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, d->plain), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, d->sends), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, d->receives), 0);
	setsockopt(d->receives[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(d->receives[1], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static void close_all(const struct descriptors *d)
{
	close(d->file);
	for (int i = 0; i < 2; i++) {
		close(d->link[i]);
		close(d->plain[i]);
		close(d->receives[i]);
		close(d->sends[i]);
	}
}

static bool is_short(pid_t child, long number, int fd, size_t n)
{
	struct user_regs_struct at = at_call(number);

	at.rdi = (uint64_t)fd;
	at.rdx = n;
	return scout_thread_at_short_call(child, child, &at);
}

/* Of others what we interrupt would be done in part, or fail. */
static void test_calls_that_go_on(void **state)
{
	struct descriptors d;
	pid_t child;

	(void)state;
	make(&d);
	child = child_that_calls(SYS_getppid, 0, false);
	hold(child);
	assert_true(is_short(child, SYS_read, d.file, 1 << 20));
	assert_true(is_short(child, SYS_write, d.file, 1 << 20));
	assert_true(is_short(child, SYS_writev, d.file, 1));
	assert_true(is_short(child, SYS_read, d.link[0], 1 << 20));
	assert_true(is_short(child, SYS_write, d.link[1], 4096));
	assert_false(is_short(child, SYS_write, d.link[1], 4097));
	assert_true(is_short(child, SYS_read, d.plain[0], 100000));
	assert_false(is_short(child, SYS_write, d.plain[0], 100000));
	assert_true(is_short(child, SYS_write, d.sends[0], 100000));
	assert_false(is_short(child, SYS_read, d.receives[0], 1));
	assert_false(is_short(child, SYS_write, d.receives[1], 1));
	assert_true(is_short(child, SYS_read, 12345, 1));
	assert_true(is_short(child, SYS_close, d.receives[0], 1 << 20));
	assert_false(is_short(child, SYS_execve, d.file, 0));
	scout_thread_release(child);
	close_all(&d);
	end(child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call_is_passed),
		cmocka_unit_test(test_another_call_is_not),
		cmocka_unit_test(test_call_that_is_done_again),
		cmocka_unit_test(test_calls_that_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
