#include "collect/collector.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "collect/attribute.h"
#include "collect/calibrate_skid.h"
#include "collect/command.h"
#include "collect/host.h"
#include "collect/idle.h"
#include "collect/record.h"
#include "store/store.h"
#include "values/upcall.h"
#include "values/values_pack.h"

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* How often the rings are looked at and the periods redrawn. */
#define TURN_MS 250

/*
 * Words that count are found by looking at bursts (progress.h), and what a program does until then
 * is not counted; it begins with small tables, so it is not like the rest. Who has bursts take more
 * of each CPU than this has them looked at so much more often.
 */
#define TURN_SHARE    0.002
#define TURN_LEAST_MS 25

/* Until stacks are looked at that were too young. */
#define HURRY_MS 12

/* Between drains while samples begin to tell their callers: every turn. */
#define ASKING_S 0.2

/* Between looks at what was to be sampled and was not: some files of /proc are long. */
#define ACCOUNTS_S 5

#define HOUR_US (3600 * 1000000ll)

struct collector {
	struct collector_options o;
	struct sampler *sampler;
	struct attribution *attribution;
	struct scout *scout; /* NULL: nobody wants excursions */
	struct store *store;
	int epoll, timer;
	bool sampling, made_database;
	int64_t host, epoch;
	const char *program; /* that the epoch is one run of, NULL: of none */
	uint64_t command;
	int64_t *event_ids;
	struct collector_event *events; /* written so far */
	struct store_account *pending;  /* delivered since the last flush that went well */
	uint64_t *lost;                 /* on the way to us, since then */
	uint64_t *idle_samples;         /* of pid 0, since the last accounts */
	double idle_before;             /* idle_seconds then */
	int64_t since, flushed_until;   /* microseconds since the epoch */
	uint64_t next_drain, next_accounts, next_flush, next_care; /* CLOCK_MONOTONIC ns */
	uint64_t wishes; /* for callers, since the last drain */
	uint64_t flushes, failed_flushes;
	struct err failure;
};

static int64_t wall_us(void)
{
	return io_clock_ns(CLOCK_REALTIME) / 1000;
}

static uint64_t now_ns(void)
{
	return io_clock_ns(CLOCK_MONOTONIC);
}

static void sink_record(void *arg, const struct record *r)
{
	struct collector *c = arg;

	attribution_record(c->attribution, r);
	if (r->kind == RECORD_MMAP) /* which may be what is wanted */
		sampler_take_in(c->sampler, r->pid);
}

static void sink_sample(void *arg, const struct sample *s)
{
	struct collector *c = arg;
	enum context_wish wish;
	uint64_t ask;

	if (s->pid == 0)
		c->idle_samples[s->event] += s->count;
	wish = attribution_sample(c->attribution, s, &ask);
	if (wish == CONTEXT_WISH_STACK)
		sampler_want(c->sampler, s);
	else if (wish == CONTEXT_WISH_CALLERS)
		sampler_ask(c->sampler, s, ask);
	c->wishes += wish == CONTEXT_WISH_CALLERS;
}

static void sink_burst(void *arg, const struct shadow_burst *b, const uint64_t *words)
{
	struct collector *c = arg;
	struct shadow_watch watch;

	if (!attribution_burst(c->attribution, b, words))
		sampler_leave_out(c->sampler, b);
	if (attribution_watch(c->attribution, b, &watch))
		sampler_watch(c->sampler, &watch);
}

static void sink_stack(void *arg, const struct driver_stack *s, const uint8_t *bytes)
{
	struct collector *c = arg;
	uint64_t ask = attribution_stack(c->attribution, s, bytes);
	const struct stack_step *steps;

	if (s->learn)
		sampler_answer(c->sampler, s, bytes, ask);
	for (size_t i = 0, n = attribution_steps(c->attribution, &steps); i < n; i++)
		sampler_teach(c->sampler, s, &steps[i]);
}

static void sink_pair(void *arg, const struct driver_pair *p)
{
	attribution_pair(((struct collector *)arg)->attribution, p);
}

/* Samples of an event that were not taken because CPUs slept through them. */
static double slept_through(struct collector *c, size_t event, double idle, double period)
{
	double asleep = 0;

	if (c->o.sampling.events[event].is_clock && c->o.sampling.target.all && period > 0)
		asleep = idle * 1e9 / period - c->idle_samples[event];
	c->idle_samples[event] = 0;
	return asleep > 0 ? asleep : 0;
}

