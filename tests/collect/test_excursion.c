#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collect/excursion.h"

/*
 * Excursions through code that was written for it, in a memory of the test's: a program of which
 * everything is known.
 */

enum { CODE = 0x10000, SIZE = 8 << 20, STACK = CODE + SIZE - 4096, SECONDS = 60 };

static struct program {
	struct excursion *x;
	struct excursion_start start;
	uint8_t *memory; /* what is at CODE */
	size_t n;        /* bytes of code */
} program;

static int read_memory(void *arg, uint64_t address, void *to, size_t n)
{
	struct program *p = arg;

	if (address < CODE || address + n > CODE + SIZE)
		return -1;
	memcpy(to, p->memory + (address - CODE), n);
	return 1;
}

/* Who does not come back is ended. */
static int set_up(void **state)
{
	static _Alignas(64) uint8_t vectors[EXCURSION_VECTORS];
	struct program *p = &program;

	__asm__ volatile("xsave64 (%0)" : : "r"(vectors), "a"(7), "d"(0) : "memory");
	*p = (struct program){.memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		.start = {.registers = {.rip = CODE, .rsp = STACK},
			.vectors = vectors,
			.read = read_memory,
			.arg = p}};
	assert_ptr_not_equal(p->memory, MAP_FAILED);
	alarm(SECONDS);
	*state = p;
	return 0;
}

static void finish(struct program *p)
{
	excursion_destroy(p->x);
	p->x = NULL;
}

static int tear_down(void **state)
{
	struct program *p = *state;

	alarm(0);
	finish(p);
	munmap(p->memory, SIZE);
	return 0;
}

static void code(struct program *p, const char *hex)
{
	for (char *end; *hex; hex = end)
		p->memory[p->n++] = (uint8_t)strtoul(hex, &end, 16);
}

static struct user_regs_struct run(
	struct program *p, uint64_t instructions, enum excursion_end expected)
{
	struct user_regs_struct r;

	if (!p->x) /* not before, for the test library catches signals in front of each test */
		assert_int_equal(excursion_create(&p->x, NULL), 0);
	assert_int_equal(excursion_run(p->x, &p->start, instructions), expected);
	excursion_registers(p->x, &r);
	return r;
}

/* ---- caches ---- */

static const struct excursion_stay *stay_at(
	const struct excursion_stay *list, size_t n, uint64_t at, bool is_code)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].at == at && list[i].is_code == is_code)
			return &list[i];
	return NULL;
}

/* One load stays where it is, one goes on by a page, and so is in the same set each time. */
static void test_stays(void **state)
{
	enum { TURNS = 1500, INSTRUCTIONS = 5, FIRST = 900, LATER = TURNS - FIRST };
	struct program *p = *state;
	const struct excursion_stay *list, *same, *next;
	size_t n;

	/* mov (%rbx),%rax; mov (%rsi),%rdx; add $4096,%rsi; dec %rcx; jne; syscall */
	code(p, "48 8b 03 48 8b 16 48 81 c6 00 10 00 00 48 ff c9 75 ee 0f 05");
	p->start.registers.rbx = CODE + 0x10000 + 320;
	p->start.registers.rsi = CODE + 0x10000;
	p->start.registers.rcx = TURNS;
	run(p, FIRST * INSTRUCTIONS, EXCURSION_DONE);
	assert_int_equal(excursion_stays(p->x, &list), 0); /* caches are filled at first */
	excursion_go_on(p->x, TURNS * INSTRUCTIONS);
	n = excursion_stays(p->x, &list);
	same = stay_at(list, n, CODE, false);
	next = stay_at(list, n, CODE + 3, false);
	assert_non_null(same);
	assert_non_null(next);
	assert_int_equal(same->kept, LATER);
	assert_int_equal(same->gone, 0);
	assert_int_equal(next->gone, LATER);
	assert_int_equal(next->kept, 0);
	assert_null(stay_at(list, n, CODE, true)); /* nobody came from another line */
	excursion_forget_caches(p->x);
	assert_int_equal(excursion_stays(p->x, &list), 0);
}

