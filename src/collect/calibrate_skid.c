#include "collect/calibrate_skid.h"

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "collect/calibrate_cache.h"
#include "collect/sampler.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define RATE      4000
#define LOOP_NS   50000000 /* each of the loops runs for so long, */
#define PATIENCE  4        /* or so many times that where others want the CPU too, */
#define ENOUGH    40       /* and counts with so many samples */
#define CHASE     65536    /* lines of memory: more than a core's own caches hold */
#define ADDITIONS 64       /* in one round of the chain */
#define ROUNDS    2000     /* of one measurement: some tens of microseconds */
#define TRIES     100

/*
 * The loops: four bytes every instruction, BEFORE of them, the slow one, and AFTER behind it. The
 * others depend on nothing but themselves, so they are long done when the slow one is. Each takes
 * the number of rounds and a pointer to memory.
 */
enum { BEFORE = 4, AFTER = 8, WIDTH = 4 };

#define SKID_LOOP(name, slow)                                            \
	extern const char skid_##name##_first[], skid_##name##_end[];    \
	void skid_##name(uint64_t rounds, void *memory);                 \
	__asm__(".pushsection .text\n"                                   \
		".p2align 6\n"                                           \
		".type skid_" #name ",@function\n"                       \
		"skid_" #name ":\n"                                      \
		"	movabsq $0x3ff004189374bc6a, %rax\n" /* 1.001 */ \
		"	movq %rax, %xmm0\n"                                    \
		"	movq %rax, %xmm1\n"                                    \
		"skid_" #name "_first:\n"                                \
		"	leaq 1(%rax), %rax\n"                                  \
		"	leaq 1(%rcx), %rcx\n"                                  \
		"	leaq 1(%rdx), %rdx\n"                                  \
		"	leaq 1(%r8), %r8\n" slow "	leaq 1(%r9), %r9\n"   \
		"	leaq 1(%r10), %r10\n"                                  \
		"	leaq 1(%r11), %r11\n"                                  \
		"	leaq 1(%rax), %rax\n"                                  \
		"	leaq 1(%rcx), %rcx\n"                                  \
		"	leaq 1(%rdx), %rdx\n"                                  \
		"	leaq 1(%r8), %r8\n"                                    \
		"	leaq 1(%r9), %r9\n"                                    \
		"skid_" #name "_end:\n"                                  \
		"	decq %rdi\n"                                           \
		"	jnz skid_" #name "_first\n"                      \
		"	ret\n"                                                 \
		".size skid_" #name ", .-skid_" #name "\n"               \
		".popsection\n")

SKID_LOOP(load, "	.byte 0x48, 0x8b, 0x76, 0x00\n"); /* movq 0(%rsi), %rsi */
SKID_LOOP(divide, "	divsd %xmm1, %xmm0\n");
SKID_LOOP(lock, "	.byte 0xf0, 0xff, 0x46, 0x00\n"); /* lock incl 0(%rsi) */

static const struct loop {
	void (*run)(uint64_t rounds, void *memory);
	const char *first, *end;
} loops[] = {
	{skid_load, skid_load_first, skid_load_end},
	{skid_divide, skid_divide_first, skid_divide_end},
	{skid_lock, skid_lock_first, skid_lock_end},
};
enum { LOOPS = sizeof loops / sizeof *loops, PLACES = BEFORE + 1 + AFTER };

struct bench {
	pid_t tid;
	uint32_t falls[LOOPS][PLACES]; /* samples by instruction */
};

static void ignore_record(void *arg, const struct record *r)
{
	(void)arg, (void)r;
}

static void count_sample(void *arg, const struct sample *s)
{
	struct bench *b = arg;

	for (size_t i = 0; i < LOOPS && s->tid == b->tid; i++) {
		uint64_t at = s->pc - (uintptr_t)loops[i].first;

		if (at < PLACES * WIDTH)
			b->falls[i][at / WIDTH] += s->count;
	}
}

/* ---- running ---- */

struct line {
	struct line *next;
	uint64_t pad[7];
};

/* One circle through all lines, in steps that no prefetcher follows. */
static struct line *make_circle(void)
{
	struct line *lines = xcalloc(CHASE, sizeof *lines);
	uint32_t at = 0;

	/* A generator of full period: every line comes once. */
	for (uint32_t i = 0; i < CHASE; i++) {
		uint32_t next = (at * 25173 + 13849) % CHASE;

		lines[at].next = &lines[next];
		at = next;
	}
	return lines;
}

static void run_loop(const struct loop *l, void *memory)
{
	uint64_t start = io_clock_ns(CLOCK_MONOTONIC), ran = io_clock_ns(CLOCK_THREAD_CPUTIME_ID);

	do
		l->run(CHASE, memory);
	while (io_clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran < LOOP_NS &&
		io_clock_ns(CLOCK_MONOTONIC) - start < PATIENCE * LOOP_NS);
}

