#include "collect/scout_internal.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/counter.h"
#include "collect/record.h"
#include "collect/ring.h"
#include "collect/sampler.h"
#include "collect/sampler_places.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* Of a CPU: that of the first event there, which all others write into. */
struct clock_ring {
	struct ring ring;
	size_t asked, end; /* of its events: who is asked for news, and behind the last */
};

struct scout_clock {
	VEC(int) fds; /* of events, by CPU */
	VEC(struct clock_ring) rings;
	VEC(struct pollfd) polls; /* who else is waited for, and one a ring */
};

static struct perf_event_attr attr_of(const struct sampler_target *t, uint64_t period_ns)
{
	return (struct perf_event_attr){.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.sample_type = RECORD_SAMPLE_TYPE,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.exclude_kernel = 1,
		.wakeup_events = 1,
		.disabled = 1,
		.enable_on_exec = t->enable_on_exec};
}

static int open_first(struct scout_clock *c, int fd, struct err *e)
{
	struct clock_ring of = {.asked = c->fds.n - 1};
	int rc = ring_open(&of.ring, fd, (size_t)sysconf(_SC_PAGESIZE));

	if (rc)
		return err_errno(e, rc, "cannot map a ring buffer");
	*vec_add(&c->rings) = of;
	*vec_add(&c->polls) = (struct pollfd){.fd = fd, .events = POLLIN};
	return 0;
}

/* All events of a CPU write into one ring. A thread that has ended meanwhile is no failure. */
static int open_cpu(struct scout_clock *c, const struct sampler_places *p,
	struct perf_event_attr *attr, int cpu, struct err *e)
{
	unsigned long flags = p->cgroup >= 0 ? PERF_FLAG_PID_CGROUP : 0;
	int first = -1;

	vec_each (task, &p->tasks) {
		int fd, rc = 0;

		attr->inherit = task->inherit;
		attr->inherit_thread = task->inherit && task->threads;
		fd = counter_kernel.open(attr, p->cgroup >= 0 ? p->cgroup : task->id, cpu, flags);
		if (fd == -ESRCH || fd == -ENODEV)
			continue;
		if (fd < 0)
			return err_errno(e, fd, "cannot open a clock");
		*vec_add(&c->fds) = fd;
		if (first < 0)
			rc = open_first(c, first = fd, e);
		else if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, first) < 0)
			rc = err_errno(e, -errno, "cannot open a clock");
		if (rc)
			return rc;
		c->rings.p[c->rings.n - 1].end = c->fds.n;
	}
	return 0;
}

int scout_clock_create(
	const struct sampler_target *t, uint64_t period_ns, struct scout_clock **out, struct err *e)
{
	struct scout_clock *c = xcalloc(1, sizeof *c);
	struct perf_event_attr attr = attr_of(t, period_ns);
	struct sampler_places places = {.cgroup = -1};
	int rc = sampler_places_find(t, &places, e);

	*vec_add(&c->polls) = (struct pollfd){.events = POLLIN};
	vec_each (cpu, &places.cpus)
		if (!rc)
			rc = open_cpu(c, &places, &attr, *cpu, e);
	sampler_places_deinit(&places);
	if (rc) {
		scout_clock_destroy(c);
		return rc;
	}
	*out = c;
	return 0;
}

void scout_clock_destroy(struct scout_clock *c)
{
	if (!c)
		return;
	vec_each (of, &c->rings)
		ring_close(&of->ring);
	vec_each (fd, &c->fds)
		close(*fd);
	vec_deinit(&c->rings);
	vec_deinit(&c->fds);
	vec_deinit(&c->polls);
	free(c);
}

void scout_clock_enable(struct scout_clock *c)
{
	vec_each (fd, &c->fds)
		ioctl(*fd, PERF_EVENT_IOC_ENABLE, 0);
}

static size_t take_ticks(
	struct ring *ring, size_t before, struct reservoir *random, struct scout_tick *one)
{
	size_t size, ticks = before;
	const void *p;

	while ((p = ring_next(ring, &size))) {
		struct record r;

		if (record_parse(p, size, false, &r, &size) || r.kind != RECORD_SAMPLE)
			continue;
		if (!reservoir_below(random, ++ticks))
			*one = (struct scout_tick){r.pid, r.tid, r.time};
	}
	ring_done(ring);
	return ticks;
}

/* An event whose thread has ended says so for ever, and nothing else. */
static void ask_another(struct scout_clock *c, size_t poll)
{
	struct clock_ring *of = &c->rings.p[poll - 1];

	of->asked++;
	c->polls.p[poll].fd = of->asked < of->end ? c->fds.p[of->asked] : -1;
}

size_t scout_clock_wait(
	struct scout_clock *c, int other, struct reservoir *random, struct scout_tick *one)
{
	size_t ticks = 0;
	sigset_t blocked;

	*one = (struct scout_tick){0};
	c->polls.p[0].fd = other;
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	sigdelset(&blocked, SIGCHLD);
	if (ppoll(c->polls.p, c->polls.n, NULL, &blocked) <= 0)
		return 0;
	for (size_t i = 1; i < c->polls.n; i++)
		if (c->polls.p[i].revents & (POLLHUP | POLLERR | POLLNVAL))
			ask_another(c, i);
	vec_each (of, &c->rings)
		ticks = take_ticks(&of->ring, ticks, random, one);
	return ticks;
}
