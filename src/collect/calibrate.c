#include "collect/calibrate.h"

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/calibrate_cache.h"
#include "collect/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <x86intrin.h>

#define ROUND_NS   2000000
#define ROUND_RATE 10000
#define ROUNDS     60 /* pairs that are enough */
#define ROUNDS_MIN 10
#define LIMIT_NS   2000000000 /* after this we take what there is */

/* What keeps the spinner longer is another process or the hypervisor, not an interrupt. */
#define PREEMPTED_NS 100000

/* Shorter gaps are the loop itself: no interrupt is that quick. */
#define GAP_TICKS 1000

#define RATE_MIN 10
#define RATE_MAX 20000

struct bench {
	struct sampler *sampler;
	double ns_a_tick;
	uint64_t sampling_ns; /* how long the event was on and we were running */
	uint64_t samples;
	VEC(double) lost; /* share of time that went missing with the event, above that without */
};

/* The share of the time we ran that went missing in gaps; being preempted does not count. */
static double spin(const struct bench *b)
{
	uint64_t left = ROUND_NS / b->ns_a_tick, limit = PREEMPTED_NS / b->ns_a_tick;
	uint64_t ran = 0, lost = 0;

	for (uint64_t before = __rdtsc(), now; ran < left; before = now) {
		now = __rdtsc();
		if (now - before > limit)
			continue;
		ran += now - before;
		if (now - before > GAP_TICKS)
			lost += now - before;
	}
	return (double)lost / ran;
}

static double tick_length(void)
{
	uint64_t t0 = io_clock_ns(CLOCK_MONOTONIC), c0 = __rdtsc(), t1;

	do
		t1 = io_clock_ns(CLOCK_MONOTONIC);
	while (t1 - t0 < 5000000);
	return (double)(t1 - t0) / (__rdtsc() - c0);
}

static void measure_pair(struct bench *b)
{
	double without = spin(b), with;
	uint64_t start = io_clock_ns(CLOCK_THREAD_CPUTIME_ID);

	sampler_enable(b->sampler, NULL);
	with = spin(b);
	sampler_disable(b->sampler);
	b->sampling_ns += io_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	*vec_add(&b->lost) = with - without;
}

static void ignore_record(void *arg, const struct record *r)
{
	(void)arg, (void)r;
}

static void count_sample(void *arg, const struct sample *s)
{
	*(uint64_t *)arg += s->count;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static int evaluate(struct bench *b, struct calibration *out)
{
	double rate = b->samples / (b->sampling_ns / 1e9);
	size_t n = b->lost.n;
	struct calibration c = {.rounds = (int)n};

	if (n < ROUNDS_MIN || rate < 1)
		return -EAGAIN;
	vec_sort(&b->lost, ascending);
	c.cost = b->lost.p[n / 2] / rate;
	c.spread = (b->lost.p[3 * n / 4] - b->lost.p[n / 4]) / 2 / rate;
	if (c.cost <= 0)
		return -EAGAIN;
	*out = c;
	return 0;
}

/* Goes on until the result makes sense: noise can make the cost of a few rounds negative. */
static int measure_rounds(struct bench *b, struct calibration *out, struct err *e)
{
	struct sampler_sink sink = {ignore_record, count_sample, &b->samples};
	uint64_t start = io_clock_ns(CLOCK_MONOTONIC), passed;
	int r;

	b->ns_a_tick = tick_length();
	do {
		size_t enough = b->lost.n + ROUNDS;

		do {
			measure_pair(b);
			passed = io_clock_ns(CLOCK_MONOTONIC) - start;
		} while (b->lost.n < enough && passed < LIMIT_NS);
		sampler_drain(b->sampler, &sink);
		r = evaluate(b, out);
	} while (r < 0 && passed < LIMIT_NS);
	return r < 0 ? err_set(e, r, "the machine is too busy to measure what a sample costs") : 0;
}

/*
 * Only clocks and hardware events go on while a program spins; for others the clock stands in: what
 * costs is the interrupt, not what asked for it.
 */
static struct event event_for_spinning(const struct event *ev)
{
	struct event e = *ev;

	if (!ev->is_clock &&
		(ev->attr.type == PERF_TYPE_SOFTWARE || ev->attr.type == PERF_TYPE_TRACEPOINT)) {
		e.attr.type = PERF_TYPE_SOFTWARE;
		e.attr.config = PERF_COUNT_SW_CPU_CLOCK;
		e.is_clock = true;
	}
	e.attr.exclude_user = 0; /* the spinner is not in the kernel */
	return e;
}

static int measure_here(
	const struct event *ev, bool bpf, int cpu, struct calibration *out, struct err *e)
{
	struct event spinning = event_for_spinning(ev);
	pid_t self = gettid();
	struct sampler_options o = {.target = {.tids = &self, .ntids = 1, .cpus = &cpu, .ncpus = 1},
		.events = &spinning,
		.nevents = 1,
		.rate = ROUND_RATE,
		.how = bpf ? SAMPLER_BEST : SAMPLER_RING};
	struct bench b = {0};
	int r = sampler_create(&o, &b.sampler, e);

	if (r == 0)
		r = measure_rounds(&b, out, e);
	sampler_destroy(b.sampler);
	vec_deinit(&b.lost);
	return r;
}

static int measure(const struct event *ev, bool bpf, struct calibration *out, struct err *e)
{
	cpu_set_t before, one;
	int cpu = sched_getcpu(), r;

	if (sched_getaffinity(0, sizeof before, &before) < 0)
		return err_errno(e, -errno, "cannot pin the calibration to a CPU");
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof one, &one) < 0)
		return err_errno(e, -errno, "cannot pin the calibration to CPU %d", cpu);
	r = measure_here(ev, bpf, cpu, out, e);
	sched_setaffinity(0, sizeof before, &before);
	return r;
}

static char *cache_dir(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		return xstrdup("/var/lib/culprit");
	if (xdg && *xdg == '/')
		return xasprintf("%s/culprit", xdg);
	return home && *home == '/' ? xasprintf("%s/.cache/culprit", home) : NULL;
}

static char *cache_key(const struct event *ev, bool bpf)
{
	char boot[64] = "-";
	struct utsname u;

	uname(&u);
	io_read_line(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, sizeof boot);
	return xasprintf("%s %s %s %s", boot, u.release, ev->name, bpf ? "bpf" : "ring");
}

int calibrate_cost(
	const struct event *ev, bool bpf, bool fresh, struct calibration *out, struct err *e)
{
	_cleanup_free_ char *dir = cache_dir(), *key = cache_key(ev, bpf);
	int r;

	if (!fresh && dir && calibrate_cache_get(dir, key, out))
		return 0;
	r = measure(ev, bpf, out, e);
	if (r == 0 && dir)
		calibrate_cache_put(dir, key, out);
	return r;
}

double calibrate_rate(const struct calibration *c, double budget)
{
	double rate = budget / c->cost, most = RATE_MAX;
	long limit;

	/* The kernel throttles what comes near its own bound. */
	if (io_read_long("/proc/sys/kernel/perf_event_max_sample_rate", &limit) == 0 && limit > 0 &&
		limit * 0.9 < most)
		most = limit * 0.9;
	if (rate > most)
		rate = most;
	return rate < RATE_MIN ? RATE_MIN : rate;
}