/* Two lines of code, of which one calls the other. */
static void test_stays_of_code(void **state)
{
	enum { TURNS = 2000, INSTRUCTIONS = 4 };
	struct program *p = *state;
	const struct excursion_stay *list, *far;
	size_t n;

	/* call far; dec %rcx; jne; syscall; far: ret */
	code(p, "e8 7b 00 00 00 48 ff c9 75 f6 0f 05");
	p->memory[128] = 0xc3;
	p->start.registers.rcx = TURNS;
	run(p, TURNS / 2 * INSTRUCTIONS, EXCURSION_DONE);
	excursion_go_on(p->x, TURNS * INSTRUCTIONS);
	n = excursion_stays(p->x, &list);
	far = stay_at(list, n, CODE + 128, true);
	assert_non_null(far);
	assert_int_equal(far->kept, TURNS - TURNS / 2);
	assert_int_equal(far->gone, 0);
	assert_non_null(stay_at(list, n, CODE, true));
}

/* ---- copies ---- */

/* More rows of additions than there is room for copies of, twice. */
static void test_more_code_than_room(void **state)
{
	enum { ROWS = 110000, ADDITIONS = 6 };
	struct program *p = *state;
	const struct excursion_edge *edges;
	struct user_regs_struct r;
	uint64_t instructions = 2 * (ROWS * ADDITIONS + 2) + 1;
	int32_t back;

	for (int i = 0; i < ROWS * ADDITIONS; i++)
		code(p, "48 05 01 00 00 00"); /* add $1,%rax */
	code(p, "48 ff c9 0f 85");            /* dec %rcx; jne CODE */
	back = -(int32_t)(p->n + 4);
	memcpy(p->memory + p->n, &back, sizeof back);
	p->n += sizeof back;
	code(p, "0f 05");
	p->start.registers.rcx = 2;
	r = run(p, instructions, EXCURSION_STOPPED);
	assert_int_equal(r.rax, 2 * ROWS * ADDITIONS);
	assert_int_equal(r.rcx, 0);
	assert_int_equal(r.rip, CODE + p->n - 2);
	assert_int_equal(excursion_instructions(p->x), instructions - 1);
	assert_int_equal(excursion_edges(p->x, &edges), 2);
	assert_int_equal(edges[0].count, 1);
	assert_int_equal(edges[1].count, 1);
}

/* What was looked at before is not believed when its copy is gone. */
static void test_code_that_is_come_back_to(void **state)
{
	enum { ROWS = 110000, ADDITIONS = 6 };
	struct program *p = *state;
	struct user_regs_struct r;
	int32_t back;

	/* jmp over a procedure: add $1,%rdx; je to the next; ret; and call it */
	code(p, "eb 07 48 83 c2 01 74 00 c3 e8 f4 ff ff ff");
	for (int i = 0; i < ROWS * ADDITIONS; i++)
		code(p, "48 05 01 00 00 00");
	code(p, "e8"); /* once more */
	back = 2 - (int32_t)(p->n + 4);
	memcpy(p->memory + p->n, &back, sizeof back);
	p->n += sizeof back;
	code(p, "0f 05");
	r = run(p, 10 * ROWS * ADDITIONS, EXCURSION_STOPPED);
	assert_int_equal(r.rax, ROWS * ADDITIONS);
	assert_int_equal(r.rdx, 2);
	assert_int_equal(excursion_instructions(p->x), 1 + 2 * 4 + ROWS * ADDITIONS);
}

/* ---- string operations ---- */

enum { FROM = CODE + 0x10ff0, TO = CODE + 0x20ffd, MEMORY = 0x60000 };

/* What the chip itself makes of a copy of memory. */
static void do_string(unsigned i, uint64_t *rsi, uint64_t *rdi, uint64_t rcx, uint64_t rax)
{
	uint64_t from = *rsi, to = *rdi;

#define DO(what) __asm__ volatile(what : "+S"(from), "+D"(to), "+c"(rcx) : "a"(rax) : "memory")
	switch (i) {
	case 0:
		DO("rep stosb");
		break;
	case 1:
		DO("rep stosw");
		break;
	case 2:
		DO("rep stosl");
		break;
	case 3:
		DO("rep movsb");
		break;
	default:
		DO("rep movsq");
		break;
	}
#undef DO
	*rsi = from;
	*rdi = to;
}

