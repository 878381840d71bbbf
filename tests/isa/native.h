/*
 * The processor itself as an oracle: runs short pieces of code on given registers and memory in a
 * child process, and tells what they did.
 *
 * The child lives in its signal handler. It writes the registers of a case into the frame that the
 * handler returns to, and the case ends in the next trap: an int3 behind the code, a single step
 * (for code that jumps), or a fault. So all registers can be loaded and seen, the stack pointer
 * too, and a case costs one signal. Memory of a case is NATIVE_DATA, the same at the start of each;
 * what a case changed is listed. fs and gs point into it.
 *
 * What runs in the child between cases is bare: no library, for fs is the case's, and no
 * sanitizers, for their shadow memory lies where random addresses point to and is taken away.
 */
#ifndef CULPRIT_TESTS_NATIVE_H
#define CULPRIT_TESTS_NATIVE_H

#include <asm/prctl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

/* Low, so that 32-bit addresses and displacements reach them; nothing else is mapped near. */
#define NATIVE_CODE      0x10000000ul
#define NATIVE_CODE_SIZE 4096ul
#define NATIVE_DATA      0x20000000ul
#define NATIVE_DATA_SIZE 16384ul
#define NATIVE_WORDS     (NATIVE_DATA_SIZE / 8)
#define NATIVE_PAGE      4096ul
#define NATIVE_PAGES     (NATIVE_DATA_SIZE / NATIVE_PAGE)
#define NATIVE_FS        0x20000e38ul
#define NATIVE_GS        0x20001c50ul
#define NATIVE_INT3      0xcc /* fills the page of code */

/* Of a page of NATIVE_DATA. */
enum native_rights { NATIVE_WRITABLE, NATIVE_READ_ONLY, NATIVE_ABSENT };

struct native_state {
	uint64_t r[16], ip, flags, xmm[16][2];
};

struct native_change {
	uint32_t word; /* of NATIVE_DATA */
	uint64_t data;
};

struct native_case {
	struct native_state before, after;
	uint8_t code[96];
	uint8_t size;
	bool steps;      /* ends after one instruction, wherever that leads */
	bool overflow;   /* changed more than could be listed */
	int signal;      /* SIGTRAP when it ran to its end; 0 when the child died of it */
	int signal_code; /* si_code */
	uint32_t change, changes;
};

struct native_shared {
	size_t count, at; /* the case that runs */
	size_t changes, change_space;
	uint64_t data[NATIVE_WORDS]; /* what NATIVE_DATA holds before each case */
	uint8_t rights[NATIVE_PAGES];
};

struct native {
	struct native_shared *shared;
	struct native_case *cases;
	struct native_change *changes;
	uint8_t *code;  /* the page at NATIVE_CODE, writable */
	uint64_t *data; /* NATIVE_DATA, writable */
	size_t space;
};

static struct native *native_running;
static bool native_started;
static char native_stack[1 << 18];

#define NATIVE_BARE __attribute__((no_sanitize("address", "undefined"), no_stack_protector))

#ifdef __SANITIZE_ADDRESS__
#define NATIVE_SHADOW      0x7fff8000ul
#define NATIVE_SHADOW_SIZE (0x10007fff8000ul - NATIVE_SHADOW)
#endif

/* In assembler, so that the compiler does not make them a call. */
NATIVE_BARE static inline void native_copy(void *to, const void *from, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

NATIVE_BARE static inline void native_fill(void *to, uint8_t byte, size_t n)
{
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(byte) : "memory");
}

NATIVE_BARE static inline long native_call(long number, long a, long b)
{
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b)
			 : "rcx", "r11", "memory");
	return result;
}

static const int native_order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI,
	REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

NATIVE_BARE static inline void native_note_changes(struct native *n, struct native_case *c)
{
	uint64_t *data = n->data;
	struct native_shared *s = n->shared;
	c->change = (uint32_t)s->changes;
	for (uint32_t i = 0; i < NATIVE_WORDS; i++) {
		if (data[i] == s->data[i])
			continue;
		if (s->changes < s->change_space)
			n->changes[s->changes++] = (struct native_change){i, data[i]};
		else
			c->overflow = true;
		data[i] = s->data[i];
	}
	c->changes = (uint32_t)s->changes - c->change;
}

NATIVE_BARE static inline void native_note(
	struct native *n, struct native_case *c, int signal, const siginfo_t *info, ucontext_t *u)
{
	const greg_t *g = u->uc_mcontext.gregs;
	for (int i = 0; i < 16; i++)
		c->after.r[i] = (uint64_t)g[native_order[i]];
	c->signal = signal;
	c->signal_code = info->si_code;
	c->after.ip = (uint64_t)g[REG_RIP] - (signal == SIGTRAP && info->si_code == SI_KERNEL);
	c->after.flags = (uint64_t)g[REG_EFL];
	native_copy(c->after.xmm, u->uc_mcontext.fpregs->_xmm, sizeof c->after.xmm);
	native_note_changes(n, c);
}

/* Vector registers of the case, above them zero; the x87 stack full of something. */
NATIVE_BARE static inline void native_load_vectors(
	const struct native_case *c, struct _libc_fpstate *f)
{
	enum { SOFTWARE = 464, HEADER = 512, X87_SSE = 3, PKRU = 1 << 9 };
	uint8_t *area = (uint8_t *)f;
	uint32_t magic;
	uint64_t features;

	f->cwd = 0x37f;
	f->swd = 0;
	f->ftw = 0xff;
	f->fop = 0;
	f->rip = f->rdp = 0;
	f->mxcsr = 0x1f80;
	for (int i = 0; i < 8; i++) {
		native_copy(&f->_st[i], c->before.xmm[i], 8);
		f->_st[i].exponent = 0x3fff;
	}
	native_copy(f->_xmm, c->before.xmm, sizeof c->before.xmm);
	native_copy(&magic, area + SOFTWARE, sizeof magic);
	if (magic != 0x46505853) /* FP_XSTATE_MAGIC1 */
		return;
	native_copy(&features, area + HEADER, sizeof features);
	features = (features & PKRU) | X87_SSE;
	native_copy(area + HEADER, &features, sizeof features);
}

