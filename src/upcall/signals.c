/*
 * The signals that the library needs, and how the program keeps them.
 *
 * SIGTRAP is ours in the kernel; the program's own action for it is kept here, and SIGTRAPs that
 * are not samples are handed on. It is never blocked in truth while the program runs: a sample that
 * waits would come at the wrong place, survive an exec and kill the next program. What the program
 * believes to have blocked is remembered by thread. The exception are handlers on the program's
 * signal stack, which may be too small for another frame on top.
 *
 * SIGSEGV and SIGBUS have the program's action in the kernel, flags and mask included, only the
 * function is ours: it puts right our own loads and jumps to the program's for all else.
 *
 * A child of vfork runs in its parent's memory with signals of its own. It has no events; what it
 * does to signals goes to the kernel and is not kept.
 */
#include "upcall/upcall_internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT     __attribute__((visibility("default")))
#define TRAP_SENT  6 /* si_code TRAP_PERF */
#define IS_LATE    1 /* si_perf_flags TRAP_PERF_FLAG_ASYNC */
#define KERNEL_SET 8 /* bytes of the kernel's sigset_t */

/* What the C library's header has no names for yet. */
struct perf_siginfo {
	int signo, error, code, pad;
	void *address;
	unsigned long data;
	uint32_t type, flags;
};

static int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);
static sighandler_t (*real_signal)(int, sighandler_t);
static sighandler_t (*real_sysv_signal)(int, sighandler_t);
static int (*real_sigprocmask)(int, const sigset_t *, sigset_t *);
static int (*real_pthread_sigmask)(int, const sigset_t *, sigset_t *);

/* The program's own actions for SIGTRAP, SIGSEGV and SIGBUS. */
static struct sigaction programs[3];
static const int ours[3] = {SIGTRAP, SIGSEGV, SIGBUS};
/* Signals in whose mask the program has SIGTRAP, a bit each. */
static _Atomic uint64_t masks_trap;
static _Atomic int changing;
static __thread bool blocks_trap __attribute__((tls_model("initial-exec")));

static int number_of(int signal)
{
	return signal == SIGTRAP ? 0 : signal == SIGSEGV ? 1 : signal == SIGBUS ? 2 : -1;
}

/* False in children of vfork and of bare clones too. */
static bool is_ours(void)
{
	return upcall_process.active && syscall(SYS_getpid) == upcall_process.pid;
}

static bool has_handler(const struct sigaction *a)
{
	return a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN;
}

/* ---- handlers ---- */

static void die_of(int signal)
{
	const struct sigaction usual = {.sa_handler = SIG_DFL};
	sigset_t set;

	real_sigaction(signal, &usual, NULL);
	sigemptyset(&set);
	sigaddset(&set, signal);
	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, NULL, KERNEL_SET);
	syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), signal);
}

/* To the program's handler of a SIGTRAP that is not ours, with the mask that it asked for. */
static void hand_on_trap(int signal, siginfo_t *info, ucontext_t *uc)
{
	struct sigaction a = programs[0];
	sigset_t mask;

	if (a.sa_handler == SIG_IGN && info->si_code <= 0)
		return;
	if (!has_handler(&a)) {
		die_of(signal);
		return;
	}
	if (a.sa_flags & (int)SA_RESETHAND)
		programs[0].sa_handler = SIG_DFL;
	sigorset(&mask, &uc->uc_sigmask, &a.sa_mask);
	if (a.sa_flags & SA_NODEFER)
		sigdelset(&mask, SIGTRAP);
	else
		sigaddset(&mask, SIGTRAP);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, KERNEL_SET);
	a.sa_sigaction(signal, info, uc);
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
	const struct perf_siginfo *perf = (const struct perf_siginfo *)info;
	int error = errno;

	if (info->si_code != TRAP_SENT || perf->data != UPCALL_DATA) {
		hand_on_trap(signal, info, context);
	} else if (perf->flags & IS_LATE) {
		upcall_add(&upcall_process.shared->sums.blocked, 1);
	} else {
		upcall_sample(context);
	}
	errno = error;
}

/*
 * The kernel delivers faults after other synchronous signals that wait, and does not look whether
 * these are blocked: a sample that came while another was taken may be let in between the faulting
 * instruction and its handler. Then the place of the fault is what that sample's frame goes back
 * to.
 */
