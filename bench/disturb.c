/*
 * How much of the data caches an interrupt takes away (ASPLOS 2000, section 6.3).
 *
 *   disturb [-t SECONDS] [-c CPU] [-g GAP_US] [-l LEVEL]
 *
 * A chain of loads through most of the cache of that level (1) is timed in three states: all of it
 * there, all of it one level further out, and after an interrupt (a gap of at least GAP_US (5) in
 * the readings of the time-stamp counter). Where the third lies between the other two is the share
 * of the cache that is gone. Prints interrupts=3021 lines=672 lost=0.21 there=3350 out=9800 lost:
 * the median over the interrupts; there and out: medians of the first two, in ticks.
 */
#include <err.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { LINE = 64, TIMES_MAX = 1 << 16, HIGH_US = 60 };

struct line {
	struct line *next;
	char rest[LINE - sizeof(struct line *)];
};

static struct line *lines; /* a ring in random order, so that no prefetcher knows what comes next */
static uint32_t nlines;
static volatile char *other; /* memory that drives them out */
static size_t other_size;
static double ticks_a_us;

/* What was measured, in ticks. */
struct series {
	uint32_t n;
	uint64_t t[TIMES_MAX];
};
static struct series there, out, after;

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void measure_ticks(void)
{
	double t0 = seconds_now();
	uint64_t c0 = __rdtsc();

	while (seconds_now() - t0 < 0.1)
		;
	ticks_a_us = (__rdtsc() - c0) / (seconds_now() - t0) / 1e6;
}

static void *allocate(size_t size)
{
	void *p = aligned_alloc(2 << 20, (size + (2 << 20) - 1) & -(size_t)(2 << 20));

	if (!p)
		err(1, "memory");
	memset(p, 1, size);
	return p;
}

/* Room is left for what the program itself and the page tables need. */
static void make_lines(int level)
{
	long first = sysconf(_SC_LEVEL1_DCACHE_SIZE), second = sysconf(_SC_LEVEL2_CACHE_SIZE);
	uint32_t *order;

	if (first < 8192 || second < first)
		errx(1, "the sizes of the caches are not known");
	nlines = (level == 1 ? first - first / 8 : second / 2) / LINE;
	other_size = 2 * (size_t)(level == 1 ? first : second);
	other = allocate(other_size);
	lines = allocate(nlines * sizeof *lines);
	order = calloc(nlines, sizeof *order);
	for (uint32_t i = 0; i < nlines; i++) {
		uint32_t k = rand() % (i + 1);

		order[i] = order[k];
		order[k] = i;
	}
	for (uint32_t i = 0; i < nlines; i++)
		lines[order[i]].next = &lines[order[(i + 1) % nlines]];
	free(order);
}

static uint64_t walk(void)
{
	const struct line *at = lines;
	uint64_t start;
	unsigned aux;

	_mm_lfence();
	start = __rdtsc();
	do
		at = *(struct line *volatile const *)&at->next;
	while (at != lines);
	return __rdtscp(&aux) - start;
}

static void fill(void)
{
	for (int i = 0; i < 4; i++)
		walk();
}

static void drive_out(void)
{
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < other_size; i += LINE)
			other[i];
}

/* False when it waited long, or the gap was no interrupt's but the hypervisor's. */
static bool await_interrupt(uint64_t low)
{
	uint64_t last = __rdtsc(), end = last + (uint64_t)(20000 * ticks_a_us);

	while (last < end) {
		uint64_t now = __rdtsc(), gap = now - last;

		last = now;
		if (gap >= low)
			return gap < HIGH_US * ticks_a_us;
	}
	return false;
}

static void note(struct series *s, uint64_t t)
{
	if (s->n < TIMES_MAX)
		s->t[s->n++] = t;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double median(struct series *s)
{
	qsort(s->t, s->n, sizeof *s->t, compare);
	return s->n ? s->t[s->n / 2] : 0;
}

static void watch(double time, double gap_us)
{
	double a, b, c;

	for (double end = seconds_now() + time; seconds_now() < end;) {
		fill();
		note(&there, walk());
		drive_out();
		note(&out, walk());
		fill();
		if (await_interrupt((uint64_t)(gap_us * ticks_a_us)))
			note(&after, walk());
	}
	a = median(&there);
	b = median(&out);
	c = median(&after);
	printf("interrupts=%u lines=%u lost=%.4f there=%.0f out=%.0f\n", after.n, nlines,
		b > a ? (c - a) / (b - a) : 0.0, a, b);
}

int main(int argc, char **argv)
{
	double time = 2, gap = 5;
	int option, cpu = 0, level = 1;
	cpu_set_t cpus;

	while ((option = getopt(argc, argv, "t:c:g:l:")) != -1) {
		if (option == 't')
			time = atof(optarg);
		else if (option == 'c')
			cpu = atoi(optarg);
		else if (option == 'g')
			gap = atof(optarg);
		else if (option == 'l')
			level = atoi(optarg);
		else
			return 2;
	}
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof cpus, &cpus) ||
		sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1}))
		err(1, "real-time scheduling on CPU %d", cpu);
	measure_ticks();
	make_lines(level);
	watch(time, gap);
}
