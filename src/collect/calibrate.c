#include "collect/calibrate.h"

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/calibrate_cache.h"
#include "collect/calibrate_tour.h"
#include "collect/sampler.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <x86intrin.h>

#define RATE     500 /* rare enough that the kernel's part of an interrupt is cold, as in life */
#define PRICE_NS 350000000L /* a price is taken for so long, */
#define ENOUGH   20         /* from so many samples at least, */
#define LONGER   4          /* for which a busy machine gets so many times as long */

/* What takes so long is another process or the hypervisor, not an interrupt. */
#define PREEMPTED_NS 100000

#define GAP_TICKS   300    /* shorter gaps are the loop itself: no interrupt is that quick */
#define CALM_NS     300000 /* without an interrupt, and caches are warm again */
#define TOGETHER_NS 10000

#define RATE_MIN 10
#define RATE_MAX 20000

/* A price in seconds that makes sense. */
#define PRICE_MIN 1e-8
#define PRICE_MAX 1e-2

/* Of the budget; the rest is for the sampler's own processes, and for dearer times than we
 * measured. */
#define INTERRUPTS_SHARE 0.8

struct bench {
	struct sampler *sampler;
	struct tour *tour;
	pid_t tid;
	double ticks_a_ns;
	uint64_t samples;
	VEC(double) gaps; /* ticks that samples took from the spin */
	VEC(double)
	calm, after; /* ticks of tours with nothing before them, and right after samples */
};

static void ignore_record(void *arg, const struct record *r)
{
	(void)arg, (void)r;
}

static void count_sample(void *arg, const struct sample *s)
{
	struct bench *b = arg;

	if (s->tid == b->tid)
		b->samples += s->count;
}

/* Whether a sample was taken of us since the last call. */
static bool was_sampled(struct bench *b)
{
	struct sampler_sink sink = {.record = ignore_record, .sample = count_sample, .arg = b};
	uint64_t before = b->samples;

	sampler_service(b->sampler, &sink);
	return b->samples != before;
}

/*
 * Spins until something interrupts, or nothing does for a while; returns the ticks that went
 * missing, or 0. A hypervisor may come in before it delivers the interrupt, so gaps close together
 * are one.
 */
static uint64_t wait_for_gap(const struct bench *b)
{
	uint64_t before = __rdtsc(), end = before + (uint64_t)(CALM_NS * b->ticks_a_ns), now;
	uint64_t missing = 0;

	for (; before < end; before = now) {
		now = __rdtsc();
		if (now - before < GAP_TICKS)
			continue;
		missing += now - before;
		end = now + (uint64_t)(TOGETHER_NS * b->ticks_a_ns);
	}
	return missing;
}

static long switches(void)
{
	struct rusage u;

	return getrusage(RUSAGE_THREAD, &u) ? 0 : u.ru_nvcsw + u.ru_nivcsw;
}

static void measure_once(struct bench *b)
{
	long before = switches();
	uint64_t gap = wait_for_gap(b);
	bool sampled = was_sampled(b);
	double tour = (double)tour_take(b->tour);

	if (was_sampled(b) || switches() != before)
		return; /* the tour was, or others had the CPU and its caches meanwhile */
	if (!gap) {
		*vec_add(&b->calm) = tour;
	} else if (sampled) {
		*vec_add(&b->gaps) = (double)gap;
		*vec_add(&b->after) = tour;
	}
}

