#include "collect/sampler.h"

#include "base/err.h"
#include "base/hmap.h"
#include "base/io.h"
#include "base/mem.h"
#include "collect/driver.h"
#include "collect/driver_user.h"
#include "collect/record.h"
#include "collect/record_queue.h"
#include "collect/sampler_open.h"
#include "collect/sampler_places.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

/*
 * Between drains a record is held this long, in case another CPU still writes an older one. Records
 * are written with preemption off, in microseconds; what takes longer is a stalled virtual CPU.
 */
#define SLACK_NS 10000000

/* Periods are redrawn twice a second, each by an interrupt of its CPU, and at most 2,000 of them.
 */
#define REDRAW_NS         400000000
#define REDRAW_COUNTER_NS 500000

/* The counter that has this perf id. */
struct owner {
	uint64_t id;
	size_t counter;
};

struct sampler_event {
	struct counter_books books;
	uint64_t samples;
	bool counts_excluded; /* its count includes what it does not sample */
};

struct sampler {
	struct driver *driver; /* NULL: samples come through the rings */
	char why_not[256], why_not_shadow[256];
	struct shadow *shadow;
	struct sampler_opened opened;
	size_t nevents;
	struct sampler_event *events;
	struct hmap owners;
	bool follows;         /* not all that probes see is asked for, but */
	struct hmap followed; /* processes (pid_t as uint64_t) and single threads */
	struct record_queue queue;
	struct period_source draw;
	uint64_t redrawn;
	uint64_t sideband_lost; /* by LOST records, where the kernel counts no better */
	int epoll;
};

/* A delivery under way. */
struct delivery {
	struct sampler *s;
	const struct sampler_sink *sink;
};

static unsigned highest_cpu(const struct sampler_places *p)
{
	int highest = 0;

	vec_each (cpu, &p->cpus)
		highest = *cpu > highest ? *cpu : highest;
	return highest;
}

static int load_driver(struct sampler *s, const struct sampler_options *o,
	const struct sampler_places *p, struct err *e)
{
	struct err why = {0};
	int r;

	if (o->how == SAMPLER_RING) {
		snprintf(s->why_not, sizeof s->why_not, "not asked for");
		return 0;
	}
	r = driver_create(
		&(struct driver_options){.nevents = o->nevents,
			.cpus = highest_cpu(p) + 1,
			.paths = o->contexts,
			.rate = o->rate},
		&s->driver, &why);
	if (r < 0 && o->how == SAMPLER_BPF) {
		*e = why;
		return r;
	}
	if (s->driver && o->pair_every)
		driver_set_pairs(s->driver, o->pair_every);
	snprintf(s->why_not, sizeof s->why_not, "%.255s", why.text);
	return 0;
}

static void load_shadow(
	struct sampler *s, const struct sampler_options *o, const struct sampler_places *p)
{
	struct err why = {0};
	int r = -EOPNOTSUPP;

	if (!o->shadow_every)
		return;
	if (s->driver)
		r = shadow_create(&o->shadow, highest_cpu(p) + 1, &s->shadow, &why);
	else
		err_set(&why, r, "interpreting needs BPF: %.200s", s->why_not);
	if (r == 0)
		r = driver_chain(s->driver, shadow_program(s->shadow), o->shadow_every, &why);
	if (r < 0) {
		shadow_destroy(s->shadow);
		s->shadow = NULL;
		snprintf(s->why_not_shadow, sizeof s->why_not_shadow, "%.255s", why.text);
	}
}

static void note_counters(struct sampler *s)
{
	hmap_init(&s->owners, sizeof(struct owner), sizeof(uint64_t));
	for (size_t i = 0; i < s->opened.counters.n; i++) {
		struct owner *o = hmap_put(&s->owners, &s->opened.counters.p[i].id, NULL);

		o->counter = i;
	}
}

static void follow(struct sampler *s, int32_t id)
{
	uint64_t key = (uint32_t)id;

	hmap_put(&s->followed, &key, NULL);
}

static void follow_targets(struct sampler *s, const struct sampler_options *o)
{
	const struct sampler_target *t = &o->target;

	hmap_init(&s->followed, sizeof(uint64_t), sizeof(uint64_t));
	for (size_t i = 0; i < o->nevents && (t->npids || t->ntids); i++)
		s->follows |= *o->events[i].probed;
	for (size_t i = 0; i < t->npids; i++)
		follow(s, t->pids[i]);
	for (size_t i = 0; i < t->ntids; i++)
		follow(s, t->tids[i]);
}