/* Takes over the sampler's accounting since the last time; after a drain. */
static void collect_accounts(struct collector *c)
{
	const struct sampler_target *t = &c->o.sampling.target;
	double idle = idle_seconds(t->cpus, t->ncpus), slept = idle - c->idle_before;

	c->idle_before = idle;
	c->next_accounts = now_ns() + ACCOUNTS_S * 1000000000ull;
	for (size_t i = 0; i < c->o.sampling.nevents; i++) {
		struct sampler_account a;
		struct store_account *p = &c->pending[i];
		double absent;

		sampler_account(c->sampler, i, &a);
		absent = fmax(0, a.expected - a.samples - a.lost - a.throttled);
		c->lost[i] += a.lost;
		p->throttled += a.throttled;
		p->expected += a.expected - fmin(absent, slept_through(c, i, slept, a.period));
		p->scale = a.scale;
		if (a.period > 0)
			c->events[i].period = a.period;
	}
}

static void sink_tuple(void *arg, const struct upcall_tuple *t)
{
	attribution_tuple(((struct collector *)arg)->attribution, t);
}

/* After the side-band records, which tell where these belong. */
static void read_upcalls(struct collector *c)
{
	if (c->o.upcall)
		upcall_read(c->o.upcall, sink_tuple, c);
}

static void sink_excursion(void *arg, const struct scout_window *w,
	const struct excursion_edge *edges, const struct excursion_stay *stays)
{
	attribution_excursion(((struct collector *)arg)->attribution, w, edges, stays);
}

static struct sampler_sink sink_of(struct collector *c)
{
	return (struct sampler_sink){.record = sink_record,
		.sample = sink_sample,
		.burst = sink_burst,
		.pair = sink_pair,
		.stack = c->o.sampling.contexts ? sink_stack : NULL,
		.arg = c};
}

/* Where samples begin to be asked which path they are on, the sooner the better. */
static void set_drain(struct collector *c, uint64_t now)
{
	bool soon = c->o.sampling.contexts && c->wishes && c->o.drain_s > ASKING_S;

	c->next_drain = now + (soon ? ASKING_S : c->o.drain_s) * 1e9;
	c->wishes = 0;
}

static void drain(struct collector *c)
{
	struct sampler_sink sink = sink_of(c);
	uint64_t before = now_ns();

	sampler_drain(c->sampler, &sink);
	read_upcalls(c);
	if (c->scout)
		scout_read(c->scout, before, sink_excursion, c);
	attribution_drained(c->attribution, before);
	if (before >= c->next_accounts)
		collect_accounts(c);
	set_drain(c, before);
}

static int put_events(struct collector *c, struct err *e)
{
	for (size_t i = 0; i < c->o.sampling.nevents; i++) {
		const struct event *ev = &c->o.sampling.events[i];
		struct store_event row = {.epoch = c->epoch,
			.name = ev->name,
			.unit = ev->is_clock ? "ns" : "events",
			.period = c->events[i].period,
			.rate = c->o.sampling.rate,
			.cost = c->o.cost,
			.budget = c->o.budget};
		int r;

		if (c->o.skids) {
			row.skid = c->o.skids[i].instructions;
			row.skid_share = c->o.skids[i].share;
			row.cycles_per_ns = c->o.skids[i].cycles_per_ns;
		}
		r = store_event(c->store, &row, e);

		if (r < 0)
			return r;
		c->event_ids[i] = row.id;
	}
	return 0;
}

