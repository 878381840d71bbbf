#include "collect/calibrate.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <x86intrin.h>

/* Rounds are short, so that most pass undisturbed on a busy machine, and sample fast. */
#define ROUND_NS   2000000
#define ROUND_RATE 10000
#define ROUNDS     60 /* pairs that are enough */
#define ROUNDS_MIN 10
#define LIMIT_NS   1000000000 /* after this we take what there is */

/* What keeps the spinner longer is another process, not an interrupt. */
#define PREEMPTED_NS 100000

/* Shorter gaps are the loop itself: no interrupt is that quick. */
#define GAP_TICKS 1000

#define RATE_MIN 10
#define RATE_MAX 20000

struct gaps {
	uint64_t sum, longest; /* ticks of the time-stamp counter */
};

struct bench {
	struct sampler *sampler;
	double ns_a_tick;
	uint64_t sampling_ns; /* how long the event was on and we were running */
	uint64_t samples;
	VEC(double) lost; /* ns that went missing in each round with the event, above one without */
};

static struct gaps spin(uint64_t ticks)
{
	struct gaps g = {0};
	uint64_t start = __rdtsc();

	for (uint64_t before = start, now; before - start < ticks; before = now) {
		now = __rdtsc();
		if (now - before < GAP_TICKS)
			continue;
		g.sum += now - before;
		g.longest = now - before > g.longest ? now - before : g.longest;
	}
	return g;
}

static double tick_length(void)
{
	uint64_t t0 = io_clock_ns(CLOCK_MONOTONIC), c0 = __rdtsc(), t1;

	do
		t1 = io_clock_ns(CLOCK_MONOTONIC);
	while (t1 - t0 < 5000000);
	return (double)(t1 - t0) / (__rdtsc() - c0);
}

/* A round without and one with the event; neither counts when the spinner was preempted. */
static void measure_pair(struct bench *b)
{
	uint64_t ticks = ROUND_NS / b->ns_a_tick, limit = PREEMPTED_NS / b->ns_a_tick, start;
	struct gaps without = spin(ticks), with;

	start = io_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	sampler_enable(b->sampler, NULL);
	with = spin(ticks);
	sampler_disable(b->sampler);
	b->sampling_ns += io_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	if (without.longest < limit && with.longest < limit)
		*vec_add(&b->lost) = ((double)with.sum - (double)without.sum) * b->ns_a_tick;
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
	double samples_a_round = (double)b->samples * ROUND_NS / b->sampling_ns;
	size_t n = b->lost.n;
	struct calibration c = {.rounds = (int)n};

	if (n < ROUNDS_MIN || samples_a_round < 1)
		return -EAGAIN;
	vec_sort(&b->lost, ascending);
	c.cost = b->lost.p[n / 2] / samples_a_round / 1e9;
	c.spread = (b->lost.p[3 * n / 4] - b->lost.p[n / 4]) / 2 / samples_a_round / 1e9;
	if (c.cost <= 0)
		return -EAGAIN;
	*out = c;
	return 0;
}

static int measure_rounds(struct bench *b, struct calibration *out, struct err *e)
{
	struct sampler_sink sink = {ignore_record, count_sample, &b->samples};
	uint64_t start = io_clock_ns(CLOCK_MONOTONIC);
	int r;

	b->ns_a_tick = tick_length();
	while (b->lost.n < ROUNDS && io_clock_ns(CLOCK_MONOTONIC) - start < LIMIT_NS)
		measure_pair(b);
	sampler_drain(b->sampler, &sink);
	r = evaluate(b, out);
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

/*
 * ---- the cache ----
 *
 * One line for each event and way to sample it: boot id, kernel release, event, "bpf" or "ring",
 * cost, spread, rounds. Lines of other boots go with the next writing.
 */

static char *cache_dir(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		return xstrdup("/var/lib/culprit");
	if (xdg && *xdg == '/')
		return xasprintf("%s/culprit", xdg);
	return home && *home == '/' ? xasprintf("%s/.cache/culprit", home) : NULL;
}

static void make_dirs(char *path)
{
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		mkdir(path, 0755);
		*at = '/';
	}
	mkdir(path, 0755);
}

static char *cache_key(const struct event *ev, bool bpf)
{
	char boot[64] = "-";
	struct utsname u;

	uname(&u);
	io_read_line(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, sizeof boot);
	return xasprintf("%s %s %s %s ", boot, u.release, ev->name, bpf ? "bpf" : "ring");
}

static bool plausible(const struct calibration *c)
{
	return c->cost > 1e-8 && c->cost < 1e-2 && c->spread >= 0 && c->rounds > 0;
}

static bool cache_find(const char *text, const char *key, struct calibration *out)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		struct calibration c;

		if (!strncmp(line, key, strlen(key)) &&
			sscanf(line + strlen(key), "%lf %lf %d", &c.cost, &c.spread, &c.rounds) ==
				3 &&
			plausible(&c)) {
			*out = c;
			return true;
		}
	}
	return false;
}

/* Keeps what other events measured since this boot. A cache that cannot be written is none. */
static void cache_put(
	const char *path, const char *text, const char *key, const struct calibration *c)
{
	struct buf b = {0};
	size_t boot = strcspn(key, " ") + 1;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (!strncmp(line, key, boot) && strncmp(line, key, strlen(key)))
			buf_printf(&b, "%.*s\n", (int)strcspn(line, "\n"), line);
	}
	buf_printf(&b, "%s%.9g %.9g %d\n", key, c->cost, c->spread, c->rounds);
	io_write_file(path, buf_cstr(&b));
	buf_deinit(&b);
}

int calibrate_cost(
	const struct event *ev, bool bpf, bool fresh, struct calibration *out, struct err *e)
{
	_cleanup_free_ char *dir = cache_dir(), *key = cache_key(ev, bpf);
	_cleanup_free_ char *path = dir ? xasprintf("%s/calibration", dir) : NULL;
	struct buf text = {0};
	int r = 0;

	if (path)
		io_read_file(AT_FDCWD, path, 1 << 16, &text);
	if (fresh || !cache_find(buf_cstr(&text), key, out)) {
		r = measure(ev, bpf, out, e);
		if (r == 0 && path) {
			make_dirs(dir);
			cache_put(path, buf_cstr(&text), key, out);
		}
	}
	buf_deinit(&text);
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
