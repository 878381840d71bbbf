/* Walks our own stack, copied, and compares with what the C library's unwinder finds. */
#include "calls/walk.h"

#include "base/mem.h"
#include "base/vec.h"
#include "image/image.h"

#include <alloca.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MOST = 400 };

struct module {
	uint64_t start, end, bias;
	struct frames *frames;
};
static VEC(struct module) modules;

/* ---- who is where ---- */

static void add_module(uint64_t start, uint64_t end, uint64_t offset, const char *path)
{
	struct image *im;
	const struct segment *s;
	struct module m = {.start = start, .end = end};
	uint64_t vaddr;

	if (image_open_path(path, &im, NULL))
		return;
	size_t n = image_segments(im, &s);
	if (segments_vaddr(s, n, offset, &vaddr) && !frames_open(im, &m.frames)) {
		m.bias = start - vaddr;
		*vec_add(&modules) = m;
	}
	image_destroy(im);
}

static int read_modules(void **state)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[4096], path[4096], rights[8];
	unsigned long start, end, offset;

	(void)state;
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095s", &start, &end, rights, &offset,
			    path) == 5 &&
			rights[2] == 'x' && path[0] == '/')
			add_module(start, end, offset, path);
	if (f)
		fclose(f);
	return modules.n ? 0 : -1;
}

static int forget_modules(void **state)
{
	(void)state;
	vec_each (m, &modules)
		frames_destroy(m->frames);
	vec_deinit(&modules);
	return 0;
}

static size_t finds; /* of the last walk */

static const struct frames *find(void *arg, uint64_t pc, uint64_t *bias)
{
	(void)arg;
	finds++;
	vec_each (m, &modules)
		if (pc >= m->start && pc < m->end) {
			*bias = m->bias;
			return m->frames;
		}
	return NULL;
}

/* ---- looking ---- */

struct seen {
	size_t n;
	enum walk_end end;
	struct walk_frame frames[MOST];
	int nreal;
	void *real[MOST];
};
static struct seen seen;
static size_t copied = 256 << 10;

static void take(struct walk_start *s, const ucontext_t *c)
{
	static const int order[FRAME_REGISTERS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI,
		REG_RDI, REG_RBP, REG_RSP, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13,
		REG_R14, REG_R15, REG_RIP};

	for (size_t i = 0; i < FRAME_REGISTERS; i++)
		s->registers[i] = (uint64_t)c->uc_mcontext.gregs[order[i]];
	s->known = (1u << FRAME_REGISTERS) - 1;
}

static const uint8_t *copied_up_to; /* NULL: the end of the thread's stack */

/* Up to the top of the stack that we are on. */
static size_t stack_left(uint64_t rsp)
{
	pthread_attr_t a;
	void *low;
	size_t size;

	if (copied_up_to)
		return (uint64_t)copied_up_to - rsp;
	pthread_getattr_np(pthread_self(), &a);
	pthread_attr_getstack(&a, &low, &size);
	pthread_attr_destroy(&a);
	size = (size_t)((uint64_t)low + size - rsp);
	return size < copied ? size : copied;
}

static struct seen last; /* that came to its root, of whatever stack */

/* What was found before shortens a walk and changes nothing. */
__attribute__((noinline)) static void walk_again(struct walk_start *s)
{
	struct walk_frame frames[MOST];
	size_t n;

	s->last = last.frames;
	s->nlast = last.n;
	finds = 0;
	assert_int_equal(walk_stack(s, find, NULL, frames, MOST, &n), seen.end);
	assert_int_equal(n, seen.n);
	for (size_t i = 0; i < n; i++) {
		assert_true(frames[i].pc == seen.frames[i].pc);
		assert_true(frames[i].cfa == seen.frames[i].cfa);
		assert_int_equal(frames[i].exact, seen.frames[i].exact);
	}
	if (seen.end == WALK_ROOT)
		last = seen;
}