static ucontext_t *place_of_fault(ucontext_t *uc)
{
	const greg_t *r = uc->uc_mcontext.gregs;

	return r[REG_RIP] == (greg_t)on_trap ? (ucontext_t *)r[REG_RDX] : uc;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	struct sigaction *slot = &programs[number_of(signal)], a = *slot;

	context = place_of_fault(context);
	if (upcall_load_fault(context))
		return;
	if (has_handler(&a)) {
		if (a.sa_flags & (int)SA_RESETHAND)
			slot->sa_handler = SIG_DFL;
		a.sa_sigaction(signal, info, context);
		return;
	}
	if (a.sa_handler == SIG_IGN && info->si_code <= 0)
		return;
	if (info->si_code > 0) {
		/* The instruction faults again, as if we had never been here. */
		a.sa_handler = SIG_DFL;
		real_sigaction(signal, &a, NULL);
		return;
	}
	die_of(signal);
}

/* ---- actions ---- */

/* Handlers that use the program's signal stack must not be interrupted by a sample. */
static void set_trap_in_mask(struct sigaction *a)
{
	if (a->sa_flags & SA_ONSTACK && has_handler(a))
		sigaddset(&a->sa_mask, SIGTRAP);
	else
		sigdelset(&a->sa_mask, SIGTRAP);
}

/* What the kernel shall do for a signal of ours when the program wants this. */
static void install(int signal, const struct sigaction *wanted)
{
	struct sigaction a = *wanted;

	if (signal == SIGTRAP) {
		a.sa_sigaction = on_trap;
		a.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
		sigfillset(&a.sa_mask);
		sigdelset(&a.sa_mask, SIGSEGV);
		sigdelset(&a.sa_mask, SIGBUS);
	} else if (has_handler(&a)) {
		a.sa_sigaction = on_fault;
		a.sa_flags = (a.sa_flags & ~(int)SA_RESETHAND) | SA_SIGINFO;
		set_trap_in_mask(&a);
	} else {
		a.sa_sigaction = on_fault;
		a.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
		sigemptyset(&a.sa_mask);
	}
	real_sigaction(signal, &a, NULL);
}

static void lock(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, old, KERNEL_SET);
	while (atomic_exchange(&changing, 1))
		;
}

static void unlock(const sigset_t *old)
{
	atomic_store(&changing, 0);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, old, NULL, KERNEL_SET);
}

static int change_ours(int signal, const struct sigaction *new, struct sigaction *old)
{
	struct sigaction *slot = &programs[number_of(signal)], wanted, was;
	sigset_t mask;

	if (new)
		wanted = *new;
	lock(&mask);
	was = *slot;
	if (new) {
		*slot = wanted;
		install(signal, slot);
	}
	unlock(&mask);
	if (old)
		*old = was;
	return 0;
}

/* All other signals: only whether SIGTRAP is in their mask is different from what was asked for. */
static int change_other(int signal, const struct sigaction *new, struct sigaction *old)
{
	uint64_t bit = signal > 0 && signal <= 64 ? 1ull << (signal - 1) : 0;
	bool had = atomic_load(&masks_trap) & bit;
	struct sigaction a;
	int rc;

	if (!new) {
		rc = real_sigaction(signal, NULL, old);
	} else {
		bool wants = sigismember(&new->sa_mask, SIGTRAP) > 0;

		a = *new;
		set_trap_in_mask(&a);
		rc = real_sigaction(signal, &a, old);
		if (rc == 0 && wants)
			atomic_fetch_or(&masks_trap, bit);
		else if (rc == 0)
			atomic_fetch_and(&masks_trap, ~bit);
	}
	if (rc == 0 && old && had)
		sigaddset(&old->sa_mask, SIGTRAP);
	else if (rc == 0 && old)
		sigdelset(&old->sa_mask, SIGTRAP);
	return rc;
}

EXPORT int sigaction(int signal, const struct sigaction *new, struct sigaction *old)
{
	int rc, n = number_of(signal);
	struct sigaction was;

	upcall_signals_find();
	if (!upcall_process.active)
		return real_sigaction(signal, new, old);
	if (!is_ours()) {
		if (n >= 0)
			was = programs[n];
		rc = new ? real_sigaction(signal, new, old) : real_sigaction(signal, NULL, old);
		if (rc == 0 && old && n >= 0 &&
			(old->sa_sigaction == on_trap || old->sa_sigaction == on_fault))
			*old = was;
		return rc;
	}
	return n >= 0 ? change_ours(signal, new, old) : change_other(signal, new, old);
}