static int sample_loops(const struct event *ev, struct bench *b, struct err *e)
{
	struct sampler_sink sink = {.record = ignore_record, .sample = count_sample, .arg = b};
	struct event user = *ev;
	struct sampler_options o = {.target = {.tids = &b->tid, .ntids = 1},
		.events = &user,
		.nevents = 1,
		.rate = RATE,
		.how = SAMPLER_RING};
	struct sampler *s;
	struct line *circle;
	uint64_t word[8] = {0};
	int r;

	user.attr.exclude_user = 0;
	user.attr.exclude_kernel = user.attr.exclude_hv = 1;
	r = sampler_create(&o, &s, e);
	if (r < 0)
		return r;
	circle = make_circle();
	r = sampler_enable(s, e);
	for (size_t i = 0; r == 0 && i < LOOPS; i++)
		run_loop(&loops[i], i ? (void *)word : circle);
	sampler_disable(s);
	sampler_drain(s, &sink);
	sampler_destroy(s);
	free(circle);
	return r;
}

/* ---- what it says ---- */

/* Where most samples of all loops fall, the slow instruction being 0; never before it. */
static void judge(const struct bench *b, struct skid *out)
{
	uint32_t sum[PLACES] = {0}, all = 0, best = BEFORE;

	for (size_t i = 0; i < LOOPS; i++) {
		uint32_t inside = 0;

		for (size_t k = 0; k < PLACES; k++)
			inside += b->falls[i][k];
		for (size_t k = 0; k < PLACES && inside >= ENOUGH; k++)
			sum[k] += b->falls[i][k];
	}
	for (uint32_t k = 0; k < PLACES; k++) {
		all += sum[k];
		if (k >= BEFORE && sum[k] > sum[best])
			best = k;
	}
	if (!sum[best])
		return;
	out->instructions = (int)best - BEFORE;
	out->share = (double)sum[best] / all;
}

/* Registers on both sides: cores may do additions of constants on the way, for nothing. */
static double cycles_per_ns(void)
{
	double best = 0;

	for (int i = 0; i < TRIES; i++) {
		uint64_t start = io_clock_ns(CLOCK_MONOTONIC), rounds = ROUNDS, sum = 0, end;

		__asm__ volatile("1:\n"
				 ".rept %c3\n"
				 "	addq %2, %0\n"
				 ".endr\n"
				 "	decq %1\n"
				 "	jnz 1b"
				 : "+r"(sum), "+r"(rounds)
				 : "r"(start), "i"(ADDITIONS)
				 : "cc");
		end = io_clock_ns(CLOCK_MONOTONIC);
		if (end > start && (double)ROUNDS * ADDITIONS / (double)(end - start) > best)
			best = (double)ROUNDS * ADDITIONS / (double)(end - start);
	}
	return best;
}

/* Others come when something happens, which is where the sample is. */
static bool goes_on(const struct event *ev)
{
	return ev->is_clock ||
	       (ev->attr.type != PERF_TYPE_SOFTWARE && ev->attr.type != PERF_TYPE_TRACEPOINT);
}

static int measure(const struct event *ev, struct skid *out, struct err *e)
{
	struct bench b = {.tid = gettid()};
	int r = 0;

	if (ev->attr.precise_ip)
		out->share = 1;
	else if (goes_on(ev))
		r = sample_loops(ev, &b, e);
	if (r < 0)
		return r;
	judge(&b, out);
	out->cycles_per_ns = cycles_per_ns();
	if (goes_on(ev) && !out->share)
		return err_set(e, -EAGAIN,
			"%s: the machine is too busy to measure where samples fall", ev->name);
	return 0;
}

/* ---- what is known already ---- */

bool calibrate_skid_known(const struct event *ev, struct skid *out)
{
	_cleanup_free_ char *dir = calibrate_cache_dir(), *key = calibrate_cache_key("skid:", ev);
	struct figures f = {0};

	if (dir)
		calibrate_cache_get(dir, key, 0, 100, &f);
	if (f.n == 3)
		*out = (struct skid){(int)f.p[0], f.p[1], f.p[2]};
	return f.n == 3;
}

int calibrate_skid(const struct event *ev, bool fresh, struct skid *out, struct err *e)
{
	_cleanup_free_ char *dir = calibrate_cache_dir(), *key = calibrate_cache_key("skid:", ev);
	struct skid found = {0};
	struct figures f;
	int r;

	if (!fresh && calibrate_skid_known(ev, out))
		return 0;
	r = measure(ev, &found, e);
	if (r < 0)
		return r;
	f = (struct figures){{found.instructions, found.share, found.cycles_per_ns}, 3};
	if (dir)
		calibrate_cache_put(dir, key, &f);
	*out = found;
	return 0;
}
