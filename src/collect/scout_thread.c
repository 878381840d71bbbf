#include "collect/scout_internal.h"

#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define CALL_STOP (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */

/* The state in a line of /proc/PID/stat stands behind the name, which may hold anything. */
static bool is_running(pid_t tid)
{
	_cleanup_free_ char *path = xasprintf("/proc/%d/stat", tid);
	char line[512];
	const char *end;

	if (io_read_line(AT_FDCWD, path, line, sizeof line))
		return false;
	end = strrchr(line, ')');
	return end && end[1] == ' ' && end[2] == 'R';
}

/* What a thread may take to stop, and for a call that takes no long time as a rule. */
#define STOP_NS 100000000
#define CALL_NS 5000000

static void wake(int number)
{
	(void)number;
}

void scout_threads_listen(void)
{
	struct sigaction by = {.sa_handler = wake};

	sigaction(SIGCHLD, &by, NULL);
}

/* Of one whose number an execve of another thread has taken no news come: it is looked after. */
#define LOOK_NS 2000000

static void wait_for_news(uint64_t ns)
{
	sigset_t children;

	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigtimedwait(
		&children, NULL, &(struct timespec){.tv_nsec = ns < LOOK_NS ? (long)ns : LOOK_NS});
}

/* What becomes of a thread: 1 and how it is, 0 for nothing until then, negative: it is gone. */
static int wait_until(pid_t tid, uint64_t end, int *status)
{
	for (;;) {
		pid_t got = waitpid(tid, status, __WALL | WNOHANG);
		uint64_t now = io_clock_ns(CLOCK_MONOTONIC);

		if (got)
			return got == tid && WIFSTOPPED(*status) ? 1 : -1;
		if (now >= end)
			return 0;
		wait_for_news(end - now);
	}
}

/* The signal that a thread in a stop is about to get. */
static int signal_of(int status)
{
	return status >> 16 == PTRACE_EVENT_STOP || WSTOPSIG(status) == CALL_STOP
		       ? 0
		       : WSTOPSIG(status);
}

/* False: it is not stopped. Who is killed in a stop is in none any more, and his parent learns of
 * it when we have. */
static bool detach(pid_t tid, int status)
{
	return ptrace(PTRACE_DETACH, tid, 0, (void *)(intptr_t)signal_of(status)) == 0;
}

void scout_threads_tidy(void)
{
	int status;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
		if (WIFSTOPPED(status))
			detach(tid, status);
}

/* Of one that may run, or be about to get a signal. What does not come into a stop within the time
 * is tidied later. */
static void let_go(pid_t tid)
{
	uint64_t end = io_clock_ns(CLOCK_MONOTONIC) + STOP_NS;
	int status;

	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	while (wait_until(tid, end, &status) > 0 && !detach(tid, status))
		;
}

/* Until it stops as wanted: by us, or at a call; else it is let go. Signals on their way are passed
 * on. */
static bool wait_for(pid_t tid, int request, uint64_t within)
{
	uint64_t end = io_clock_ns(CLOCK_MONOTONIC) + within;
	bool call = request == PTRACE_SYSCALL;
	int status;

	while (wait_until(tid, end, &status) > 0) {
		bool ours = status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP;

		if (call ? WSTOPSIG(status) == CALL_STOP : ours)
			return true;
		if (status >> 16 == PTRACE_EVENT_STOP && !ours && detach(tid, status))
			return false; /* as with ^Z: it is to remain so */
		if (ptrace(request, tid, 0, (void *)(intptr_t)signal_of(status)) < 0)
			break;
	}
	let_go(tid);
	return false;
}

/* 0 or why not. */
static int seize(pid_t tid)
{
	return ptrace(PTRACE_SEIZE, tid, 0, (void *)(intptr_t)PTRACE_O_TRACESYSGOOD) < 0 ? errno
											 : 0;
}

enum scout_hold scout_thread_hold(pid_t tid)
{
	int code = is_running(tid) ? seize(tid) : ESRCH;

	/* The kernel refuses who has just ended, too; after an execve another has his number. */
	if (code == EPERM)
		code = is_running(tid) ? seize(tid) : ESRCH;
	if (code)
		return code == EPERM ? SCOUT_REFUSED : SCOUT_LATE;
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	return wait_for(tid, PTRACE_CONT, STOP_NS) ? SCOUT_HELD : SCOUT_LATE;
}

void scout_thread_release(pid_t tid)
{
	if (ptrace(PTRACE_DETACH, tid, 0, 0) < 0)
		let_go(tid);
}

bool scout_thread_state(pid_t tid, struct user_regs_struct *registers, void *vectors)
{
	struct iovec area = {vectors, EXCURSION_VECTORS};

	return ptrace(PTRACE_GETREGS, tid, 0, registers) == 0 &&
	       ptrace(PTRACE_GETREGSET, tid, (void *)(intptr_t)NT_X86_XSTATE, &area) == 0;
}

/* Another call may wait for long, or be an execve that gives no rights to who is traced. */
static bool is_at_call(const struct user_regs_struct *r, const struct user_regs_struct *expected)
{
	return r->orig_rax == expected->rax && r->rip == expected->rip + SCOUT_CALL_LENGTH;
}

/* For a signal that comes first, as the kernel says it within (ERESTARTSYS and its like). */
static bool is_to_be_done_again(const struct user_regs_struct *r)
{
	return -(long long)r->rax >= 512 && -(long long)r->rax <= 516;
}

bool scout_thread_pass_call(pid_t tid, const struct user_regs_struct *at)
{
	for (int stop = 0; stop < 2; stop++) { /* at its beginning, at its end */
		struct user_regs_struct r;

		ptrace(PTRACE_SYSCALL, tid, 0, 0);
		if (!wait_for(tid, PTRACE_SYSCALL, CALL_NS))
			return false;
		if (ptrace(PTRACE_GETREGS, tid, 0, &r) == 0 && is_at_call(&r, at) &&
			!(stop && is_to_be_done_again(&r)))
			continue;
		scout_thread_release(tid);
		return false;
	}
	return true;
}

int scout_thread_read(void *arg, uint64_t address, void *to, size_t n)
{
	struct iovec here = {to, n}, there = {(void *)(uintptr_t)address, n};

	return process_vm_readv(*(const pid_t *)arg, &here, 1, &there, 1, 0) == (ssize_t)n ? 1 : -1;
}