static int watch(struct sampler *s, int fd)
{
	/* Edges only: a ring whose task has ended would report its hang-up for ever. */
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int watch_all(struct sampler *s, struct err *e)
{
	int r = 0;

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		return err_errno(e, -errno, "cannot watch the ring buffers");
	if (s->driver)
		r = watch(s, driver_fd(s->driver));
	if (r == 0 && s->shadow)
		r = watch(s, shadow_fd(s->shadow));
	vec_each (ring, &s->opened.rings) {
		if (r == 0)
			r = watch(s, ring->fd);
	}
	return r < 0 ? err_errno(e, r, "cannot watch the ring buffers") : 0;
}

static int open_all(struct sampler *s, const struct sampler_options *o, struct err *e)
{
	struct sampler_places places;
	int r = sampler_places_find(&o->target, &places, e);

	if (r < 0)
		return r;
	r = load_driver(s, o, &places, e);
	if (r == 0)
		load_shadow(s, o, &places);
	if (r == 0)
		r = sampler_open(o, &places, s->driver, &s->draw, &s->opened, e);
	s->queue.build_ids = s->opened.build_ids;
	if (r == 0)
		r = watch_all(s, e);
	sampler_places_deinit(&places);
	return r;
}

int sampler_create(const struct sampler_options *o, struct sampler **out, struct err *e)
{
	struct sampler *s;
	int r;

	if (!o->nevents || (!o->period && !(o->rate > 0)))
		return err_set(e, -EINVAL, "sampling needs an event and a rate or a period");
	s = xcalloc(1, sizeof *s);
	s->epoll = -1;
	s->nevents = o->nevents;
	s->events = xcalloc(o->nevents + 1, sizeof *s->events); /* and those that bring stacks */
	period_seed(&s->draw);
	r = open_all(s, o, e);
	if (r < 0) {
		sampler_destroy(s);
		return r;
	}
	note_counters(s);
	follow_targets(s, o);
	for (size_t i = 0; i < o->nevents; i++) {
		const struct event *ev = &o->events[i];

		s->events[i].counts_excluded =
			ev->is_clock && (ev->attr.exclude_user || ev->attr.exclude_kernel ||
						s->opened.excludes_kernel);
	}
	*out = s;
	return 0;
}

void sampler_destroy(struct sampler *s)
{
	if (!s)
		return;
	sampler_opened_deinit(&s->opened);
	shadow_destroy(s->shadow);
	driver_destroy(s->driver);
	record_queue_deinit(&s->queue);
	hmap_deinit(&s->owners);
	hmap_deinit(&s->followed);
	if (s->epoll >= 0)
		close(s->epoll);
	free(s->events);
	free(s);
}

int sampler_enable(struct sampler *s, struct err *e)
{
	vec_each (c, &s->opened.counters) {
		if (ioctl(c->fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
			return err_errno(e, -errno, "cannot start sampling");
	}
	return 0;
}

void sampler_disable(struct sampler *s)
{
	vec_each (c, &s->opened.counters)
		ioctl(c->fd, PERF_EVENT_IOC_DISABLE, 0);
}

bool sampler_uses_bpf(const struct sampler *s)
{
	return s->driver;
}

bool sampler_interprets(const struct sampler *s)
{
	return s->shadow != NULL;
}

const char *sampler_why_not_shadow(const struct sampler *s)
{
	return s->why_not_shadow;
}

const char *sampler_why_not_bpf(const struct sampler *s)
{
	return s->why_not;
}

bool sampler_excludes_kernel(const struct sampler *s)
{
	return s->opened.excludes_kernel;
}

int sampler_fd(const struct sampler *s)
{
	return s->epoll;
}

/* ---- records and samples ---- */

static struct counter *owner(struct sampler *s, uint64_t id)
{
	const struct owner *o = hmap_get(&s->owners, &id);

	return o ? &s->opened.counters.p[o->counter] : NULL;
}

static struct counter_books *books(struct sampler *s, const struct counter *c)
{
	return &s->events[c->event].books;
}

static void take_sample(void *arg, const struct sample *sample)
{
	struct delivery *d = arg;

	if (sample->event >= d->s->nevents)
		return;
	d->s->events[sample->event].samples += sample->count;
	d->sink->sample(d->sink->arg, sample);
}

/* Where stacks begin the ring does not tell. */
static uint64_t where_of(const struct record *r)
{
	uint64_t frame = (r->sample.bp - r->sample.sp) / 8;

	if (r->sample.bp < r->sample.sp || r->sample.bp % 8 || frame > WHERE_FRAME)
		frame = 0;
	return WHERE_OTHER << WHERE_KIND_SHIFT | frame << WHERE_FRAME_SHIFT;
}

/* A stack that came through the ring, as the driver would have sent it. */
static void take_ring_stack(struct delivery *d, const struct record *r, const struct sample *sample)
{
	/* By their number in machine code: where the kernel has put them. */
	static const uint8_t place[16] = {0, 2, 3, 1, 7, 6, 4, 5, 9, 10, 11, 12, 13, 14, 15, 16};
	struct driver_stack s = {.time = r->time,
		.pc = sample->pc,
		.context = {.where = sample->where,
			.user = sample->user,
			.caller = {sample->caller[0]}},
		.rip = r->sample.ip,
		.pid = (uint32_t)r->pid,
		.tid = (uint32_t)r->tid,
		.tag = sample->event | (sample->kernel ? DRIVER_TAG_KERNEL : 0),
		.size = r->sample.stack_size,
		.learn = true,
		.alone = !(sample->where & WHERE_COPIED)};

	for (unsigned i = 0; i < 16; i++)
		memcpy(&s.r[i], r->sample.registers + place[i] * sizeof s.r[i], sizeof s.r[i]);
	if (d->sink->stack)
		d->sink->stack(d->sink->arg, &s, r->sample.stack);
}

/* Probes see all processes; records of forks are only of those that are asked for. */
static bool is_asked_for(const struct sampler *s, const struct counter *c, const struct record *r)
{
	uint64_t pid = (uint32_t)r->pid, tid = (uint32_t)r->tid;

	return !s->follows || !c->probed || hmap_get(&s->followed, &pid) ||
	       hmap_get(&s->followed, &tid);
}

static void take_ring_sample(struct delivery *d, const struct record *r)
{
	const struct counter *c = owner(d->s, r->id);
	bool has_stack = r->sample.has_user && r->sample.stack_size;
	struct sample sample;

	if (!c || !is_asked_for(d->s, c, r))
		return;
	sample = (struct sample){.pc = r->sample.pc,
		.time = r->time,
		.pid = r->pid,
		.tid = r->tid,
		.cpu = r->cpu,
		.count = 1,
		.event = c->event,
		.kernel =
			(r->sample.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL,
		.ring = true,
		.where = WHERE_OTHER << WHERE_KIND_SHIFT};
	if (r->sample.has_user) {
		sample.where = where_of(r);
		sample.caller[0] = r->sample.sp;
		sample.user = sample.kernel ? r->sample.ip : 0;
	}
	if (has_stack && c->event < d->s->nevents)
		sample.where |= WHERE_COPIED;
	take_sample(d, &sample);
	if (has_stack)
		take_ring_stack(d, r, &sample);
}

static void count_lost(struct sampler *s, const struct record *r)
{
	const struct counter *c = owner(s, r->id);

	if (s->opened.counts_lost)
		return;
	if (c && !s->driver)
		books(s, c)->lost += r->lost.lost;
	else
		s->sideband_lost += r->lost.lost;
}

/* Records arrive here in time order. */
static void take_record(void *arg, const struct record *r)
{
	struct delivery *d = arg;
	struct sampler *s = d->s;
	struct counter *c;

	switch (r->kind) {
	case RECORD_SAMPLE:
		take_ring_sample(d, r);
		return;
	case RECORD_LOST:
		count_lost(s, r);
		return;
	case RECORD_THROTTLE:
		if ((c = owner(s, r->id)))
			counter_throttle(c, r->time);
		return;
	case RECORD_UNTHROTTLE:
		if ((c = owner(s, r->id)))
			counter_unthrottle(c, r->time, books(s, c));
		return;
	default:
		if (r->kind == RECORD_FORK && s->follows)
			follow(s, r->pid);
		d->sink->record(d->sink->arg, r);
	}
}

static void read_rings(struct sampler *s)
{
	vec_each (r, &s->opened.rings) {
		const void *record;
		size_t size;

		while ((record = ring_next(&r->ring, &size)))
			record_queue_add(&s->queue, record, size);
		ring_done(&r->ring);
	}
}

static void redraw(struct sampler *s)
{
	uint64_t now = io_clock_ns(CLOCK_MONOTONIC);
	uint64_t wait = s->opened.counters.n * REDRAW_COUNTER_NS;

	if (now - s->redrawn < (wait > REDRAW_NS ? wait : REDRAW_NS))
		return;
	s->redrawn = now;
	vec_each (c, &s->opened.counters)
		counter_redraw(c, &counter_kernel, &s->draw, books(s, c));
}

/* Periods come last: the interval that they restart then hits whoever runs next, not us. */
void sampler_service(struct sampler *s, const struct sampler_sink *sink)
{
	struct delivery d = {s, sink};
	struct epoll_event ev[16];
	uint64_t until = io_clock_ns(CLOCK_MONOTONIC) - SLACK_NS;

	while (epoll_wait(s->epoll, ev, 16, 0) == 16)
		continue;
	read_rings(s);
	record_queue_deliver(&s->queue, until, take_record, &d);
	if (s->driver)
		driver_service(s->driver, until, take_sample, &d);
	if (s->driver && sink->pair)
		driver_pairs(s->driver, until, sink->pair, sink->arg);
	if (s->driver && sink->stack)
		driver_stacks(s->driver, until, sink->stack, sink->arg);
	if (s->shadow && sink->burst)
		shadow_service(s->shadow, until, sink->burst, sink->arg);
	redraw(s);
}

/*
 * All that was counted in the old tables was sampled before `until`, and so were all mappings made
 * that it can refer to; after ring_settle both are there to be read.
 */
void sampler_drain(struct sampler *s, const struct sampler_sink *sink)
{
	struct delivery d = {s, sink};
	uint64_t until;

	if (s->driver)
		driver_swap(s->driver);
	until = io_clock_ns(CLOCK_MONOTONIC);
	vec_each (c, &s->opened.counters)
		counter_update(c, &counter_kernel, books(s, c));
	ring_settle();
	read_rings(s);
	record_queue_deliver(&s->queue, until, take_record, &d);
	vec_each (c, &s->opened.counters)
		counter_throttled_until(c, until, books(s, c));
	if (s->driver)
		driver_collect(s->driver, until, take_sample, &d);
	if (s->driver && sink->pair)
		driver_pairs(s->driver, until, sink->pair, sink->arg);
	if (s->driver && sink->stack)
		driver_stacks(s->driver, until, sink->stack, sink->arg);
	if (s->shadow && sink->burst)
		shadow_service(s->shadow, until, sink->burst, sink->arg);
	redraw(s);
}

void sampler_want(struct sampler *s, const struct sample *sample)
{
	if (s->driver && !sample->ring)
		driver_want(s->driver, sample);
}

void sampler_ask(struct sampler *s, const struct sample *sample, uint64_t ask)
{
	if (s->driver && !sample->ring)
		driver_ask(s->driver, sample, ask);
}

void sampler_answer(
	struct sampler *s, const struct driver_stack *stack, const uint8_t *bytes, uint64_t ask)
{
	if (s->driver)
		driver_answer(s->driver, stack, bytes, ask);
}

void sampler_teach(
	struct sampler *s, const struct driver_stack *stack, const struct stack_step *step)
{
	if (s->driver)
		driver_teach(s->driver, stack, step);
}

bool sampler_hurries(const struct sampler *s)
{
	return s->driver && driver_hurries(s->driver);
}

void sampler_leave_out(struct sampler *s, const struct shadow_burst *b)
{
	if (s->shadow)
		shadow_leave_out(s->shadow, b);
}

void sampler_watch(struct sampler *s, const struct shadow_watch *w)
{
	if (s->shadow)
		shadow_watch(s->shadow, w);
}

void sampler_take_in(struct sampler *s, pid_t pid)
{
	if (s->shadow)
		shadow_take_in(s->shadow, pid);
}

/* ---- accounting ---- */

static const struct counter *first_counter(const struct sampler *s, size_t event)
{
	vec_each (c, &s->opened.counters) {
		if (c->event == event)
			return c;
	}
	return s->opened.counters.p;
}

void sampler_account(struct sampler *s, size_t event, struct sampler_account *out)
{
	struct sampler_event *ev = &s->events[event];

	if (s->driver)
		ev->books.lost += driver_dropped(s->driver, event);
	counter_account(&ev->books, first_counter(s, event), ev->samples, out);
	if (ev->counts_excluded)
		out->expected = 0;
	ev->books = (struct counter_books){0};
	ev->samples = 0;
}

void sampler_statistics(const struct sampler *s, struct sampler_statistics *out)
{
	*out = (struct sampler_statistics){.sideband_lost = s->sideband_lost};
	if (s->driver)
		driver_statistics(s->driver, out);
	if (s->shadow) {
		shadow_statistics(s->shadow, &out->shadow);
		out->map_bytes += out->shadow.map_bytes;
	}
	vec_each (r, &s->opened.rings)
		out->map_bytes += r->ring.size;
	vec_each (fd, &s->opened.sideband) {
		struct counter_reading now;

		if (s->opened.counts_lost && counter_kernel.read(*fd, &now) == 0)
			out->sideband_lost += now.lost;
	}
}