static sighandler_t set_handler(int signal, sighandler_t handler, int flags)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = flags}, old;

	sigemptyset(&a.sa_mask);
	if (!(flags & SA_NODEFER))
		sigaddset(&a.sa_mask, signal);
	return sigaction(signal, &a, &old) < 0 ? SIG_ERR : old.sa_handler;
}

EXPORT sighandler_t signal(int signal, sighandler_t handler)
{
	upcall_signals_find();
	if (!upcall_process.active || number_of(signal) < 0)
		return real_signal(signal, handler);
	return set_handler(signal, handler, SA_RESTART);
}

EXPORT sighandler_t bsd_signal(int number, sighandler_t handler);
EXPORT sighandler_t bsd_signal(int number, sighandler_t handler)
{
	return signal(number, handler);
}

EXPORT sighandler_t ssignal(int number, sighandler_t handler)
{
	return signal(number, handler);
}

/* What signal() is in programs that ask for System V's. */
EXPORT sighandler_t __sysv_signal(int signal, sighandler_t handler);
EXPORT sighandler_t __sysv_signal(int signal, sighandler_t handler)
{
	upcall_signals_find();
	if (!upcall_process.active || number_of(signal) < 0)
		return real_sysv_signal(signal, handler);
	return set_handler(signal, handler, (int)SA_RESETHAND | SA_NODEFER);
}

EXPORT sighandler_t sysv_signal(int signal, sighandler_t handler)
{
	return __sysv_signal(signal, handler);
}

/* ---- masks ---- */

static int change_mask(
	int (*real)(int, const sigset_t *, sigset_t *), int how, const sigset_t *new, sigset_t *old)
{
	bool touches = new && (how == SIG_SETMASK || sigismember(new, SIGTRAP) > 0),
	     was = blocks_trap;
	bool wants = touches ? how != SIG_UNBLOCK && sigismember(new, SIGTRAP) > 0 : was;
	sigset_t set;
	int rc;

	if (!upcall_process.active || (!wants && !was) || !is_ours())
		return real(how, new, old);
	if (new) {
		set = *new;
		if (how != SIG_UNBLOCK)
			sigdelset(&set, SIGTRAP);
	}
	rc = real(how, new ? &set : NULL, old);
	if (rc != 0)
		return rc;
	blocks_trap = wants;
	if (old && was)
		sigaddset(old, SIGTRAP);
	return 0;
}

EXPORT int sigprocmask(int how, const sigset_t *new, sigset_t *old)
{
	upcall_signals_find();
	return change_mask(real_sigprocmask, how, new, old);
}

EXPORT int pthread_sigmask(int how, const sigset_t *new, sigset_t *old)
{
	upcall_signals_find();
	return change_mask(real_pthread_sigmask, how, new, old);
}

/* ---- beginning ---- */

void upcall_signals_find(void)
{
	if (real_pthread_sigmask)
		return;
	real_sigaction = dlsym(RTLD_NEXT, "sigaction");
	real_signal = dlsym(RTLD_NEXT, "signal");
	real_sysv_signal = dlsym(RTLD_NEXT, "__sysv_signal");
	real_sigprocmask = dlsym(RTLD_NEXT, "sigprocmask");
	real_pthread_sigmask = dlsym(RTLD_NEXT, "pthread_sigmask");
}

/* A SIGTRAP that an earlier program left behind blocked is taken for what the program wants. */
void upcall_signals_begin(void)
{
	sigset_t set;

	for (size_t i = 0; i < 3; i++) {
		real_sigaction(ours[i], NULL, &programs[i]);
		install(ours[i], &programs[i]);
	}
	sigemptyset(&set);
	real_sigprocmask(SIG_BLOCK, NULL, &set);
	blocks_trap = sigismember(&set, SIGTRAP) > 0;
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	real_sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Whoever was changing an action in another thread is not here. */
void upcall_signals_forked(void)
{
	atomic_store(&changing, 0);
}