static const char *const repeated[] = {"f3 aa", "f3 66 ab", "f3 ab", "f3 a4", "f3 48 a5"};
enum { REPEATED = sizeof repeated / sizeof *repeated };

/* What is in memory then is loaded bit by bit. */
static void expect_repeated(
	struct program *p, unsigned i, uint64_t from, uint64_t to, uint64_t count)
{
	struct user_regs_struct *start = &p->start.registers, r;
	uint8_t *copy = malloc(MEMORY), *base = copy - CODE;
	uint64_t rsi = (uintptr_t)base + from, rdi = (uintptr_t)base + to;

	p->n = 0;
	code(p, repeated[i]);
	code(p, "48 8b 03 0f 05"); /* mov (%rbx),%rax; syscall */
	start->rax = 0x8877665544332211;
	start->rsi = from;
	start->rdi = to;
	start->rcx = count;
	memcpy(copy, p->memory, MEMORY);
	do_string(i, &rsi, &rdi, count, start->rax);
	for (uint64_t at = to - 16; at < to + count * 8 + 16; at += 8) {
		start->rbx = at;
		r = run(p, 10, EXCURSION_STOPPED);
		assert_int_equal(excursion_instructions(p->x), 2);
		assert_memory_equal(&r.rax, base + at, 8);
		assert_int_equal(r.rsi, rsi - (uintptr_t)base);
		assert_int_equal(r.rdi, rdi - (uintptr_t)base);
		assert_int_equal(r.rcx, 0);
	}
	free(copy);
}

static void test_strings(void **state)
{
	struct program *p = *state;

	for (unsigned i = 0x10000; i < MEMORY; i++)
		p->memory[i] = (uint8_t)(i * i >> 7);
	for (unsigned i = 0; i < REPEATED; i++)
		for (uint64_t count = 1; count < 2000; count = count * 11 + 1) {
			expect_repeated(p, i, FROM, TO, count);
			expect_repeated(p, i, FROM, FROM + 1, count);
			expect_repeated(p, i, FROM, FROM + 8, count);
			expect_repeated(p, i, FROM, FROM - 1, count);
		}
}

/* A thread is held for as long as they take. */
static void test_long_strings(void **state)
{
	static const char *const list[] = {"f3 aa", "f3 a4", "fd f3 aa", "f2 ae", "f3 ac"};
	struct program *p = *state;
	struct user_regs_struct r;
	uint64_t done;

	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		p->n = 0;
		code(p, "b9 00 00 04 00 bf 00 00 10 00 be 00 00 30 00"); /* 256 KiB */
		code(p, list[i]);
		code(p, "eb 00");
		p->memory[p->n - 1] = (uint8_t)-p->n;
		p->start.registers.rax = 1;
		r = run(p, 20000, EXCURSION_ROOM);
		done = excursion_instructions(p->x);
		assert_in_range(done, 3, 24);
		assert_in_range(r.rip, CODE + 15, CODE + 16);
	}
}

/* ---- what copies raise ---- */

/* The instruction is where it ends, and what stands in front of it in its row is done. */
static void expect_trap(struct program *p)
{
	struct user_regs_struct r = run(p, 1000, EXCURSION_FAULT);

	assert_int_equal(r.rax, 1);
	assert_int_equal(r.rip, CODE + p->n);
	assert_int_equal(excursion_instructions(p->x), 2);
}

static void test_traps(void **state)
{
	static const char *const list[] = {"48 f7 f9", "f7 33", "0f 0b"}; /* idiv, div, ud2 */
	struct program *p = *state;
	sigset_t all, old;

	p->start.registers.rbx = CODE + SIZE - 8192; /* 0 stands there */
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		p->n = 0;
		code(p, "31 d2 83 c0 01"); /* xor %edx,%edx; add $1,%eax */
		code(p, list[i]);
		p->n = 5;
		expect_trap(p);
	}
	/* Whoever uses them has blocked all signals. */
	finish(p);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	expect_trap(p);
	finish(p);
	sigprocmask(SIG_SETMASK, &old, &all);
	assert_int_equal(sigismember(&all, SIGFPE), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stays, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stays_of_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_more_code_than_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_code_that_is_come_back_to, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_strings, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_long_strings, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_traps, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
