/*
 * The processor itself as an oracle: runs short pieces of code on given registers and memory in a
 * child process, and tells what they did.
 *
 * The child lives in its signal handler. It writes the registers of a case into the frame that the
 * handler returns to, and the case ends in the next trap: an int3 behind the code, a single step
 * (for code that jumps), or a fault. So all registers can be loaded and seen, the stack pointer
 * too, and a case costs one signal. Memory of a case is NATIVE_DATA, the same at the start of each;
 * what a case changed is listed. fs and gs point into it.
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
#define NATIVE_FS        0x20000e38ul
#define NATIVE_GS        0x20001c50ul
#define NATIVE_INT3      0xcc /* fills the page of code */

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
};

struct native {
	struct native_shared *shared;
	struct native_case *cases;
	struct native_change *changes;
	uint8_t *code; /* the page at NATIVE_CODE, writable */
	size_t space;
};

static struct native *native_running;
static bool native_started;
static __attribute__((used)) unsigned long native_host_fs;
static char native_stack[1 << 18];

/*
 * The kernel leaves fs (and the flags AC and NT) as the case had them: C code needs its own before
 * anything else, and the case gets its fs back last.
 */
void native_entry(int signal, siginfo_t *info, void *context);
__asm__(".text\n"
	".type native_entry,@function\n"
	"native_entry:\n"
	"	pushq $0x202\n"
	"	popfq\n"
	"	pushq %rdi\n"
	"	pushq %rsi\n"
	"	pushq %rdx\n"
	"	movl $158, %eax\n" /* arch_prctl(ARCH_SET_FS, ...) */
	"	movl $0x1002, %edi\n"
	"	movq native_host_fs(%rip), %rsi\n"
	"	syscall\n"
	"	popq %rdx\n"
	"	popq %rsi\n"
	"	popq %rdi\n"
	"	subq $8, %rsp\n"
	"	call native_signal\n"
	"	addq $8, %rsp\n"
	"	movl $158, %eax\n"
	"	movl $0x1002, %edi\n"
	"	movl $0x20000e38, %esi\n"
	"	syscall\n"
	"	ret\n"
	".size native_entry, .-native_entry\n");

static const int native_order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI,
	REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

static inline void native_note_changes(struct native *n, struct native_case *c)
{
	uint64_t *data = (uint64_t *)NATIVE_DATA;
	struct native_shared *s = n->shared;
	c->change = (uint32_t)s->changes;
	if (!memcmp(data, s->data, NATIVE_DATA_SIZE))
		return;
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

static inline void native_note(
	struct native *n, struct native_case *c, int signal, const siginfo_t *info, ucontext_t *u)
{
	const greg_t *g = u->uc_mcontext.gregs;
	for (int i = 0; i < 16; i++)
		c->after.r[i] = (uint64_t)g[native_order[i]];
	c->signal = signal;
	c->signal_code = info->si_code;
	c->after.ip = (uint64_t)g[REG_RIP] - (signal == SIGTRAP && info->si_code == SI_KERNEL);
	c->after.flags = (uint64_t)g[REG_EFL];
	memcpy(c->after.xmm, u->uc_mcontext.fpregs->_xmm, sizeof c->after.xmm);
	native_note_changes(n, c);
}

/* Vector registers of the case, above them zero; the x87 stack full of something. */
static inline void native_load_vectors(const struct native_case *c, struct _libc_fpstate *f)
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
		memcpy(&f->_st[i], c->before.xmm[i], 8);
		f->_st[i].exponent = 0x3fff;
	}
	memcpy(f->_xmm, c->before.xmm, sizeof c->before.xmm);
	memcpy(&magic, area + SOFTWARE, sizeof magic);
	if (magic != 0x46505853) /* FP_XSTATE_MAGIC1 */
		return;
	memcpy(&features, area + HEADER, sizeof features);
	features = (features & PKRU) | X87_SSE;
	memcpy(area + HEADER, &features, sizeof features);
}

static inline void native_load(struct native *n, const struct native_case *c, ucontext_t *u)
{
	greg_t *g = u->uc_mcontext.gregs;
	memset(n->code, NATIVE_INT3, NATIVE_CODE_SIZE);
	memcpy(n->code + (c->before.ip - NATIVE_CODE), c->code, c->size);
	for (int i = 0; i < 16; i++)
		g[native_order[i]] = (greg_t)c->before.r[i];
	g[REG_RIP] = (greg_t)c->before.ip;
	g[REG_EFL] = (greg_t)(c->before.flags | (c->steps ? 0x100 : 0));
	native_load_vectors(c, u->uc_mcontext.fpregs);
}

__attribute__((used)) static void native_signal(int signal, siginfo_t *info, void *context)
{
	struct native *n = native_running;
	struct native_shared *s = n->shared;
	if (native_started)
		native_note(n, &n->cases[s->at++], signal, info, context);
	native_started = true;
	if (s->at == s->count)
		_exit(0);
	native_load(n, &n->cases[s->at], context);
}

static inline void native_child(struct native *n)
{
	static const int signals[] = {SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
	struct sigaction action = {
		.sa_sigaction = native_entry, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t stack = {.ss_sp = native_stack, .ss_size = sizeof native_stack};

	native_running = n;
	native_started = false;
	sigfillset(&action.sa_mask);
	sigaltstack(&stack, NULL);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &action, NULL);
	syscall(SYS_arch_prctl, ARCH_GET_FS, &native_host_fs);
	syscall(SYS_arch_prctl, ARCH_SET_GS, NATIVE_GS);
	memcpy((void *)NATIVE_DATA, n->shared->data, NATIVE_DATA_SIZE);
	alarm(60);
	kill(getpid(), SIGTRAP);
	_exit(1); /* not reached: the handler returns into the cases */
}

static inline void *native_map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* Room for a number of cases; false when the addresses are taken. */
static inline bool native_open(struct native *n, size_t space)
{
	enum { READ_WRITE = PROT_READ | PROT_WRITE, CHANGES = 16 };
	int file = memfd_create("code", MFD_CLOEXEC);
	*n = (struct native){.space = space};
	if (file < 0 || ftruncate(file, NATIVE_CODE_SIZE) < 0)
		return false;
	void *code = mmap((void *)NATIVE_CODE, NATIVE_CODE_SIZE, PROT_READ | PROT_EXEC,
		MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
	n->code = mmap(NULL, NATIVE_CODE_SIZE, READ_WRITE, MAP_SHARED, file, 0);
	close(file);
	void *data = mmap((void *)NATIVE_DATA, NATIVE_DATA_SIZE, READ_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	n->shared = native_map(sizeof *n->shared);
	n->cases = native_map(space * sizeof *n->cases);
	n->changes = native_map(space * CHANGES * sizeof *n->changes);
	if (!n->shared || !n->cases || !n->changes || n->code == MAP_FAILED)
		return false;
	n->shared->change_space = space * CHANGES;
	return code == (void *)NATIVE_CODE && data == (void *)NATIVE_DATA;
}

static inline void native_close(struct native *n)
{
	munmap((void *)NATIVE_CODE, NATIVE_CODE_SIZE);
	munmap((void *)NATIVE_DATA, NATIVE_DATA_SIZE);
	munmap(n->code, NATIVE_CODE_SIZE);
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
