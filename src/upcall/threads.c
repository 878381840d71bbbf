/*
 * Which ring and memory belong to which thread. A thread gets its own with its first sample. Nobody
 * is told when threads end, so those of dead ones are found when another thread needs one.
 */
#include "upcall/upcall_internal.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define REUSE_LOOKS 16 /* at memory of threads that may have ended, before more is taken */

static __thread struct upcall_thread *own __attribute__((tls_model("initial-exec")));

/* What this process has for each ring that it ever used. */
static _Atomic(struct upcall_thread *) memory[UPCALL_RINGS];
static _Atomic uint32_t looked, highest; /* the highest index in memory, plus 1 */

static pid_t thread_id(void)
{
	return (pid_t)syscall(SYS_gettid);
}

static bool is_dead(uint64_t owner)
{
	pid_t pid = owner >> 22 & 0x3fffff, tid = owner & 0x3fffff;

	return owner >> 44 == upcall_process.space && syscall(SYS_tgkill, pid, tid, 0) < 0 &&
	       errno == ESRCH;
}

static bool take_ring(uint32_t i, uint64_t me)
{
	_Atomic uint64_t *owner = &upcall_process.shared->owner[i];
	uint64_t was = atomic_load(owner);

	return (!was || is_dead(was)) && atomic_compare_exchange_strong(owner, &was, me);
}

/* One that this process has memory for already, then a free one, then any of a dead thread. */
static int find_ring(uint64_t me)
{
	uint32_t top = atomic_load(&highest);

	for (uint32_t k = 0; top && k < REUSE_LOOKS && k < top; k++) {
		uint32_t i = atomic_fetch_add(&looked, 1) % top;

		if (atomic_load(&memory[i]) && take_ring(i, me))
			return (int)i;
	}
	for (uint32_t i = 0; i < UPCALL_RINGS; i++) {
		uint64_t free = 0;

		if (atomic_compare_exchange_strong(&upcall_process.shared->owner[i], &free, me))
			return (int)i;
	}
	for (uint32_t i = 0; i < UPCALL_RINGS; i++) {
		if (take_ring(i, me))
			return (int)i;
	}
	return -1;
}

/* One piece: the thread, what its plug-ins remember, the stack. */
static struct upcall_thread *make_memory(void)
{
	struct upcall_thread *t = mmap(NULL, upcall_process.thread_size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *p = (char *)(t + 1);

	if (t == MAP_FAILED)
		return NULL;
	for (size_t i = 0; i < upcall_process.nplugins; i++) {
		t->state[i] = (void *)(((uintptr_t)p + 63) & ~(uintptr_t)63);
		p = (char *)t->state[i] + upcall_process.plugins[i].is->state_size;
	}
	t->stack_top = (char *)t + upcall_process.thread_size;
	return t;
}

static void note_highest(uint32_t n)
{
	uint32_t was = atomic_load(&highest);

	while (was < n && !atomic_compare_exchange_weak(&highest, &was, n))
		;
}

static void begin_thread(struct upcall_thread *t, pid_t tid, int ring)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	for (size_t i = 0; i < upcall_process.nplugins; i++)
		__builtin_memset(t->state[i], 0, upcall_process.plugins[i].is->state_size);
	t->ring = &upcall_process.shared->ring[ring];
	t->pid = upcall_process.pid;
	t->tid = tid;
	t->busy = 0;
	t->random = ((uint64_t)now.tv_nsec << 32 ^ (uint64_t)tid * 0x9e3779b97f4a7c15ull) | 1;
}

static struct upcall_thread *new_thread(void)
{
	pid_t tid = thread_id();
	uint64_t me = UPCALL_OWNER(upcall_process.space, upcall_process.pid, tid);
	int ring = find_ring(me);
	struct upcall_thread *t;

	if (ring < 0)
		return NULL;
	t = atomic_load(&memory[ring]);
	if (!t) {
		t = make_memory();
		atomic_store(&memory[ring], t);
		note_highest((uint32_t)ring + 1);
	}
	if (!t) {
		atomic_store(&upcall_process.shared->owner[ring], 0);
		return NULL;
	}
	begin_thread(t, tid, ring);
	return t;
}

/* Where a fault in a load of ours pushes its frame. */
static bool is_on_alternate_stack(const ucontext_t *uc)
{
	uintptr_t at = (uintptr_t)uc, low = (uintptr_t)uc->uc_stack.ss_sp;

	return !(uc->uc_stack.ss_flags & SS_DISABLE) && at >= low &&
	       at < low + uc->uc_stack.ss_size;
}

static void on_own_stack(void *arg)
{
	struct upcall_thread *t = arg;
	const ucontext_t *uc = t->sample;
	const stack_t none = {.ss_flags = SS_DISABLE};
	sigset_t faults;

	/*
	 * The program's signal stack holds our frame, but as seen from here it is unused: a fault
	 * would begin at its top again. The end of the handler puts it back.
	 */
	if (is_on_alternate_stack(uc))
		sigaltstack(&none, NULL);
	if (sigismember(&uc->uc_sigmask, SIGSEGV) || sigismember(&uc->uc_sigmask, SIGBUS)) {
		sigemptyset(&faults);
		sigaddset(&faults, SIGSEGV);
		sigaddset(&faults, SIGBUS);
		syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults, NULL, 8);
	}
	upcall_burst(t);
}

static void call_on(void *top, void (*fn)(void *), void *arg)
{
	__asm__ volatile("mov %%rsp, %%rbx\n\t"
			 "mov %[top], %%rsp\n\t"
			 "call *%[fn]\n\t"
			 "mov %%rbx, %%rsp"
			 : "+D"(arg), [top] "+S"(top), [fn] "+d"(fn)
			 :
			 : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2",
			 "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
			 "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc");
}

void upcall_sample(ucontext_t *uc)
{
	struct upcall_sums *sums = &upcall_process.shared->sums;

	if (atomic_load_explicit(&upcall_process.barred, memory_order_relaxed)) {
		upcall_add(&sums->barred, 1);
		return;
	}
	if (!own)
		own = new_thread();
	if (!own || atomic_exchange(&own->busy, 1)) {
		upcall_add(&sums->busy, 1);
		return;
	}
	own->sample = uc;
	call_on(own->stack_top, on_own_stack, own);
	atomic_store(&own->busy, 0);
}

void upcall_forget_thread(void)
{
	own = NULL;
}