/* Of those below the limit. */
static double mean(const double *p, size_t n, double limit)
{
	double sum = 0, taken = 0;

	for (size_t i = 0; i < n; i++) {
		if (p[i] < limit) {
			sum += p[i];
			taken++;
		}
	}
	return taken > 0 ? sum / taken : 0;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Seconds that a sample takes: its gap, and what the tour after it takes longer. 0: unknown. */
static double price(struct bench *b)
{
	double limit = PREEMPTED_NS * b->ticks_a_ns, gap, later;

	if (b->gaps.n < ENOUGH || !b->calm.n)
		return 0;
	gap = mean(b->gaps.p, b->gaps.n, limit);
	vec_sort(&b->calm, ascending);
	limit += b->calm.p[b->calm.n / 2];
	later = mean(b->after.p, b->after.n, limit) - mean(b->calm.p, b->calm.n, limit);
	return (gap + (later > 0 ? later : 0)) / b->ticks_a_ns / 1e9;
}

static double ticks_a_ns(void)
{
	uint64_t t0 = io_clock_ns(CLOCK_MONOTONIC), c0 = __rdtsc(), t1;

	do
		t1 = io_clock_ns(CLOCK_MONOTONIC);
	while (t1 - t0 < 5000000);
	return (double)(__rdtsc() - c0) / (double)(t1 - t0);
}

static double measure_price(struct bench *b)
{
	uint64_t start = io_clock_ns(CLOCK_MONOTONIC), passed;

	b->gaps.n = b->calm.n = b->after.n = 0;
	do {
		measure_once(b);
		passed = io_clock_ns(CLOCK_MONOTONIC) - start;
	} while (passed < PRICE_NS || (b->gaps.n < ENOUGH && passed < LONGER * PRICE_NS));
	return price(b);
}

static void measure_prices(struct bench *b, int n, struct figures *out)
{
	b->ticks_a_ns = ticks_a_ns();
	sampler_enable(b->sampler, NULL);
	for (int i = 0; i < n; i++) {
		double p = measure_price(b);

		if (p > 0 && out->n < CALIBRATE_FIGURES)
			out->p[out->n++] = p;
	}
	sampler_disable(b->sampler);
}

/*
 * Only clocks and hardware events go on while a program works; for others the clock stands in: what
 * costs is the interrupt, not what asked for it.
 */
static struct event event_for_work(const struct event *ev)
{
	struct event e = *ev;

	if (!ev->is_clock &&
		(ev->attr.type == PERF_TYPE_SOFTWARE || ev->attr.type == PERF_TYPE_TRACEPOINT)) {
		e.attr.type = PERF_TYPE_SOFTWARE;
		e.attr.config = PERF_COUNT_SW_CPU_CLOCK;
		e.is_clock = true;
	}
	e.attr.exclude_user = 0; /* the work is not in the kernel, which not everybody may sample */
	e.attr.exclude_kernel = e.attr.exclude_hv = 1;
	return e;
}

/* ---- the companion ---- */

/*
 * Does the same work on another CPU, sampled too: hardware threads share a core, and an interrupt
 * slows down the neighbour as well. Without another CPU there is none.
 */
struct companion {
	pthread_t thread;
	cpu_set_t cpu;
	struct tour *tour;
	_Atomic pid_t tid;
	atomic_bool over;
	bool runs;
};

static void *keep_company(void *arg)
{
	struct companion *c = arg;

	sched_setaffinity(0, sizeof c->cpu, &c->cpu);
	for (c->tid = gettid(); !c->over;)
		tour_take(c->tour);
	return NULL;
}

/* The CPU next to ours among those we may use: siblings have adjacent numbers in virtual machines.
 */
static bool choose_neighbour(const cpu_set_t *allowed, int cpu, cpu_set_t *out)
{
	int best = -1;

	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (i != cpu && CPU_ISSET(i, allowed) &&
			(best < 0 || abs((i ^ 1) - cpu) < abs((best ^ 1) - cpu)))
			best = i;
	}
	CPU_ZERO(out);
	if (best >= 0)
		CPU_SET(best, out);
	return best >= 0;
}

static void companion_start(struct companion *c, const cpu_set_t *allowed, int cpu)
{
	if (!choose_neighbour(allowed, cpu, &c->cpu))
		return;
	c->tour = tour_create();
	c->runs = pthread_create(&c->thread, NULL, keep_company, c) == 0;
	while (c->runs && !c->tid)
		sched_yield();
}

static void companion_stop(struct companion *c)
{
	c->over = true;
	if (c->runs)
		pthread_join(c->thread, NULL);
	tour_destroy(c->tour);
}

/* ---- measuring ---- */

