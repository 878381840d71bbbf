#include "collect/counter.h"

#include "collect/sampler.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Draws lie within a sixteenth of the mean, as wide as the paper's 60K to 64K. */
#define SPREAD 4

/*
 * With children the draw is narrower: PERF_EVENT_IOC_PERIOD reaches only the event itself, and a
 * child keeps the period it was born with, which makes its samples that much rarer or denser than
 * others'. A few parts in a hundred are enough to fall out of step.
 */
#define SPREAD_SHARED 6

/*
 * Each draw restarts the interval to the next sample and so costs half a sample: it waits for this
 * many. Events that do not run are then left in peace too.
 */
#define DRAW_SAMPLES 128

static int kernel_open(struct perf_event_attr *attr, pid_t pid, int cpu, unsigned long flags)
{
	int fd = syscall(SYS_perf_event_open, attr, pid, cpu, -1, flags | PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int kernel_read(int fd, struct counter_reading *out)
{
	uint64_t v[5] = {0}; /* the last one only with PERF_FORMAT_LOST */
	ssize_t n = read(fd, v, sizeof v);

	if (n < 0)
		return -errno;
	if (n < (ssize_t)(4 * sizeof *v))
		return -EIO; /* an event in error state reads as the end of a file */
	*out = (struct counter_reading){
		.count = v[0], .enabled = v[1], .running = v[2], .id = v[3], .lost = v[4]};
	return 0;
}

static int kernel_set_period(int fd, uint64_t period)
{
	return ioctl(fd, PERF_EVENT_IOC_PERIOD, &period) < 0 ? -errno : 0;
}

const struct counter_source counter_kernel = {kernel_open, kernel_read, kernel_set_period};

int counter_begin(struct counter *c, const struct counter_source *src)
{
	int r = src->read(c->fd, &c->last);

	if (r == 0)
		c->id = c->last.id;
	return r;
}

/* A clock stands still while it is throttled; its running time does not. */
static uint64_t units(const struct counter *c, const struct counter_reading *r)
{
	return c->is_clock ? r->running : r->count;
}

static double samples_in_stretch(const struct counter *c)
{
	return c->shared ? (double)c->stretch / c->period : (double)(c->stretch / c->period);
}

void counter_update(struct counter *c, const struct counter_source *src, struct counter_books *b)
{
	struct counter_reading now;
	uint64_t more;
	double before;

	if (src->read(c->fd, &now) < 0)
		return;
	more = units(c, &now) - units(c, &c->last);
	b->count += more;
	b->enabled += now.enabled - c->last.enabled;
	b->running += now.running - c->last.running;
	b->lost += now.lost - c->last.lost;
	c->last = now;
	if (c->adaptive)
		return;
	before = samples_in_stretch(c);
	c->stretch += more;
	b->expected += samples_in_stretch(c) - before;
}

uint64_t counter_draw(const struct counter *c, struct period_source *draw)
{
	uint64_t period = period_draw(draw, c->mean, c->shared ? SPREAD_SHARED : SPREAD);

	return c->is_clock && period < COUNTER_CLOCK_MIN ? COUNTER_CLOCK_MIN : period;
}

void counter_redraw(struct counter *c, const struct counter_source *src, struct period_source *draw,
	struct counter_books *b)
{
	uint64_t period;

	counter_update(c, src, b);
	if (c->adaptive || c->stretch / c->period < DRAW_SAMPLES)
		return;
	period = counter_draw(c, draw);
	if (src->set_period(c->fd, period) < 0)
		return;
	c->period = period;
	c->stretch = 0;
}

void counter_throttle(struct counter *c, uint64_t time)
{
	if (!c->throttled_at)
		c->throttled_at = time;
}

/* What the event would have counted in so many ns, by its history, over its period. */
static double samples_in(const struct counter *c, uint64_t ns)
{
	if (c->adaptive)
		return ns / 1e9 * c->mean;
	if (c->is_clock)
		return (double)ns / c->period;
	return c->last.running ? (double)ns * c->last.count / c->last.running / c->period : 0;
}

void counter_unthrottle(struct counter *c, uint64_t time, struct counter_books *b)
{
	counter_throttled_until(c, time, b);
	c->throttled_at = 0;
}

void counter_throttled_until(struct counter *c, uint64_t time, struct counter_books *b)
{
	if (!c->throttled_at || time <= c->throttled_at)
		return;
	b->throttled += samples_in(c, time - c->throttled_at);
	c->throttled_at = time;
}

/*
 * How much longer events were wanted than there were hardware counters for them. An event that
 * follows a task on one CPU is enabled, but not running, while the task is on another.
 */
static double multiplexing(const struct counter_books *b, const struct counter *c)
{
	double scale = b->running ? (double)b->enabled / c->copies / b->running : 1;

	return c->software || scale < 1 ? 1 : scale;
}

void counter_account(const struct counter_books *b, const struct counter *c, uint64_t samples,
	struct sampler_account *out)
{
	double taken = b->expected;

	*out = (struct sampler_account){.samples = samples,
		.lost = b->lost,
		.throttled = b->throttled + 0.5,
		.expected = b->expected,
		.scale = multiplexing(b, c)};
	if (c->adaptive)
		taken = samples + b->lost;
	/* A counter other than a clock's stands still while throttled, and did not count that. */
	if (c->adaptive || !c->is_clock)
		out->expected = taken + b->throttled;
	out->period = taken > 0 ? b->count / taken : c->adaptive ? 0 : c->mean;
}
