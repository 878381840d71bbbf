#include "collect/excursion_internal.h"

#include "base/err.h"

#include <errno.h>
#include <linux/memfd.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Two mappings of one file: code that runs and cannot be written lies behind the state, so that
 * either reaches the other relative to rip; what is written to it goes through another address.
 */
#define STATE_SIZE 4096u
#define CODE_SIZE  (4u << 20)

_Static_assert(sizeof(struct chip_state) <= STATE_SIZE, "the state has a page");

/* ---- writing code ---- */

static void byte(struct chip *c, unsigned b)
{
	c->writable[c->used++] = (uint8_t)b;
}

static void bytes(struct chip *c, const void *p, size_t n)
{
	memcpy(c->writable + c->used, p, n);
	c->used += n;
}

/* The displacement of what is at an offset of the state, with `behind` bytes still to come. */
static void reach(struct chip *c, size_t offset, unsigned behind)
{
	uint64_t next = c->code + c->used + 4 + behind;
	int32_t by = (int32_t)((uint64_t)(uintptr_t)c->state + offset - next);

	bytes(c, &by, sizeof by);
}

/* mov between a register and the state; opcode 8b loads, 89 stores. */
static void move(struct chip *c, unsigned opcode, unsigned reg, size_t offset)
{
	byte(c, 0x48 | (reg >> 3) << 2);
	byte(c, opcode);
	byte(c, (reg & 7) << 3 | 5);
	reach(c, offset, 0);
}

static size_t register_at(unsigned reg)
{
	return offsetof(struct chip_state, r) + reg * sizeof(uint64_t);
}

enum { RAX, RSP = 4, LOAD = 0x8b, STORE = 0x89 };

/* The program's flags and registers, its stack pointer last. */
static void write_enter(struct chip *c)
{
	static const uint8_t save[] = {0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57};
	static const uint8_t set_flags[] = {0x04, 0x7f, 0x9e};  /* add $0x7f,%al; sahf */
	static const uint8_t load_flags[] = {0x0f, 0xb7, 0x05}; /* movzwl x(%rip),%eax */
	static const uint8_t go[] = {0xff, 0x25};               /* jmp *x(%rip) */

	bytes(c, save, sizeof save);
	move(c, STORE, RSP, offsetof(struct chip_state, host_rsp));
	bytes(c, load_flags, sizeof load_flags);
	reach(c, offsetof(struct chip_state, flags), 0);
	bytes(c, set_flags, sizeof set_flags);
	for (unsigned reg = 0; reg < 16; reg++)
		if (reg != RSP)
			move(c, LOAD, reg, register_at(reg));
	move(c, LOAD, RSP, register_at(RSP));
	bytes(c, go, sizeof go);
	reach(c, offsetof(struct chip_state, copy), 0);
}

static void write_leave(struct chip *c)
{
	static const uint8_t get_flags[] = {0x9f, 0x0f, 0x90, 0xc0}; /* lahf; seto %al */
	static const uint8_t store_flags[] = {0x66, 0x89, 0x05};     /* mov %ax,x(%rip) */
	static const uint8_t restore[] = {
		0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3};

	c->leave = c->code + c->used;
	move(c, STORE, RAX, register_at(RAX));
	bytes(c, get_flags, sizeof get_flags);
	bytes(c, store_flags, sizeof store_flags);
	reach(c, offsetof(struct chip_state, flags), 0);
	for (unsigned reg = 1; reg < 16; reg++)
		move(c, STORE, reg, register_at(reg));
	move(c, LOAD, RSP, offsetof(struct chip_state, host_rsp));
	bytes(c, restore, sizeof restore);
}

/* ---- copies ---- */

static void place_one(struct chip *c, const struct transplant *t)
{
	size_t at = c->used;

	bytes(c, t->code, t->ncode);
	if (t->moved) {
		c->used = at + t->moved;
		reach(c, offsetof(struct chip_state, operand), t->ncode - t->moved - 4u);
		c->used = at + t->ncode;
	}
}

