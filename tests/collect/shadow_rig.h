/*
 * A sampler with the interpreter on this process, and loops in machine code of which it is known
 * what they do.
 */
#ifndef CULPRIT_TESTS_SHADOW_RIG_H
#define CULPRIT_TESTS_SHADOW_RIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "collect/burst.h"
#include "collect/sampler.h"

#define RIG_PERIOD_NS 200000
#define RIG_PATIENCE  30000000000ull /* ns until a test gives up */

struct rig {
	struct sampler *s;
	struct sampler_sink sink;
	struct interp machine; /* for whoever runs bursts again */
	uint64_t opened;       /* CLOCK_MONOTONIC */
	uint64_t bursts;       /* delivered */
};

static inline void rig_ignore_record(void *arg, const struct record *r)
{
	(void)arg, (void)r;
}

static inline void rig_ignore_sample(void *arg, const struct sample *s)
{
	(void)arg, (void)s;
}

/* False when the interpreter cannot be had, and says why. */
static inline bool rig_open(struct rig *r, const struct shadow_options *shadow, uint32_t every,
	shadow_fn *burst, void *arg)
{
	static const struct event clock = {.name = "cpu-clock",
		.attr = {.type = PERF_TYPE_SOFTWARE,
			.config = PERF_COUNT_SW_CPU_CLOCK,
			.size = sizeof(struct perf_event_attr)}};
	pid_t self = getpid();
	const struct sampler_options o = {.target = {.pids = &self, .npids = 1},
		.events = &clock,
		.nevents = 1,
		.period = RIG_PERIOD_NS,
		.shadow_every = every,
		.shadow = *shadow};
	struct err e = {0};

	*r = (struct rig){.opened = io_clock_ns(CLOCK_MONOTONIC)};
	r->sink = (struct sampler_sink){.record = rig_ignore_record,
		.sample = rig_ignore_sample,
		.arg = arg,
		.burst = burst};
	if (sampler_create(&o, &r->s, &e) < 0) {
		printf("%s\n", e.text);
		return false;
	}
	if (sampler_interprets(r->s) && sampler_enable(r->s, &e) == 0)
		return true;
	printf("%s%s\n", sampler_why_not_shadow(r->s), e.text);
	sampler_destroy(r->s);
	return false;
}

/* What is left is delivered. */
static inline void rig_close(struct rig *r, struct sampler_statistics *out)
{
	sampler_disable(r->s);
	sampler_drain(r->s, &r->sink);
	sampler_statistics(r->s, out);
	sampler_destroy(r->s);
}

/* Whether a test may go on waiting. */
static inline bool rig_patient(const struct rig *r)
{
	return io_clock_ns(CLOCK_MONOTONIC) - r->opened < RIG_PATIENCE;
}

/* ---- machine code: labels are places in it ---- */

extern const char pattern_run_[], pattern_loop[], pattern_branch[], pattern_taken[], pattern_back[],
	pattern_end[];
void pattern_run(uint64_t iterations);
__asm__(".text\n"
	".type pattern_run,@function\n"
	"pattern_run:\n"
	"pattern_run_:\n"
	"	xorl %eax, %eax\n"
	"pattern_loop:\n"
	"	incq %rax\n"
	"	testb $3, %al\n"
	"pattern_branch:\n" /* taken three times of four */
	"	jnz pattern_taken\n"
	"	addq $5, %rdx\n"
	"pattern_taken:\n"
	"	cmpq %rdi, %rax\n"
	"pattern_back:\n"
	"	jb pattern_loop\n"
	"pattern_end:\n"
	"	ret\n"
	".size pattern_run, .-pattern_run\n");

/* Adds 3 to a word, and other numbers to another, each time round. */
extern const char counting_store[], counting_end[];
void counting_run(uint64_t *words, uint64_t iterations);
__asm__(".text\n"
	".type counting_run,@function\n"
	"counting_run:\n"
	"	addq %rsi, 8(%rdi)\n"
	"counting_store:\n"
	"	addq $3, (%rdi)\n"
	"	decq %rsi\n"
	"	jnz counting_run\n"
	"	ret\n"
	"counting_end:\n"
	".size counting_run, .-counting_run\n");

enum { VALUES_TABLE = 64, VALUES_FACTOR = 7, VALUES_ARGUMENT = 17 };

extern const char values_load[], values_multiply[], values_again[], values_call[], values_leaf[],
	values_leaf_end[], values_end[];
/* Walks a table of 64 words round and round, and writes seven times each into the next 64. */
void values_run(uint64_t *table, uint64_t iterations);
__asm__(".text\n"
	".type values_run,@function\n"
	"values_run:\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	movq %rdi, %rbx\n"
	"	movq %rsi, %r12\n"
	"	xorl %r13d, %r13d\n"
	"values_load:\n"
	"	movq (%rbx,%r13,8), %rax\n"
	"values_multiply:\n"
	"	imulq $7, %rax, %rdx\n"
	"	movq %rdx, 512(%rbx,%r13,8)\n"
	"values_again:\n"
	"	movq 512(%rbx,%r13,8), %rsi\n"
	"	movl $17, %edi\n"
	"values_call:\n"
	"	call values_leaf\n"
	"	incq %r13\n"
	"	andl $63, %r13d\n"
	"	decq %r12\n"
	"	jnz values_load\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	ret\n"
	"values_end:\n"
	".size values_run, .-values_run\n"
	".type values_leaf,@function\n"
	"values_leaf:\n"
	"	leaq (%rdi,%rsi), %rax\n"
	"	ret\n"
	"values_leaf_end:\n"
	".size values_leaf, .-values_leaf\n");

extern const char reader_load[], reader_end[];
/* Loads one word again and again. */
void reader_run(const volatile void *word, uint64_t iterations);
__asm__(".text\n"
	".type reader_run,@function\n"
	"reader_run:\n"
	"reader_load:\n"
	"	movq (%rdi), %rax\n"
	"	decq %rsi\n"
	"	jnz reader_load\n"
	"reader_end:\n"
	"	ret\n"
	".size reader_run, .-reader_run\n");

static inline bool rig_inside(uint64_t ip, const char *start, const char *end)
{
	return ip >= (uintptr_t)start && ip < (uintptr_t)end;
}

static inline bool rig_at(uint64_t ip, const char *label)
{
	return ip == (uintptr_t)label;
}

#endif
