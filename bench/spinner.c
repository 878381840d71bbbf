/*
 * What interrupts take away: one thread per CPU reads the time-stamp counter without pause and sums
 * up the gaps between two readings that are longer than its own loop.
 *
 * The threads run as SCHED_FIFO, so that only interrupts (and the hypervisor) come between, and
 * only half of the time, in short bursts, so that the load runs on the same CPUs and leaves its
 * mark on their caches. Gaps above the upper limit are the hypervisor's: they count neither as
 * stolen nor as time that was there to be stolen.
 *
 * Several samplers are compared in turns (phases.h):
 *
 *   spinner [-t SECONDS] [-x NAME=[PID]]... [-s PHASE_MS] [-b BURST_US] [-p PAUSE_US]
 *           [-l LOW_NS] [-u HIGH_US]
 *
 * Prints a line for each phase (one named "all" without -x):
 *   phase=perf run=5.01 stolen=0.3012 share=0.0601 gaps=26050 rate=5200 p10=.. p50=.. p90=..
 * long=.. run and stolen in seconds, rate in gaps a second, the percentiles of the gaps in
 * microseconds; long is the time in gaps above the limit.
 */
#include "phases.h"

#include <pthread.h>
#include <sched.h>
#include <x86intrin.h>

#define MAX_GAPS (1u << 19)

struct options {
	long pause_ns;
	uint64_t burst, low, high; /* ticks */
};

/* Some phase on one CPU. */
struct tally {
	uint64_t run, stolen, too_long; /* ticks */
	uint32_t *gap;
	uint32_t ngaps;
};

struct spinner {
	const struct options *o;
	pthread_t thread;
	int cpu;
	struct tally tally[MAX_PHASES];
};

static double ticks_per_second(void)
{
	double t0 = seconds_now();
	uint64_t c0 = __rdtsc();
	while (seconds_now() - t0 < 0.1)
		;
	uint64_t c1 = __rdtsc();
	return (c1 - c0) / (seconds_now() - t0);
}

/* One burst, without a system call; what it found counts only if the phase lasted. */
static void burst(struct spinner *s)
{
	const uint64_t low = s->o->low, high = s->o->high;
	int phase = atomic_load(&turn);
	unsigned number = atomic_load(&turns);
	if (phase < 0)
		return;
	struct tally *t = &s->tally[phase], was = *t;
	uint64_t start = __rdtsc(), last = start, end = start + s->o->burst, lost = 0;
	while (last < end) {
		uint64_t now = __rdtsc(), gap = now - last;
		last = now;
		if (__builtin_expect(gap < low, 1))
			continue;
		if (gap >= high) {
			lost += gap;
			continue;
		}
		t->stolen += gap;
		if (t->ngaps < MAX_GAPS)
			t->gap[t->ngaps++] = gap;
	}
	t->too_long += lost;
	t->run += last - start - lost;
	if (atomic_load(&turn) != phase || atomic_load(&turns) != number)
		*t = was;
}

static void *spin(void *arg)
{
	struct spinner *s = arg;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(s->cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set) < 0)
		err(1, "CPU %d", s->cpu);
	struct sched_param p = {.sched_priority = 50};
	if (sched_setscheduler(0, SCHED_FIFO, &p) < 0)
		err(3, "SCHED_FIFO is not allowed; run as root");
	struct timespec pause = {.tv_nsec = s->o->pause_ns};
	while (!atomic_load(&over)) {
		burst(s);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static void report(int phase, const struct spinner *s, int n, double hz)
{
	static const int percent[] = {10, 50, 90};
	struct tally sum = {.gap = malloc(sizeof(uint32_t) * MAX_GAPS * n)};
	if (!sum.gap)
		err(1, "memory");
	for (int i = 0; i < n; i++) {
		const struct tally *t = &s[i].tally[phase];
		sum.run += t->run;
		sum.stolen += t->stolen;
		sum.too_long += t->too_long;
		memcpy(sum.gap + sum.ngaps, t->gap, t->ngaps * sizeof *sum.gap);
		sum.ngaps += t->ngaps;
	}
	qsort(sum.gap, sum.ngaps, sizeof *sum.gap, by_size);
	double run = sum.run ? sum.run / hz : 1e-9, stolen = sum.stolen / hz;
	printf("phase=%s run=%.4f stolen=%.6f share=%.6f gaps=%u rate=%.0f", phases[phase].name,
		run, stolen, stolen / run, sum.ngaps, sum.ngaps / run);
	for (size_t i = 0; i < sizeof percent / sizeof *percent; i++) {
		size_t at = (size_t)sum.ngaps * percent[i] / 100;
		printf(" p%d=%.2f", percent[i], sum.ngaps ? sum.gap[at] / hz * 1e6 : 0);
	}
	printf(" long=%.4f\n", sum.too_long / hz);
	free(sum.gap);
}

static void start_spinners(struct spinner *s, int n, const struct options *o)
{
	for (int i = 0; i < n; i++) {
		s[i].o = o;
		s[i].cpu = i;
		for (int k = 0; k < nphases; k++)
			if (!(s[i].tally[k].gap = malloc(sizeof(uint32_t) * MAX_GAPS)))
				err(1, "memory");
		if (pthread_create(&s[i].thread, NULL, spin, &s[i]))
			errx(1, "no thread for CPU %d", i);
	}
}

int main(int argc, char **argv)
{
	static struct spinner s[MAX_CPUS];
	double seconds = 5, burst_us = 2000, pause_us = 2000, low_ns = 500, high_us = 400;
	long phase_ms = 20;
	for (int c; (c = getopt(argc, argv, "t:x:s:b:p:l:u:")) != -1;) {
		switch (c) {
		case 't':
			seconds = atof(optarg);
			break;
		case 'x':
			add_phase(optarg);
			break;
		case 's':
			phase_ms = atol(optarg);
			break;
		case 'b':
			burst_us = atof(optarg);
			break;
		case 'p':
			pause_us = atof(optarg);
			break;
		case 'l':
			low_ns = atof(optarg);
			break;
		case 'u':
			high_us = atof(optarg);
			break;
		default:
			errx(2, "usage: spinner [-t S] [-x NAME=[PID]]... [-s MS] [-b US] [-p US] "
				"[-l NS] [-u US]");
		}
	}
	if (!nphases)
		add_phase("all=");
	double hz = ticks_per_second();
	struct options o = {
		pause_us * 1000, burst_us * hz / 1e6, low_ns * hz / 1e9, high_us * hz / 1e6};
	int n = sysconf(_SC_NPROCESSORS_ONLN);
	n = n < MAX_CPUS ? n : MAX_CPUS;
	start_spinners(s, n, &o);
	direct(seconds, phase_ms);
	for (int i = 0; i < n; i++)
		pthread_join(s[i].thread, NULL);
	for (int i = 0; i < nphases; i++)
		report(i, s, n, hz);
	return 0;
}