uint64_t chip_place(struct chip *c, const struct transplant *t, const struct transplant *end)
{
	uint64_t place = c->code + c->used;
	int32_t by;

	if (c->used + (size_t)(end - t) * TRANSPLANT_LENGTH + 16 > c->size)
		return 0;
	for (; t < end; t++)
		place_one(c, t);
	byte(c, 0xe9);
	by = (int32_t)(c->leave - (c->code + c->used + 4));
	bytes(c, &by, sizeof by);
	return place;
}

void chip_forget(struct chip *c)
{
	c->used = c->first;
}

/* ---- where they are ---- */

static int code_file(void)
{
	int fd = (int)syscall(SYS_memfd_create, "culprit", MFD_CLOEXEC | 0x10u /* MFD_EXEC */);

	return fd >= 0 || errno != EINVAL ? fd : memfd_create("culprit", MFD_CLOEXEC);
}

static int map(struct chip *c, int fd)
{
	uint8_t *base = mmap(NULL, STATE_SIZE + CODE_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED)
		return -errno;
	c->state = (struct chip_state *)base;
	c->code = (uint64_t)(uintptr_t)(base + STATE_SIZE);
	c->size = CODE_SIZE;
	c->writable = mmap(NULL, CODE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (c->writable == MAP_FAILED) {
		c->writable = NULL;
		return -errno;
	}
	if (mmap(base + STATE_SIZE, CODE_SIZE, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, fd,
		    0) == MAP_FAILED)
		return -errno;
	return 0;
}

int chip_init(struct chip *c, struct err *e)
{
	int fd = code_file(), rc;

	*c = (struct chip){0};
	rc = fd < 0 || ftruncate(fd, CODE_SIZE) < 0 ? -errno : map(c, fd);
	if (fd >= 0)
		close(fd);
	if (rc) {
		chip_deinit(c);
		return err_errno(e, rc, "cannot have memory for code that runs");
	}
	c->enter = (void (*)(void))(uintptr_t)c->code; /* written next */
	write_enter(c);
	write_leave(c);
	c->first = c->used;
	return 0;
}

void chip_deinit(struct chip *c)
{
	if (c->state)
		munmap(c->state, STATE_SIZE + CODE_SIZE);
	if (c->writable)
		munmap(c->writable, CODE_SIZE);
	*c = (struct chip){0};
}

/* ---- traps ---- */

static const int raised[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
enum { RAISED = sizeof raised / sizeof *raised };
static struct sigaction before[RAISED];
static sigset_t masked; /* before */
static const struct chip *caught;

static void lead_out(int number, siginfo_t *info, void *context)
{
	greg_t *at = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)info;
	if (!caught || (uint64_t)*at - (caught->code + caught->first) >= caught->size) {
		signal(number, SIG_DFL); /* not ours: it happens again, and ends us */
		return;
	}
	caught->state->trapped = (uint64_t)*at;
	*at = (greg_t)caught->leave;
}

/* Who raises a signal that he has blocked is killed by it. */
static void let_through(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < RAISED; i++)
		sigaddset(&set, raised[i]);
	sigprocmask(SIG_UNBLOCK, &set, &masked);
}

int chip_catch(struct chip *c, struct err *e)
{
	static _Alignas(64) uint8_t stack[65536];
	const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
	struct sigaction by = {.sa_sigaction = lead_out, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	if (sigaltstack(&own, NULL) < 0)
		return err_errno(e, -errno, "cannot catch what copies of instructions raise");
	for (int i = 0; i < RAISED; i++)
		sigaction(raised[i], &by, &before[i]);
	let_through();
	caught = c;
	return 0;
}

void chip_uncatch(struct chip *c)
{
	const stack_t none = {.ss_flags = SS_DISABLE};

	if (caught != c)
		return;
	sigprocmask(SIG_SETMASK, &masked, NULL);
	for (int i = 0; i < RAISED; i++)
		sigaction(raised[i], &before[i], NULL);
	sigaltstack(&none, NULL);
	caught = NULL;
}