static int put_accounts(struct collector *c, int64_t t1, struct err *e)
{
	for (size_t i = 0; i < c->o.sampling.nevents; i++) {
		struct store_account *a = &c->pending[i];
		double rest;
		int r;

		attribution_counts(c->attribution, i, &a->attributed, &a->unknown);
		a->lost = c->lost[i] + attribution_refused(c->attribution, i);
		rest = a->expected - a->attributed - a->unknown - a->lost - a->throttled;
		a->missed = rest > 0 ? llround(rest) : 0;
		r = store_account_add(c->store, c->event_ids[i], c->flushed_until, t1, a, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static void accounts_written(struct collector *c)
{
	for (size_t i = 0; i < c->o.sampling.nevents; i++) {
		struct store_account *a = &c->pending[i];
		struct collector_event *ev = &c->events[i];

		ev->attributed += a->attributed;
		ev->unknown += a->unknown;
		ev->lost += a->lost;
		ev->throttled += a->throttled;
		ev->missed += a->missed;
		ev->expected += a->expected;
		ev->samples += a->attributed + a->unknown;
		*a = (struct store_account){.scale = 1};
		c->lost[i] = 0;
	}
}

/* Everything since the last flush, in one transaction; `last` also ends the epoch. */
static int write_out(struct collector *c, bool last, struct err *e)
{
	int64_t t1 = wall_us();
	int r = store_begin(c->store, e);

	if (r < 0)
		return r;
	/* The mean period is known only now: a rate of events other than clocks is adaptive. */
	r = put_events(c, e);
	if (r == 0)
		r = attribution_flush(
			c->attribution, c->store, c->epoch, c->event_ids, c->flushed_until, t1, e);
	if (r == 0)
		r = put_accounts(c, t1, e);
	if (r == 0 && last && c->program)
		r = command_keep(c->store,
			&(struct command_run){.program = c->program,
				.command = c->command,
				.epoch = c->epoch,
				.event = c->event_ids[0],
				.t0 = c->flushed_until,
				.t1 = t1},
			e);
	if (r == 0 && last)
		r = store_epoch_end(c->store, c->epoch, t1, e);
	if (r == 0)
		r = store_commit(c->store, e);
	if (r < 0) {
		store_rollback(c->store);
		return r;
	}
	accounts_written(c);
	attribution_flushed(c->attribution);
	c->flushed_until = t1;
	return 0;
}

/* After a drain. */
static int flush(struct collector *c, bool last, struct err *e)
{
	int r;

	collect_accounts(c);
	r = write_out(c, last, &c->failure);
	c->next_flush = now_ns() + c->o.flush_s * 1e9;
	if (r < 0) {
		c->failed_flushes++;
		if (e)
			*e = c->failure;
		return r;
	}
	c->flushes++;
	c->failure = (struct err){0};
	/* A lost record or a new module may have brought what was wanted: they are looked at again.
	 */
	sampler_take_in(c->sampler, 0);
	/* Flushing opens images and packs blobs; a process that runs for weeks gives that back. */
	malloc_trim(0);
	return 0;
}

static int begin_epoch(struct collector *c, const char *label, struct err *e)
{
	int r = store_begin(c->store, e);

	if (r < 0)
		return r;
	c->flushed_until = wall_us();
	r = host_put(c->store, &c->host, e);
	if (r == 0)
		r = store_epoch_start(c->store, c->host, c->flushed_until, label, &c->epoch, e);
	if (r == 0)
		r = put_events(c, e);
	if (r == 0)
		r = store_commit(c->store, e);
	if (r < 0)
		store_rollback(c->store);
	return r;
}

/*
 * Keeps a long run small: what is older than an hour is kept by the hour, what is older than a week
 * by the day, and what is past its time goes.
 */
static void care(struct collector *c)
{
	int64_t now = wall_us();
	int r = store_compact(c->store, now - HOUR_US, HOUR_US, &c->failure);

	if (r == 0)
		r = store_compact(c->store, now - 7 * 24 * HOUR_US, 24 * HOUR_US, &c->failure);
	if (r == 0 && (c->o.keep_days > 0 || c->o.keep_bytes))
		store_expire(c->store,
			c->o.keep_days > 0 ? now - (int64_t)(c->o.keep_days * 24 * HOUR_US) : 0,
			c->o.keep_bytes, &c->failure);
	c->next_care = now_ns() + 3600 * 1000000000ull;
}

long collector_turn_ms(const struct shadow_options *o)
{
	if (!o->watch || o->share <= TURN_SHARE)
		return TURN_MS;
	return lround(fmax(TURN_LEAST_MS, TURN_MS * TURN_SHARE / o->share));
}

/* The next turn comes so soon, and then they go on as ever. */
static int set_timer(struct collector *c, long ms)
{
	long turn = collector_turn_ms(&c->o.sampling.shadow);
	struct itimerspec every = {
		.it_interval.tv_nsec = turn * 1000000, .it_value.tv_nsec = ms * 1000000};

	return timerfd_settime(c->timer, 0, &every, NULL);
}

static int set_up_clock(struct collector *c, struct err *e)
{
	struct epoll_event ev = {.events = EPOLLIN};

	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	c->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (c->epoll < 0 || c->timer < 0)
		return err_errno(e, -errno, "cannot make a timer");
	if (set_timer(c, collector_turn_ms(&c->o.sampling.shadow)) < 0 ||
		epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->timer, &ev) < 0 ||
		epoll_ctl(c->epoll, EPOLL_CTL_ADD, sampler_fd(c->sampler), &ev) < 0)
		return err_errno(e, -errno, "cannot watch the sampler");
	return 0;
}

int collector_create(const struct collector_options *o, struct collector **out, struct err *e)
{
	struct collector *c = xcalloc(1, sizeof *c);
	size_t n = o->sampling.nevents;
	struct attribution_options ao = {.nevents = n,
		.per_process = o->per_process,
		.plugins = o->plugins,
		.nplugins = o->nplugins,
		.only = o->only,
		.nonly = o->nonly};
	int r;

	c->o = *o;
	c->epoll = c->timer = -1;
	c->event_ids = xcalloc(n, sizeof *c->event_ids);
	c->events = xcalloc(n, sizeof *c->events);
	c->pending = xcalloc(n, sizeof *c->pending);
	c->lost = xcalloc(n, sizeof *c->lost);
	c->idle_samples = xcalloc(n, sizeof *c->idle_samples);
	for (size_t i = 0; i < n; i++) {
		c->events[i].name = o->sampling.events[i].name;
		c->pending[i].scale = 1;
	}
	r = sampler_create(&o->sampling, &c->sampler, e);
	if (r == 0 && o->excursions > 0)
		r = scout_create(&(struct scout_options){.target = &c->o.sampling.target,
					 .share = o->excursions},
			&c->scout, e);
	if (r == 0) {
		c->made_database = access(o->database, F_OK) < 0;
		r = value_store_open(o->database, STORE_WRITE, &c->store, e);
	}
	if (r == 0) {
		ao.kernel = !sampler_excludes_kernel(c->sampler);
		if (sampler_uses_bpf(c->sampler) || o->sampling.contexts != CONTEXTS_CHAIN)
			ao.contexts = o->sampling.contexts;
		r = attribution_create(&ao, &c->attribution, e);
	}
	if (r == 0)
		r = attribution_load(c->attribution, c->store, e);
	if (r == 0)
		r = set_up_clock(c, e);
	if (r < 0) {
		collector_destroy(c);
		return r;
	}
	*out = c;
	return 0;
}

void collector_destroy(struct collector *c)
{
	if (!c)
		return;
	scout_destroy(c->scout);
	sampler_destroy(c->sampler);
	attribution_destroy(c->attribution);
	store_close(c->store);
	if (c->timer >= 0)
		close(c->timer);
	if (c->epoll >= 0)
		close(c->epoll);
	free(c->event_ids);
	free(c->events);
	free(c->pending);
	free(c->lost);
	free(c->idle_samples);
	free(c);
}

void collector_discard(struct collector *c)
{
	static const char *const parts[] = {"", "-wal", "-shm"};

	store_close(c->store);
	c->store = NULL;
	c->sampling = false;
	for (size_t i = 0; c->made_database && i < sizeof parts / sizeof *parts; i++) {
		_cleanup_free_ char *path = xasprintf("%s%s", c->o.database, parts[i]);

		unlink(path);
	}
}

int collector_start(struct collector *c, struct err *e)
{
	const struct sampler_target *t = &c->o.sampling.target;
	int r = begin_epoch(c, c->o.label, e);

	if (r < 0)
		return r;
	/* Side-band records run already, so nothing that starts during the scan is missed. */
	if (t->all || t->cgroup)
		attribution_scan(c->attribution, NULL, 0);
	if (t->npids)
		attribution_scan(c->attribution, t->pids, t->npids);
	if (t->ntids)
		attribution_scan(c->attribution, t->tids, t->ntids);
	c->since = wall_us();
	c->idle_before = idle_seconds(t->cpus, t->ncpus);
	c->wishes = 1;
	set_drain(c, now_ns());
	c->next_flush = now_ns() + c->o.flush_s * 1e9;
	c->next_care = now_ns() + 600 * 1000000000ull;
	c->sampling = true;
	/* Large pieces are given back at once; left alone, malloc learns to keep them. */
	mallopt(M_MMAP_THRESHOLD, 256 << 10);
	malloc_trim(0); /* loading BPF took the kernel's type information */
	return t->enable_on_exec || c->o.delayed ? 0 : collector_enable(c, e);
}

int collector_enable(struct collector *c, struct err *e)
{
	if (c->scout)
		scout_enable(c->scout);
	return sampler_enable(c->sampler, e);
}

int collector_fd(const struct collector *c)
{
	return c->epoll;
}

void collector_turn(struct collector *c)
{
	struct sampler_sink sink = sink_of(c);
	uint64_t ticks;
	bool ticked = read(c->timer, &ticks, sizeof ticks) > 0;

	if (!ticked && errno != EAGAIN)
		return;
	if (c->scout)
		scout_service(c->scout);
	if (now_ns() >= c->next_flush) {
		drain(c);
		flush(c, false, NULL);
	} else if (now_ns() >= c->next_drain) {
		drain(c);
		/* Early, to keep memory small; but a disk that is full is not tried at every drain.
		 */
		if (attribution_full(c->attribution) && !c->failure.code)
			flush(c, false, NULL);
	} else {
		sampler_service(c->sampler, &sink);
		read_upcalls(c);
		if (!ticked && sampler_hurries(c->sampler))
			set_timer(c, HURRY_MS);
	}
	if (now_ns() >= c->next_care)
		care(c);
}

int collector_flush(struct collector *c, struct err *e)
{
	drain(c);
	return flush(c, false, e);
}

int collector_epoch(struct collector *c, const char *label, struct err *e)
{
	int r;

	drain(c);
	r = flush(c, true, e);
	return r < 0 ? r : begin_epoch(c, label, e);
}

void collector_ran(struct collector *c, const char *program, uint64_t command)
{
	c->program = program;
	c->command = command;
}

int collector_finish(struct collector *c, struct err *e)
{
	if (!c->sampling)
		return 0;
	if (c->scout)
		scout_stop(c->scout);
	sampler_disable(c->sampler);
	drain(c);
	c->sampling = false;
	attribution_finish(c->attribution);
	return flush(c, true, e);
}

static double own_cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static size_t own_rss(void)
{
	char line[128];
	unsigned long pages = 0;

	if (io_read_line(-1, "/proc/self/statm", line, sizeof line) == 0)
		sscanf(line, "%*u %lu", &pages);
	return pages * sysconf(_SC_PAGESIZE);
}

static void sum_events(const struct collector *c, struct collector_event *t)
{
	*t = (struct collector_event){.name = "all"};
	for (size_t i = 0; i < c->o.sampling.nevents; i++) {
		const struct collector_event *ev = &c->events[i];
		uint64_t attributed, unknown;

		attribution_counts(c->attribution, i, &attributed, &unknown);
		t->attributed += ev->attributed + attributed;
		t->unknown += ev->unknown + unknown;
		t->lost += ev->lost + c->lost[i] + attribution_refused(c->attribution, i);
		t->throttled += ev->throttled + c->pending[i].throttled;
		t->expected += ev->expected + c->pending[i].expected;
		t->missed += ev->missed;
	}
	t->samples = t->attributed + t->unknown;
}

void collector_status(struct collector *c, struct collector_status *out)
{
	double elapsed = (wall_us() - c->since) / 1e6;
	double cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t bursts;

	*out = (struct collector_status){.since = c->since,
		.rate = c->o.sampling.rate,
		.budget = c->o.budget,
		.cost = c->o.cost,
		.rss = own_rss(),
		.bpf = sampler_uses_bpf(c->sampler),
		.flushes = c->flushes,
		.failed_flushes = c->failed_flushes,
		.no_bursts = sampler_why_not_shadow(c->sampler),
		.last_failure = c->failure.text};
	sampler_statistics(c->sampler, &out->driver);
	out->maps = out->driver.map_bytes;
	sum_events(c, &out->total);
	if (c->scout)
		scout_statistics(c->scout, &out->excursions);
	attribution_bursts(c->attribution, &bursts, &out->wrong);
	attribution_anchors(c->attribution, &out->anchors_seen, &out->anchors_kept);
	out->has_paths = attribution_contexts(c->attribution, &out->paths);
	if (elapsed > 0)
		out->interpreting = (double)out->driver.shadow.ns / 1e9 / elapsed / cpus;
	if (elapsed > 0)
		out->share = (own_cpu_seconds() + out->total.samples * c->o.cost) / elapsed / cpus;
}

size_t collector_events(const struct collector *c, const struct collector_event **out)
{
	*out = c->events;
	return c->o.sampling.nevents;
}

const struct sampler *collector_sampler(const struct collector *c)
{
	return c->sampler;
}

bool collector_kernel_hidden(const struct collector *c)
{
	return attribution_kernel_hidden(c->attribution);
}

void collector_only(const struct collector *c, size_t n, struct only_result *out)
{
	attribution_only(c->attribution, n, out);
}