/* With the ring, which tells at once that a sample was taken; counting it in BPF costs the same. */
static int measure_with(const struct event *ev, const struct companion *c, int n,
	struct figures *out, struct err *e)
{
	struct event working = event_for_work(ev);
	struct bench *b = xcalloc(1, sizeof *b);
	pid_t tids[] = {gettid(), c->tid};
	struct sampler_options o = {.target = {.tids = tids, .ntids = c->runs ? 2 : 1},
		.events = &working,
		.nevents = 1,
		.rate = RATE,
		.how = SAMPLER_RING};
	int r;

	b->tour = tour_create();
	b->tid = tids[0];
	r = sampler_create(&o, &b->sampler, e);
	if (r == 0)
		measure_prices(b, n, out);
	sampler_destroy(b->sampler);
	tour_destroy(b->tour);
	vec_deinit(&b->gaps);
	vec_deinit(&b->calm);
	vec_deinit(&b->after);
	free(b);
	return r;
}

static int measure(const struct event *ev, int n, struct figures *out, struct err *e)
{
	struct companion companion = {0};
	cpu_set_t before, one;
	int cpu = sched_getcpu(), r;

	if (sched_getaffinity(0, sizeof before, &before) < 0)
		return err_errno(e, -errno, "cannot pin the calibration to a CPU");
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof one, &one) < 0)
		return err_errno(e, -errno, "cannot pin the calibration to CPU %d", cpu);
	companion_start(&companion, &before, cpu);
	r = measure_with(ev, &companion, n, out, e);
	companion_stop(&companion);
	sched_setaffinity(0, sizeof before, &before);
	return r;
}

/* ---- what is known already ---- */

static double middle(const struct figures *prices)
{
	struct figures sorted = *prices;
	int n = prices->n;

	qsort(sorted.p, (size_t)n, sizeof *sorted.p, ascending);
	return (sorted.p[(n - 1) / 2] + sorted.p[n / 2]) / 2;
}

static void evaluate(const struct figures *prices, struct calibration *out)
{
	double mean = 0, squares = 0, n = prices->n;

	for (int i = 0; i < prices->n; i++)
		mean += prices->p[i] / n;
	for (int i = 0; i < prices->n; i++)
		squares += (prices->p[i] - mean) * (prices->p[i] - mean);
	out->cost = middle(prices);
	out->more = fmax(0, mean + (n > 1 ? sqrt(squares / (n - 1) / n) : 0) - out->cost);
	out->prices = prices->n;
}

bool calibrate_known(const struct event *ev, struct calibration *out)
{
	_cleanup_free_ char *dir = calibrate_cache_dir(), *key = calibrate_cache_key("", ev);
	struct figures prices = {0};

	if (dir)
		calibrate_cache_get(dir, key, PRICE_MIN, PRICE_MAX, &prices);
	if (prices.n)
		evaluate(&prices, out);
	return prices.n > 0;
}

int calibrate_cost(
	const struct event *ev, int enough, bool fresh, struct calibration *out, struct err *e)
{
	_cleanup_free_ char *dir = calibrate_cache_dir(), *key = calibrate_cache_key("", ev);
	struct figures prices = {0};
	int r = 0;

	if (dir && !fresh)
		calibrate_cache_get(dir, key, PRICE_MIN, PRICE_MAX, &prices);
	if (prices.n < CALIBRATE_FIGURES) {
		r = measure(ev, prices.n < enough ? enough - prices.n : 1, &prices, e);
		if (dir && prices.n)
			calibrate_cache_put(dir, key, &prices);
	}
	if (!prices.n)
		return r < 0 ? r
			     : err_set(e, -EAGAIN,
				       "the machine is too busy to measure what a sample costs");
	evaluate(&prices, out);
	return 0;
}

double calibrate_rate(const struct calibration *c, double budget)
{
	double rate = budget * INTERRUPTS_SHARE / (c->cost + c->more), most = RATE_MAX;
	long limit;

	/* The kernel throttles what comes near its own bound. */
	if (io_read_long("/proc/sys/kernel/perf_event_max_sample_rate", &limit) == 0 && limit > 0 &&
		limit * 0.9 < most)
		most = limit * 0.9;
	if (rate > most)
		rate = most;
	return rate < RATE_MIN ? RATE_MIN : rate;
}