__attribute__((noinline)) static void look(void)
{
	struct walk_start s = {0};
	ucontext_t c;

	seen.nreal = backtrace(seen.real, MOST);
	getcontext(&c);
	take(&s, &c);
	s.size = stack_left(s.registers[FRAME_RSP]);
	uint8_t *copy = xmalloc(s.size);
	/* As somebody else would: sanitizers watch what we read ourselves. */
	s.size = (size_t)process_vm_readv(getpid(), &(struct iovec){copy, s.size}, 1,
		&(struct iovec){(void *)s.registers[FRAME_RSP], s.size}, 1, 0);
	s.stack = copy;
	seen.end = walk_stack(&s, find, NULL, seen.frames, MOST, &seen.n);
	walk_again(&s);
	free(copy);
}

/* The first frame is look()'s own, and inside it; sanitizers add one of theirs before it. */
static void check_callers(void)
{
	int from = 1;

	while (from < seen.nreal && (uint64_t)seen.real[from] != seen.frames[1].pc)
		from++;
	assert_true(from <= 2 && seen.n - 1 <= (size_t)(seen.nreal - from));
	for (size_t i = 1; i < seen.n; i++) {
		assert_ptr_equal((void *)seen.frames[i].pc, seen.real[(size_t)from + i - 1]);
		assert_true(seen.frames[i].cfa > seen.frames[i - 1].cfa || i == seen.n - 1 ||
			    seen.frames[i].exact);
	}
	if (seen.end == WALK_ROOT)
		assert_int_equal(seen.n - 1, seen.nreal - from);
}

static void check(void)
{
	assert_int_equal(seen.end, WALK_ROOT);
	check_callers();
}

/* ---- ways to get there ---- */

__attribute__((noinline)) static int deep(int n, volatile char *p)
{
	volatile char mine[64];

	mine[n % 64] = *p;
	if (!n)
		look();
	else
		deep(n - 1, mine);
	return mine[n % 64];
}

__attribute__((noinline)) static int with_alloca(int n)
{
	volatile char *p = alloca((size_t)n + 100);

	p[n] = 1;
	deep(2, p);
	return p[n];
}

/* The stack is aligned anew: the frame is found by a word that was saved. */
__attribute__((noinline)) static int realigned(int n)
{
	volatile char mine[256] __attribute__((aligned(128)));

	mine[n] = (char)n;
	return mine[n] + with_alloca(n);
}

static int compare(const void *a, const void *b)
{
	if (!seen.n)
		look();
	return *(const int *)a - *(const int *)b;
}

static void *on_thread(void *arg)
{
	realigned(*(int *)arg);
	return NULL;
}

static void on_signal(int signal)
{
	(void)signal;
	look();
}

static void test_plain(void **state)
{
	(void)state;
	deep(100, "");
	check();
	assert_true(seen.n > 100);
}

/* All but the last frames are those of a stack before, and the root's caller is no frame. */
static void test_like_the_last(void **state)
{
	bool fixed = true;

	(void)state;
	for (int n = 90; n <= 110; n += 10) {
		deep(n, "");
		check();
		for (size_t i = 0; i + 2 < seen.n; i++)
			fixed &= seen.frames[i].fixed;
		assert_true(n == 90 || !fixed || finds < 20);
	}
}

static void test_frames_of_unknown_size(void **state)
{
	(void)state;
	realigned(37);
	check();
}

static void test_called_by_a_library(void **state)
{
	int list[] = {5, 3, 9, 1};

	(void)state;
	memset(&seen, 0, sizeof seen);
	qsort(list, 4, sizeof *list, compare);
	check();
}

static void test_thread(void **state)
{
	pthread_t t;
	int n = 12;

	(void)state;
	pthread_create(&t, NULL, on_thread, &n);
	pthread_join(t, NULL);
	check();
}