NATIVE_BARE static inline void native_load(
	struct native *n, const struct native_case *c, ucontext_t *u)
{
	greg_t *g = u->uc_mcontext.gregs;
	native_fill(n->code, NATIVE_INT3, NATIVE_CODE_SIZE);
	uint64_t at = c->before.ip - NATIVE_CODE, room = NATIVE_CODE_SIZE - at;
	native_copy(n->code + at, c->code, c->size < room ? c->size : room);
	for (int i = 0; i < 16; i++)
		g[native_order[i]] = (greg_t)c->before.r[i];
	g[REG_RIP] = (greg_t)c->before.ip;
	g[REG_EFL] = (greg_t)(c->before.flags | (c->steps ? 0x100 : 0));
	native_load_vectors(c, u->uc_mcontext.fpregs);
}

NATIVE_BARE static inline void native_signal(int signal, siginfo_t *info, void *context)
{
	struct native *n = native_running;
	struct native_shared *s = n->shared;
	__builtin_ia32_writeeflags_u64(0x202); /* a case may have set AC and NT */
	if (native_started)
		native_note(n, &n->cases[s->at++], signal, info, context);
	native_started = true;
	if (s->at == s->count)
		native_call(SYS_exit_group, 0, 0);
	native_load(n, &n->cases[s->at], context);
}

NATIVE_BARE static inline void native_child(struct native *n)
{
	static const int signals[] = {SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
	static const int protections[] = {[NATIVE_WRITABLE] = PROT_READ | PROT_WRITE,
		[NATIVE_READ_ONLY] = PROT_READ,
		[NATIVE_ABSENT] = PROT_NONE};
	struct sigaction action = {
		.sa_sigaction = native_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t stack = {.ss_sp = native_stack, .ss_size = sizeof native_stack};

	native_running = n;
	native_started = false;
	sigfillset(&action.sa_mask);
	sigaltstack(&stack, NULL);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &action, NULL);
	memcpy(n->data, n->shared->data, NATIVE_DATA_SIZE);
	for (size_t i = 0; i < NATIVE_PAGES; i++)
		mprotect((void *)(NATIVE_DATA + i * NATIVE_PAGE), NATIVE_PAGE,
			protections[n->shared->rights[i]]);
	alarm(60);
	long self = getpid();
#ifdef NATIVE_SHADOW
	munmap((void *)NATIVE_SHADOW, NATIVE_SHADOW_SIZE);
#endif
	native_call(SYS_arch_prctl, ARCH_SET_GS, NATIVE_GS);
	native_call(SYS_arch_prctl, ARCH_SET_FS, NATIVE_FS);
	native_call(SYS_kill, self, SIGTRAP);
	native_call(SYS_exit_group, 1, 0); /* the handler returns into the cases, not here */
}

static inline void *native_map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* Memory at an address with a writable view of it elsewhere; NULL when the address is taken. */
static inline void *native_map_twice(uint64_t address, size_t size, int protection)
{
	int file = memfd_create("native", MFD_CLOEXEC);
	if (file < 0 || ftruncate(file, (off_t)size) < 0)
		return NULL;
	void *here =
		mmap((void *)address, size, protection, MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
	void *view = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	return here == (void *)address && view != MAP_FAILED ? view : NULL;
}

/* Room for a number of cases; false when the addresses are taken. */
static inline bool native_open(struct native *n, size_t space)
{
	enum { CHANGES = 16 };
	*n = (struct native){.space = space};
	n->code = native_map_twice(NATIVE_CODE, NATIVE_CODE_SIZE, PROT_READ | PROT_EXEC);
	n->data = native_map_twice(NATIVE_DATA, NATIVE_DATA_SIZE, PROT_READ | PROT_WRITE);
	n->shared = native_map(sizeof *n->shared);
	n->cases = native_map(space * sizeof *n->cases);
	n->changes = native_map(space * CHANGES * sizeof *n->changes);
	if (!n->code || !n->data || !n->shared || !n->cases || !n->changes)
		return false;
	n->shared->change_space = space * CHANGES;
	return true;
}

static inline void native_close(struct native *n)
{
	munmap((void *)NATIVE_CODE, NATIVE_CODE_SIZE);
	munmap((void *)NATIVE_DATA, NATIVE_DATA_SIZE);
	munmap(n->code, NATIVE_CODE_SIZE);
	munmap(n->data, NATIVE_DATA_SIZE);
	munmap(n->changes, n->shared->change_space * sizeof *n->changes);
	munmap(n->cases, n->space * sizeof *n->cases);
	munmap(n->shared, sizeof *n->shared);
}

/* Runs the first `count` cases. A case that kills the child has no signal, and the next goes on. */
static inline void native_run(struct native *n, size_t count)
{
	struct native_shared *s = n->shared;
	s->count = count;
	s->at = s->changes = 0;
	while (s->at < count) {
		int status;
		pid_t child = fork();
		if (!child)
			native_child(n);
		if (child < 0 || waitpid(child, &status, 0) != child)
			abort();
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			n->cases[s->at++].signal = 0;
	}
}

#endif