static void test_signal(void **state)
{
	struct sigaction a = {.sa_handler = on_signal};
	size_t interrupted = 0;

	(void)state;
	sigaction(SIGUSR1, &a, NULL);
	raise(SIGUSR1);
	signal(SIGUSR1, SIG_DFL);
	check();
	for (size_t i = 1; i < seen.n; i++)
		interrupted += seen.frames[i].exact;
	assert_int_equal(interrupted, 1);
}

static ucontext_t before, other;

static void in_coroutine(void)
{
	look();
	__asm__ volatile(""); /* not by a jump */
}

/* On a stack of its own, below which nobody is: the root is where it would return to. */
static void test_coroutine(void **state)
{
	static uint8_t stack[256 << 10];

	(void)state;
	getcontext(&other);
	other.uc_stack.ss_sp = stack;
	other.uc_stack.ss_size = sizeof stack;
	other.uc_link = &before;
	makecontext(&other, in_coroutine, 0);
	copied_up_to = stack + sizeof stack;
	swapcontext(&before, &other);
	copied_up_to = NULL;
	assert_int_equal(seen.end, WALK_ROOT);
	assert_int_equal(seen.n, 3);
	assert_true(seen.frames[2].exact);
}

static void test_short_copy(void **state)
{
	(void)state;
	copied = 4096;
	deep(100, "");
	copied = 256 << 10;
	assert_int_equal(seen.end, WALK_CUT);
	assert_true(seen.n > 5 && seen.n < 90);
	check_callers();
}

static void test_no_room(void **state)
{
	struct walk_start s = {.known = 1u << FRAME_RIP | 1u << FRAME_RSP};
	struct walk_frame one;
	size_t n;

	(void)state;
	/* Nothing is known of this code. */
	s.registers[FRAME_RIP] = 16;
	assert_int_equal(walk_stack(&s, find, NULL, &one, 1, &n), WALK_STRANGE);
	assert_int_equal(n, 1);
	/* And here of the stack. */
	s.registers[FRAME_RIP] = (uint64_t)look;
	assert_int_equal(walk_stack(&s, find, NULL, &one, 1, &n), WALK_CUT);
	assert_int_equal(one.pc, (uint64_t)look);
}

/* Code that nobody describes is left by frame pointers, if these lead to some that is described. */
static void test_made_at_run_time(void **state)
{
	const uint64_t base = 0x10000;
	uint64_t words[] = {0, base + 24, 32, base + 40, (uint64_t)look + 1};
	struct walk_start s = {.known = 1u << FRAME_RIP | 1u << FRAME_RSP | 1u << FRAME_RBP,
		.stack = (const uint8_t *)words,
		.size = sizeof words};
	struct walk_frame frames[4];
	size_t n;

	(void)state;
	s.registers[FRAME_RIP] = 16;
	s.registers[FRAME_RSP] = base;
	s.registers[FRAME_RBP] = base + 8;
	assert_int_equal(walk_stack(&s, find, NULL, frames, 4, &n), WALK_CUT);
	assert_int_equal(n, 3);
	assert_int_equal(frames[0].cfa, base + 24);
	assert_int_equal(frames[1].pc, 32);
	assert_int_equal(frames[1].cfa, base + 40);
	assert_int_equal(frames[2].pc, (uint64_t)look + 1);
	assert_true(frames[0].guessed && frames[1].guessed && !frames[2].guessed);
	/* They lead to nobody. */
	words[4] = 48;
	assert_int_not_equal(walk_stack(&s, find, NULL, frames, 4, &n), WALK_ROOT);
	assert_int_equal(n, 1);
	assert_false(frames[0].guessed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_like_the_last),
		cmocka_unit_test(test_frames_of_unknown_size),
		cmocka_unit_test(test_called_by_a_library),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_coroutine),
		cmocka_unit_test(test_short_copy),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_made_at_run_time),
	};

	return cmocka_run_group_tests(tests, read_modules, forget_modules);
}
